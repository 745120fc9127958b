"""`air-recsys graph MODEL --html FILE`: the page of a model file, with and without titles."""

import json
import re

import pandas as pd
import pytest
from cli_cases import cli, fill

from air_recsys import AIR


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


def graphs_of(path):
    """The graphs that a page holds, by name."""
    found = re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return {graph["name"]: graph for graph in json.loads(found[1])["graphs"]}


@pytest.mark.parametrize("ids", ["integer", "text"])
def test_the_page_of_a_model_with_titles(folder, tmp_path, ids):
    model = AIR.load(folder / f"{ids}.air")
    items = model.interactions_.item_ids.tolist()
    table = pd.DataFrame(
        {"id": [*items[1:], 999], "title": [f"<b>{item}</b>" for item in [*items[1:], 999]], "year": 2000}
    )
    table.to_csv(tmp_path / "titles.csv", index=False)
    page = tmp_path / "g.html"
    ended = cli("graph", folder / f"{ids}.air", "--html", page, "--titles", tmp_path / "titles.csv")
    assert ended.status == 0
    assert f"wrote {page}" in ended.out
    graphs = graphs_of(page)
    assert list(graphs) == ["items", "users"]
    assert graphs["items"]["labels"] == [str(items[0]), *(f"<b>{item}</b>" for item in items[1:])]
    assert graphs["items"]["attributes"]["year"] == [None, *["2000"] * (len(items) - 1)]
    assert graphs["users"]["labels"] == [str(user) for user in model.interactions_.user_ids]
    assert graphs["users"]["steps"][0]["n_edges"] == model.user_graph_.n_edges


def test_the_side_that_was_asked_for_comes_first(folder, tmp_path):
    page = tmp_path / "g.html"
    assert cli("graph", folder / "text.air", "--side", "users", "--html", page).status == 0
    assert list(graphs_of(page)) == ["users", "items"]


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        ("title\nA\n", "column id"),
        ("id\n1\n", "at least one more"),
        ("", "CSV"),
        ("id,title\nmany,A\n", "CSV with the model's item ids"),
        ("id,title\n77,A\n", "found none"),
        ("id,title\n1,A\n1,B\n", "distinct"),
    ],
)
def test_titles_that_cannot_be_used(folder, tmp_path, titles, message):
    (tmp_path / "t.csv").write_text(titles, encoding="utf-8")
    ended = cli("graph", folder / "integer.air", "--html", tmp_path / "g.html", "--titles", tmp_path / "t.csv")
    assert ended.status == 1
    assert message in ended.err
    assert not (tmp_path / "g.html").exists()


def test_titles_without_a_page_and_files_without_a_folder(folder, tmp_path):
    ended = cli("graph", folder / "text.air", "--titles", tmp_path / "t.csv")
    assert (ended.status, "expected --titles with --html" in ended.err) == (1, True)
    ended = cli("graph", folder / "text.air", "--html", tmp_path / "none" / "g.html")
    assert ended.status == 1
    assert "none" in ended.err
    ended = cli("graph", folder / "text.air", "--html", tmp_path / "g.html", "--titles", tmp_path / "t.csv")
    assert ended.status == 1
    assert "t.csv" in ended.err


def test_the_page_recommends_where_it_is_asked_to(folder, tmp_path):
    page = tmp_path / "g.html"
    assert cli("graph", folder / "text.air", "--html", page, "--recommend").status == 0
    assert "class FoldIn" in page.read_text(encoding="utf-8")
    assert cli("graph", folder / "text.air", "--html", page, "--no-recommend").status == 0
    assert "class FoldIn" not in page.read_text(encoding="utf-8")
    ended = cli("graph", folder / "text.air", "--recommend")
    assert ended.status == 1
    assert "expected --recommend with --html" in ended.err
