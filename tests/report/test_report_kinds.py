"""Pages about a comparison and about drugs and targets: whole, safe with any name; charts on one scale, and strips."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from page_reader import Page

from air_recsys import SimilarityGraph
from air_recsys.dti import DrugTargetAIR
from air_recsys.evaluation import Comparison, compare
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models import BiasModel
from air_recsys.report import charts, write_comparison, write_drug_target_report
from air_recsys.report.charts import Mark, dot_chart

HOSTILE = "<script>alert(1)</script>&"
SECTIONS = ["errors", "lists", "costs", "systems", "verdict", "made"]


@pytest.fixture(scope="module")
def found() -> Comparison:
    rng = np.random.default_rng(0)
    ratings = np.where(rng.random((30, 20)) < 0.5, rng.integers(1, 6, (30, 20)), np.nan)
    models = {"first": "Biases", HOSTILE: BiasModel(bias_decay=50), "popular": "Popularity"}
    return compare(models, ratings, progress=False)


def read(comparison: Comparison, folder: Path) -> Page:
    return Page(write_comparison(comparison, folder / "page.html").read_text(encoding="utf-8"))


def test_the_page_is_whole_and_safe(found: Comparison, tmp_path: Path) -> None:
    page = read(found, tmp_path)
    assert [id for id in page.ids if id in SECTIONS] == SECTIONS
    assert page.values("a", "href") == [f"#{name}" for name in SECTIONS]
    assert "script" not in page.tags
    assert HOSTILE in page.text
    assert "first beside 2 other systems" in page.text
    assert not [value for _, name, value in page.attributes if name in ("src", "href") and not value.startswith("#")]
    for name in ("RMSE", "NDCG@10", "memory MiB", "BiasModel(bias_decay=50)", "30 users, 20 items"):
        assert name in page.text
    errors = page.text[page.text.index("Predicted ratings") : page.text.index("Lists of items")]
    assert HOSTILE in errors
    assert "or ratings take " in page.text[page.text.index("What each system is") :]
    assert "popular" not in errors  # a system without ratings is in no chart of errors


def test_of_likes_the_page_has_no_errors(tmp_path: Path) -> None:
    likes = np.where(np.random.default_rng(0).random((30, 20)) < 0.5, 1.0, np.nan)
    page = read(compare(["Popularity"], likes, progress=False), tmp_path)
    assert [id for id in page.ids if id in SECTIONS] == ["lists", "costs", "systems", "made"]  # one needs no verdict


def test_notes_are_on_the_page_and_there_is_none_without_a_folder(found: Comparison, tmp_path: Path) -> None:
    noted = replace(found, notes=["not installed: Ghost (pip install ghost)"])
    assert "not installed: Ghost (pip install ghost)" in read(noted, tmp_path).text
    with pytest.raises(ParameterError, match="no folder"):
        write_comparison(found, tmp_path / "none" / "page.html")


def places(chart: str, kind: str) -> list[float]:
    """Where the dots, bars or ranges of a chart end, in per cent of its width."""
    lines = [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in re.findall("<line ([^>]*)>", chart)]
    return [float(line["x2"].rstrip("%")) for line in lines if line["class"].split()[0] == kind]


@pytest.mark.parametrize("log", [False, True])
def test_larger_values_are_further_right_and_inside_of_the_picture(log: bool) -> None:
    values = [0.02, 0.3, 0.1, 7.0, 2.5]
    chart = dot_chart("", [Mark(f"{value}", value) for value in values], log=log)
    dots = places(chart, "dot")
    assert np.argsort(dots).tolist() == np.argsort(values).tolist()
    assert 0 < min(dots) < max(dots) < 100
    assert all(0 < place < 100 for place in places(chart, "grid"))


def test_bars_start_at_zero_and_have_the_lengths_of_the_values() -> None:
    chart = dot_chart("", [Mark("a", 1.0), Mark("b", 2.0), Mark("c", 0.0)], bars=True)
    one, two, none = places(chart, "bar")
    assert two - none == pytest.approx(2 * (one - none), abs=0.01)
    assert places(dot_chart("", [Mark("a", 3.0)]), "dot") == [50]
    assert places(dot_chart("", [Mark("a", 0.0)], bars=True), "bar") == [50]


def blocks(n_groups: int, size: int = 24) -> SimilarityGraph:
    """Groups of equal size, each of nodes that are all joined."""
    return SimilarityGraph(np.kron(np.eye(n_groups), np.ones((size // n_groups,) * 2)), range(size), kind="item")


def test_every_step_of_the_training_has_a_row_and_a_picture():
    graphs = {0: blocks(1), 5: blocks(2), 30: blocks(4)}
    parts = [str(part) for part in charts.formation_strip(graphs, "epoch")]
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", parts[1])
    assert cells[:4] == ["epoch", "communities", "modularity", "NMI with the last"]
    assert cells[4:7] == ["0", "1", "0"]
    assert cells[8:11] == ["5", "2", "0.5"]
    assert cells[12:] == ["30", "4", "0.75", "1"]
    assert "1 at epoch 0, 2 at epoch 5, 4 at epoch 30" in parts[0]
    drawing = ElementTree.fromstring(re.findall(r"<svg.*</svg>", parts[0], re.DOTALL)[0])
    texts = [element.text for element in drawing.iter() if element.tag.endswith("text")]
    assert texts == ["epoch 0", "epoch 5", "epoch 30"]


def test_a_community_that_stays_keeps_its_colour():
    figure = charts.formation_figure({1: blocks(4), 2: blocks(4)}, "sweep")
    first, second = ([np.asarray(each.get_facecolor()).tolist() for each in axes.collections] for axes in figure.axes)
    assert first == second
    assert len(first) == 4


def test_of_many_nodes_some_are_drawn_and_of_more_none(monkeypatch):
    drawn, _ = charts.formation_strip({0: blocks(1, 600), 1: blocks(2, 600)}, "epoch")
    assert "Drawn: 500 of 600, at random." in drawn
    monkeypatch.setattr(charts, "MOST_NODES", 20)
    (only,) = charts.formation_strip({0: blocks(1), 1: blocks(2)}, "epoch")
    assert "<svg" not in only


def pairs() -> pd.DataFrame:
    values = np.kron(np.eye(3), np.ones((4, 3)))
    values[1, 2] = 0
    values[5, 8] = np.nan
    return pd.DataFrame(values, ["d0", HOSTILE, *(f"d{k}" for k in range(2, 12))], [f"t{k}" for k in range(9)])


def test_the_page_on_drugs_is_whole_and_safe(tmp_path: Path) -> None:
    model = DrugTargetAIR().fit(pairs(), pd.DataFrame(np.eye(12), pairs().index, pairs().index))
    page = Page(write_drug_target_report(model, tmp_path / "page.html", n=4).read_text(encoding="utf-8"))
    assert "script" not in page.tags
    sections = ["accuracy", "new", "drugs", "targets", "data", "parameters", "made"]
    assert [id for id in page.ids if id in sections] == sections
    assert HOSTILE in page.text
    assert " hits t" in page.text
    for part in (
        "drugs: own profile 0.50, similarity 0.50",
        "missing",
        "The first 4",
        "average precision",
        "similarity_weight",
    ):
        assert part in page.text


def test_what_is_all_known_has_no_list_and_no_measure(tmp_path: Path) -> None:
    model = DrugTargetAIR().fit(np.ones((3, 2)))
    page = Page(write_drug_target_report(model, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "All pairs are known to interact." in page.text
    assert "no measure is defined" in page.text


def test_no_page_without_a_model_or_a_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        write_drug_target_report(DrugTargetAIR(), tmp_path / "page.html")
    with pytest.raises(ParameterError, match="no folder"):
        write_drug_target_report(DrugTargetAIR().fit(pairs()), tmp_path / "none" / "page.html")
