"""Questions on the explorer's page, in Chromium: the answers of Python, and plain ones where there is no edge."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from explorer_page import Page

from air_recsys import SimilarityGraph
from air_recsys.report import write_explorer

N = 24


@pytest.fixture(scope="module")
def graph() -> SimilarityGraph:
    rng = np.random.default_rng(0)
    near = np.kron(np.eye(2), np.ones((12, 12))) * 0.5 + 0.1
    half = np.triu(np.round(near * rng.random((N, N)), 3), k=1) * (rng.random((N, N)) < 0.5)
    half[:, -1] = 0  # alone
    table = pd.DataFrame({"title": [f"film {i}" for i in range(N)], "genre": ["War|Drama", "War", "Drama"] * 8})
    return SimilarityGraph(half + half.T, range(N), "item", attributes=table, label="title")


@pytest.fixture
def opened(page: Page, graph: SimilarityGraph, tmp_path: Path) -> Page:
    page.open(write_explorer(tmp_path / "films.html", graph))
    return page


def cells(page: Page, caption: str) -> list[list[str]]:
    return page.script(
        """return [...document.querySelectorAll('#answer table')].filter((t) => t.caption.textContent === arguments[0])
           .flatMap((t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)))""",
        caption,
    )


def test_why_two_films_are_alike(opened: Page, graph: SimilarityGraph) -> None:
    edge = graph.strongest_first()
    a, b = int(edge.row[0]), int(edge.col[0])
    opened.script("explorer.choose({ node: arguments[0], to: arguments[1] })", a, b)
    assert not opened.hidden("#answer")
    told = graph.why(a, b).text
    assert opened.text("#answer-title") == f"Why are film {a} and film {b} alike?"
    assert told.partition(": ")[2].split(".")[0] in opened.text("#answer-text")
    weights = graph.to_scipy().toarray()
    common = np.flatnonzero((weights[a] > 0) & (weights[b] > 0))
    rows = cells(opened, "Common neighbours")
    assert len(rows) == min(10, common.size)
    least = [min(weights[a, int(name[5:])], weights[b, int(name[5:])]) for name, *_ in rows]
    assert least == sorted(np.minimum(weights[a], weights[b])[common], reverse=True)[:10]
    shared = set(graph.why(a, b).tables["features"]["shared"])
    assert {value for _, value, _ in cells(opened, "Shared attributes")} == shared
    opened.script("explorer.choose({ node: arguments[0], to: arguments[1] })", a, N - 1)
    assert f"film {N - 1} has no edge in this graph, to any item." in opened.text("#answer-text")
    opened.find("#close-answer").click()
    assert opened.hidden("#answer")
    assert opened.errors() == []


def test_what_lies_between_two_communities(opened: Page, graph: SimilarityGraph) -> None:
    opened.script("explorer.choose({ community: 0 })")
    assert opened.hidden("#answer")
    opened.choose_option("#beside", "1")
    found = graph.between(0, 1)
    names = dict(zip(graph.ids, graph.labels, strict=True))
    rows = cells(opened, "Strongest edges")
    expected = [
        [names[first], names[second]] for first, second in found.tables["edges"][["first", "second"]].to_numpy()
    ]
    assert sorted(row[:2] for row in rows) == sorted(expected)
    between = found.tables["items"]
    assert {row[0] for row in cells(opened, "Most similar to both")} == {names[item] for item in between["item"]}
    assert found.text.split(" edge")[0] in opened.text("#answer-text")
    opened.find("#answer-tables button").click()
    assert opened.text("#name") in names.values()
    assert opened.hidden("#answer")
    assert opened.errors() == []
