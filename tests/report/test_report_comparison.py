"""The page about a comparison: whole, safe with any name, its charts on one scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from page_reader import Page

from air_recsys.evaluation import Comparison, compare
from air_recsys.exceptions import ParameterError
from air_recsys.models import BiasModel
from air_recsys.report import write_comparison
from air_recsys.report.charts import Mark, dot_chart

HOSTILE = "<script>alert(1)</script>&"
SECTIONS = ["errors", "lists", "costs", "systems", "made"]


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
    for name in ("rmse", "ndcg@10", "memory MiB", "BiasModel(bias_decay=50)", "30 users, 20 items"):
        assert name in page.text


def test_a_system_without_ratings_is_in_no_chart_of_errors(found: Comparison, tmp_path: Path) -> None:
    text = read(found, tmp_path).text
    errors = text[text.index("Predicted ratings") : text.index("Lists of items")]
    assert HOSTILE in errors
    assert "popular" not in errors


def test_of_likes_the_page_has_no_errors(tmp_path: Path) -> None:
    likes = np.where(np.random.default_rng(0).random((30, 20)) < 0.5, 1.0, np.nan)
    page = read(compare(["Popularity"], likes, progress=False), tmp_path)
    assert [id for id in page.ids if id in SECTIONS] == SECTIONS[1:]


def test_notes_are_on_the_page(found: Comparison, tmp_path: Path) -> None:
    noted = replace(found, notes=["not installed: Ghost (pip install ghost)"])
    assert "not installed: Ghost (pip install ghost)" in read(noted, tmp_path).text


def test_no_page_without_a_folder(found: Comparison, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no folder"):
        write_comparison(found, tmp_path / "none" / "page.html")


def places(chart: str, kind: str) -> list[float]:
    """Where the dots, bars or ranges of a chart end, in per cent of its width."""
    lines = [dict(found) for found in _lines(chart)]
    return [float(line["x2"]) for line in lines if line["class"].split()[0] == kind]


def _lines(chart: str) -> list[list[tuple[str, str]]]:
    page = Page(chart)
    flat = [(name, value) for tag, name, value in page.attributes if tag == "line"]
    return [flat[start : start + 5] for start in range(0, len(flat), 5)]


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


def test_a_chart_of_one_value_is_drawn() -> None:
    assert places(dot_chart("", [Mark("a", 3.0)]), "dot") == [50]
    assert places(dot_chart("", [Mark("a", 0.0)], bars=True), "bar") == [50]
