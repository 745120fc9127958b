"""`air-recsys train --snapshots`: the file holds the graphs of the way, and the page and the report show them."""

import json
import re

import pytest
from cli_cases import SHORT, cli, ratings

from air_recsys import AIR


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, and a model trained on it with snapshots."""
    root = tmp_path_factory.mktemp("snapshots")
    ratings("text").to_csv(root / "table.csv", index=False)
    ended = cli("train", root / "table.csv", "--model", root / "model.air", "--snapshots", 4, *SHORT)
    assert ended.status == 0, ended.err
    assert "kept the graphs of the sweeps 0, 1, 3, 7" in ended.out
    return root


def test_the_model_file_holds_the_steps(folder):
    assert sorted(AIR.load(folder / "model.air").snapshots_) == [0, 1, 3, 7]


def test_the_page_has_a_step_for_each(folder):
    page = folder / "page.html"
    assert cli("graph", folder / "model.air", "--html", page).status == 0
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    for graph in json.loads(found[1])["graphs"]:
        assert [step["epoch"] for step in graph["steps"]] == [0, 1, 3, 7, None]


def test_the_report_draws_them(folder):
    assert cli("report", folder / "model.air", "--out", folder / "report.html").status == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "The graphs through training" in page
    assert "no snapshots" not in page


def test_steps_of_ones_own(folder):
    chosen = ["--set", "snapshot_epochs=[0,7]"]
    ended = cli("train", folder / "table.csv", "--model", folder / "own.air", *chosen, *SHORT)
    assert ended.status == 0, ended.err
    assert sorted(AIR.load(folder / "own.air").snapshots_) == [0, 7]
    ended = cli("train", folder / "table.csv", "--model", folder / "own.air", "--snapshots", 3, *chosen, *SHORT)
    assert (ended.status, "found both" in ended.err) == (1, True)


def test_a_ranker_has_no_steps_to_keep(folder):
    ended = cli("train", folder / "table.csv", "--ranking", "--snapshots", 3)
    assert ended.status == 1
    assert "--ranking does not read --snapshots" in ended.err
