"""The benchmark of the explorer: its graphs, its table, and a real page in Chromium where there is one."""

import shutil
from contextlib import nullcontext

import numpy as np
import pytest

from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from benchmarks import explorer
from benchmarks.explorer import bench_explorer, chromium, markdown, page
from benchmarks.explorer.made import GraphSize, made_graph


@pytest.mark.parametrize("size", [GraphSize(60, 200, 3), GraphSize(500, 4_000, 7), GraphSize(30, 30, 1)])
def test_a_made_graph_has_the_size_that_is_asked_for_and_no_isolated_node(size):
    graph = made_graph(size)
    assert (len(graph), graph.n_edges) == (size.nodes, size.edges)
    assert (np.diff(graph.to_scipy().indptr) > 0).all()
    assert (graph.to_scipy().toarray() == made_graph(size).to_scipy().toarray()).all()


def test_made_edges_stay_within_groups():
    graph = made_graph(GraphSize(800, 4_000, 8))
    shelf = graph.attributes["shelf"].to_numpy()
    entries = graph.to_scipy().tocoo()
    assert np.mean(shelf[entries.row] == shelf[entries.col]) > 0.8


def test_the_table_for_the_page_has_every_figure_of_a_row():
    row = dict.fromkeys(explorer._ROWS, 1.26) | {"graph": "A"}
    lines = markdown([row, {"graph": "B"}]).splitlines()
    assert lines[:2] == ["| | A | B |", "|---|---|---|"]
    assert len(lines) == 2 + len(explorer._ROWS)
    assert all(line.endswith("| - |") for line in lines[2:])


@pytest.mark.parametrize("missing", ["chromium", "chromedriver"])
def test_a_missing_program_is_named_before_any_work(monkeypatch, missing):
    pytest.importorskip("selenium")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/bin/{name}")
    with pytest.raises(ParameterError, match=f"found no {missing}$"):
        bench_explorer()


def test_a_page_is_measured_in_a_browser(monkeypatch):
    pytest.importorskip("selenium")
    if any(shutil.which(name) is None for name in chromium._PROGRAMS):
        pytest.skip("no chromium and chromedriver on this machine")
    monkeypatch.setattr(page, "_MOVED", 200)
    monkeypatch.setattr(page, "_OPENED", 1)
    monkeypatch.setattr(page, "_CHOSEN", 1)
    monkeypatch.setattr(explorer, "process_apart", lambda: nullcontext(lambda function, *given: function(*given)))
    (row,) = bench_explorer({"few": GraphSize(80, 300, 3)}).rows
    assert row.keys() == {"graph", *explorer._ROWS} - {"community s"}
    assert all(value > 0 for name, value in row.items() if name != "graph")


def test_the_graph_of_communities_is_measured(monkeypatch, tmp_path):
    pytest.importorskip("selenium")
    if any(shutil.which(name) is None for name in chromium._PROGRAMS):
        pytest.skip("no chromium and chromedriver on this machine")
    from air_recsys.report import write_explorer

    monkeypatch.setattr(page, "_MOVED", 200)
    monkeypatch.setattr(page, "_OPENED", 1)
    monkeypatch.setattr(page, "_CHOSEN", 1)
    graph: SimilarityGraph = made_graph(GraphSize(80, 300, 3))
    with chromium.headless_browser() as driver:
        figures = page.measure_page(driver, write_explorer(tmp_path / "few.html", graph, max_nodes=20))
    assert figures.keys() == explorer._ROWS.keys() - {"write s", "size MB", "slider s"}
