"""Measures of layouts: continuity, neighbours that are kept, and the bar for the explorer's positions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.manifold import trustworthiness

from air_recsys import AIR, SimilarityGraph
from air_recsys.datasets import load_movielens, load_movielens_items
from air_recsys.report.layout import node_positions
from benchmarks.graphs import layout, rival_layouts
from benchmarks.graphs.layout import bench_layout, continuity, neighbors_kept
from benchmarks.graphs.rival_layouts import path_lengths


def distances(points):
    return np.linalg.norm(points[:, None] - points, axis=2)


@pytest.fixture(scope="module")
def ring() -> SimilarityGraph:
    """60 nodes in a circle, each joined to the three next on both sides, nearer ones more."""
    steps = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    steps = np.minimum(steps, 60 - steps)
    weights = np.where((steps > 0) & (steps <= 3), 1 / np.maximum(steps, 1), 0)
    return SimilarityGraph(weights, range(60)).with_attributes(
        pd.DataFrame({"title": [f"t{i}" for i in range(60)]}), "title"
    )


def test_continuity_is_trustworthiness_with_both_spaces_exchanged():
    rng = np.random.default_rng(0)
    high, low = rng.normal(size=(50, 5)), rng.normal(size=(50, 2))
    exchanged = trustworthiness(low, high, n_neighbors=7)
    assert continuity(distances(high), low, 7) == pytest.approx(exchanged)


def test_random_positions_keep_little_and_a_circle_all(ring):
    angles = 2 * np.pi * np.arange(60) / 60
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    assert neighbors_kept(ring, circle).tolist() == [1.0] * 60
    assert continuity(path_lengths(ring), circle, 6) > 0.999
    shuffled = np.random.default_rng(0).permutation(circle)
    assert continuity(path_lengths(ring), shuffled, 6) < 0.7
    assert neighbors_kept(ring, shuffled).mean() < 0.7


def test_two_components_are_far_apart():
    pairs = SimilarityGraph(np.kron(np.eye(2), [[0, 0.5], [0.5, 0]]), range(4))
    assert path_lengths(pairs)[0].tolist() == [0, 2, 4, 4]


def test_the_table_has_every_layout_and_the_one_that_is_watched(ring, monkeypatch):
    monkeypatch.setattr(layout, "layouts", lambda: {"explorer": node_positions, "forces": rival_layouts.forces})
    table = bench_layout({"ring": ring}, "t7")
    assert [row["layout"] for row in table.rows] == ["explorer", "forces"]
    assert all(row["trustworthiness"] > 0.9 and row["continuity"] > 0.9 for row in table.rows)
    assert table.rows[0]["kept of the one"] == 1


def test_layouts_that_are_installed_place_every_node(ring):
    found = rival_layouts.layouts()
    assert {"explorer", "spectral", "ForceAtlas2 (NetworkX)"} <= found.keys()
    for name in found.keys() - {"UMAP"}:
        assert found[name](ring).shape == (60, 2)


@pytest.mark.data
def test_films_stand_among_their_neighbours(data_root):
    model = AIR.for_ratings(random_state=0, device="cpu").fit(load_movielens(data_root, "100k"))
    assert model.item_graph_ is not None
    graph = model.item_graph_.with_attributes(load_movielens_items(data_root, "100k"), "title")
    positions = node_positions(graph)
    lengths = path_lengths(graph)
    assert trustworthiness(lengths, positions, n_neighbors=10, metric="precomputed") > 0.98
    kept = neighbors_kept(graph, positions)
    assert kept.mean() > 0.75
    assert kept[graph.labels.tolist().index("Star Wars (1977)")] >= 0.5
