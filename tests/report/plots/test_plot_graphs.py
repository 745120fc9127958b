"""Pictures of graphs hold the graph's own numbers, draw where they are told, and leave nothing behind."""

import io
import sys
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from air_recsys import AIR, DMF, BiasModel, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.models.learned import Snapshot
from air_recsys.report.plots import (
    community_table,
    effective_neighbors,
    plot_adjacency,
    plot_completion,
    plot_degrees,
    plot_effective_neighbors,
    plot_self_edges,
    plot_snapshots,
    plot_vanishing,
    plot_weights,
    self_edge_share,
)
from air_recsys.report.plots.graphs import community_order, mean_weights
from air_recsys.report.plots.snapshots import graphs_over_time

SHORT = {"device": "cpu", "random_state": 0, "init_std": 0.1, "learning_rate": 0.01, "evaluate_every": 20}


def two_groups(per_group=4, strength=5.0, background=0.1):
    """Even nodes alike, odd nodes alike."""
    parity = np.arange(2 * per_group) % 2
    return SimilarityGraph(
        np.where(parity[:, None] == parity, strength, background), [f"n{i}" for i in range(2 * per_group)], "item"
    )


def random_graph(size, seed, share=0.4):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((size, size)) * (rng.random((size, size)) < share), 1)
    return SimilarityGraph(upper + upper.T, range(size), "user")


def ratings():
    matrix = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((4, 6)))
    matrix[np.random.default_rng(0).random(matrix.shape) < 0.2] = np.nan
    return matrix


@pytest.fixture(scope="module")
def model():
    return AIR.for_completion(n_epochs=60, snapshot_epochs=[0, 20], **SHORT).fit(ratings())


PANELS = [plot_adjacency, plot_degrees, plot_weights]
MODEL_PANELS = [plot_effective_neighbors, plot_self_edges]


def test_the_heatmap_is_the_permuted_adjacency():
    graph = two_groups()
    order, labels = community_order(graph)
    drawn = plot_adjacency(graph).axes[0].images[0].get_array()
    np.testing.assert_array_equal(drawn, graph.to_scipy().toarray()[np.ix_(order, order)])
    assert labels.tolist() == [0] * 4 + [1] * 4
    assert {i % 2 for i in order[:4]} != {i % 2 for i in order[4:]}


def test_a_line_parts_two_communities_and_none_parts_single_nodes():
    parted = plot_adjacency(two_groups()).axes[0]
    assert sorted({line.get_xdata()[0] for line in parted.lines} - {0, 1}) == [4]
    lonely = SimilarityGraph(np.zeros((4, 4)), "abcd")
    assert plot_adjacency(lonely).axes[0].lines[:] == []
    assert "4 communities" in plot_adjacency(lonely).axes[0].get_title()


@settings(max_examples=25)
@given(size=st.integers(1, 30), cells=st.integers(1, 30), seed=st.integers(0, 99))
def test_means_over_blocks_keep_the_total_weight(size, cells, seed):
    graph = random_graph(size, seed)
    order = np.random.default_rng(seed).permutation(size)
    means, block = mean_weights(graph, order, cells)
    assert len(means) <= cells
    assert block == -(-size // cells)
    counts = np.diff([*range(0, size, block), size])
    assert (means * np.outer(counts, counts)).sum() == pytest.approx(graph.to_scipy().sum())
    np.testing.assert_allclose(means, means.T)
    if block == 1:
        np.testing.assert_array_equal(means, graph.to_scipy().toarray()[np.ix_(order, order)])


def test_a_large_graph_is_drawn_in_blocks_that_the_colour_bar_names():
    size = 2_500
    ring = sp.csr_array((np.ones(size), (np.arange(size), (np.arange(size) + 1) % size)), shape=(size, size))
    figure = plot_adjacency(SimilarityGraph(ring + ring.T, range(size)), communities=np.arange(size) // 500)
    assert figure.axes[0].images[0].get_array().shape == (834, 834)
    assert figure.axes[1].get_ylabel() == "mean weight of 3 x 3 nodes"


def test_other_communities_can_be_given():
    graph = two_groups()
    halves = np.arange(8) // 4
    drawn = plot_adjacency(graph, communities=halves).axes[0].images[0].get_array()
    order, _ = community_order(graph, halves)
    assert (order[:4] < 4).all()
    np.testing.assert_array_equal(drawn, graph.to_scipy().toarray()[np.ix_(order, order)])
    with pytest.raises(DataError, match=r"expected 8 communities, one per node, found shape \(3,\)"):
        plot_adjacency(graph, communities=[0, 1, 1])


def test_the_most_connected_stand_first_in_their_community():
    graph = random_graph(30, 1)
    order, labels = community_order(graph)
    degrees = graph.to_scipy().sum(axis=1)[order]
    for label in np.unique(labels):
        assert (np.diff(degrees[labels == label]) <= 0).all()
    assert sorted(order) == list(range(30))


def test_degrees_and_weights_count_every_node_and_every_edge():
    graph = random_graph(40, 2)
    bars = plot_degrees(graph).axes[0].patches[:-1]  # the last patch is the line of effective numbers
    assert sum(bar.get_height() for bar in bars) == 40
    assert sum(bar.get_height() for bar in plot_weights(graph).axes[0].patches) == graph.n_edges
    equal = two_groups(background=0.0)
    assert sum(bar.get_height() for bar in plot_weights(equal).axes[0].patches) == equal.n_edges == 12


@settings(max_examples=25)
@given(size=st.integers(2, 25), seed=st.integers(0, 99))
def test_effective_neighbours_lie_between_one_and_all(size, seed):
    graph = random_graph(size, seed)
    found, counts = effective_neighbors(graph), np.diff(graph.to_scipy().indptr)
    assert (found[counts == 0] == 0).all()
    assert (found[counts > 0] >= 1 - 1e-9).all()
    assert (found <= counts + 1e-9).all()
    scaled = SimilarityGraph(7 * graph.to_scipy(), range(size))
    np.testing.assert_allclose(effective_neighbors(scaled), found)
    uniform = SimilarityGraph(graph.to_scipy() > 0, range(size))
    np.testing.assert_allclose(effective_neighbors(uniform), counts)


def test_communities_in_a_table():
    graph = two_groups(background=0.0)
    table = community_table(graph, n_members=2)
    assert table["size"].tolist() == [4, 4]
    assert table["inside"].tolist() == [1, 1]
    assert all(len(members) == 2 for members in table["members"])
    mixed = community_table(two_groups(), pd.Series(np.arange(8) // 4))
    assert (mixed["inside"] < 0.5).all()
    assert community_table(SimilarityGraph(np.zeros((3, 3)), "abc")).empty


def test_the_snapshots_side_by_side_are_the_models(model):
    axes = plot_snapshots(model).axes
    assert [one.get_title() for one in axes] == ["epoch 0", "epoch 20", "epoch 60"] * 2
    drawn = [one.images[0].get_array() for one in axes]
    users = [*(model.snapshots_[epoch].user_graph.to_scipy() for epoch in (0, 20)), model.user_adjacency_]
    for values, graph in zip(drawn, users, strict=False):
        full = graph.toarray()
        np.testing.assert_allclose(np.sort(values.ravel()), np.sort(full.ravel()))
        np.testing.assert_allclose(np.linalg.eigvalsh(values), np.linalg.eigvalsh(full), atol=1e-9)  # a permutation


def test_large_groups_of_the_first_graph_stand_together_and_fall_apart_into_the_last_ones():
    node = np.arange(16)
    coarse = SimilarityGraph(np.where((node[:, None] - node) % 2 == 0, 5.0, 0.1), node, "user")
    fine = SimilarityGraph(np.where((node[:, None] - node) % 4 == 0, 5.0, 0.0), node, "user")
    graphs = {"user_adjacency_": fine.to_scipy(), "item_adjacency_": None}
    about = SimpleNamespace(user_ids=node)
    course = SimpleNamespace(snapshots_={3: Snapshot(coarse, None, [])}, interactions_=about, n_iter_=9, **graphs)
    first, last = (axes.images[0].get_array() for axes in plot_snapshots(cast(Any, course)).axes)
    for values, blocks in ((first, 2), (last, 4)):
        block = node * blocks // 16
        expected = (block[:, None] == block) & ~np.eye(16, dtype=bool)
        np.testing.assert_array_equal(values > 1, expected)


def test_some_epochs_of_the_snapshots(model):
    assert [axes.get_title() for axes in plot_snapshots(model, [60, 0]).axes] == ["epoch 0", "epoch 60"] * 2
    with pytest.raises(ParameterError, match=r"epochs must be of the snapshots \[0, 20, 60\], found \[7\]"):
        plot_snapshots(model, [7])
    with pytest.raises(ParameterError, match=r"found \[\]"):
        plot_snapshots(model, [])


def test_the_share_of_the_self_edges_is_that_of_the_engine():
    """Of a softmax P the graph keeps (P + P^T)/2 without diagonal; the mean of P_ii comes back from it."""
    logits = np.random.default_rng(0).normal(size=(7, 7))
    softmax = np.exp(-logits) / np.exp(-logits).sum(axis=1, keepdims=True)
    graph = SimilarityGraph((softmax + softmax.T) / 2, range(7))
    assert self_edge_share(graph) == pytest.approx(np.diag(softmax).mean())


def test_self_edges_and_neighbours_over_time(model):
    course = graphs_over_time(model)
    shares = [line.get_ydata().tolist() for line in plot_self_edges(model).axes[0].lines]
    assert shares == [[self_edge_share(graph) for graph in graphs.values()] for graphs in course.values()]
    assert all(0 <= share <= 1 for line in shares for share in line)
    counts = [line.get_ydata() for line in plot_effective_neighbors(model).axes[0].lines]
    np.testing.assert_allclose(counts[0], [effective_neighbors(graph).mean() for graph in course["user"].values()])
    assert len(plot_vanishing(model).axes) == 2


def test_other_adjacencies_have_no_self_edges():
    other = AIR.for_completion(n_epochs=5, adjacency="global_sum", **SHORT).fit(ratings())
    assert [axes.get_title() for axes in plot_vanishing(other).axes] == ["Effective number of neighbours"]
    with pytest.raises(DataError, match="which has self-edges, found"):
        plot_self_edges(other)


def test_users_who_came_after_training_are_not_in_the_snapshots():
    frame = Interactions.from_dense(ratings()).to_frame()
    grown = AIR.for_completion(n_epochs=20, snapshot_epochs=[0, 10], **SHORT).fit(frame)
    grown.partial_fit(pd.DataFrame({"user": [99, 99], "item": [0, 7], "rating": [5.0, 1.0]}))
    assert {kind: list(graphs) for kind, graphs in graphs_over_time(grown).items()} == {
        "user": [0, 10],
        "item": [0, 10, 20],
    }
    plot_snapshots(grown).savefig(io.BytesIO(), dpi=40)
    plot_vanishing(grown).savefig(io.BytesIO(), dpi=40)


def test_one_graph_and_none():
    half = AIR.for_completion(n_epochs=10, item_graph_reg=0.0, snapshot_epochs=[5], **SHORT).fit(ratings())
    assert [axes.get_title() for axes in plot_snapshots(half).axes] == ["epoch 5", "epoch 10"]
    for plot in (plot_snapshots, plot_vanishing, plot_effective_neighbors):
        with pytest.raises(DataError, match="expected a model with learned graphs, found a BiasModel without"):
            plot(BiasModel().fit(ratings()))


def test_the_axes_given_are_used_and_graphs_without_edges_are_drawn(model):
    for plot in [*PANELS, *MODEL_PANELS]:
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert plot(model if plot in MODEL_PANELS else two_groups(), ax=right) is figure
        assert all((right.get_title(), right.get_xlabel(), right.get_ylabel()))
        assert not left.has_data()
    for plot in PANELS:
        for size in (1, 5):  # without edges
            plot(SimilarityGraph(np.zeros((size, size)), range(size))).savefig(io.BytesIO(), dpi=40)


@pytest.mark.parametrize("plot", [*PANELS, *MODEL_PANELS, plot_snapshots, plot_vanishing, plot_completion])
def test_no_display_is_needed_and_nothing_stays(plot, model, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # would choose a display and keep the figure
    target = io.BytesIO()
    plot(two_groups() if plot in PANELS else model).savefig(target, dpi=40)
    assert target.getvalue().startswith(b"\x89PNG")


def panels(figure):
    return [axes for axes in figure.axes if axes.get_title()]


def values(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def test_four_panels_with_titles_labels_and_colour_bars(model):
    figure = plot_completion(model)
    titles = [axes.get_title() for axes in panels(figure)]
    assert len(figure.axes) == 8
    share = f"{model.interactions_.density:.0%}"
    assert titles[:2] == [f"Given: {share} of the ratings", "Completed"]
    assert [title.partition(":")[0] for title in titles[2:]] == ["Learned user graph", "Learned item graph"]
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in panels(figure)]
    assert labels == [("items", "users"), ("items", "users"), ("users", "users"), ("items", "items")]
    first, second = (axes.images[0].norm for axes in panels(figure)[:2])
    assert isinstance(first, Normalize)
    assert (first.vmin, first.vmax) == (second.vmin, second.vmax) == (1, 5)


def test_the_panels_show_the_model_sorted_by_community(model):
    given, completed, users, items = map(values, panels(plot_completion(model)))
    rows, columns = (
        np.argsort(graph.communities().to_numpy(), kind="stable") for graph in (model.user_graph_, model.item_graph_)
    )
    np.testing.assert_array_equal(given, model.interactions_.to_dense()[np.ix_(rows, columns)])
    data = model.interactions_
    pairs = np.repeat(data.user_ids, data.n_items), np.tile(data.item_ids, data.n_users)
    np.testing.assert_allclose(completed, model.predict(*pairs).reshape(given.shape)[np.ix_(rows, columns)])
    np.testing.assert_array_equal(users, model.user_graph_.to_scipy().toarray()[np.ix_(rows, rows)])
    np.testing.assert_array_equal(items, model.item_graph_.to_scipy().toarray()[np.ix_(columns, columns)])


def test_ratings_that_are_all_equal_can_be_drawn():
    ratings = np.where(np.eye(6) > 0, np.nan, 3.0)
    constant = AIR.for_completion(n_epochs=5, unobserved_weight=0.1, device="cpu", random_state=0).fit(ratings)
    plot_completion(constant).savefig(io.BytesIO(), dpi=40)


def test_models_that_cannot_be_drawn():
    matrix = np.arange(1.0, 13.0).reshape(3, 4)
    half = AIR.for_completion(n_epochs=1, item_graph_reg=0.0, device="cpu")
    for plain in (BiasModel(), DMF(n_epochs=1, device="cpu"), half):
        found = f"expected a model with both graphs, found a {type(plain).__name__}"
        with pytest.raises(DataError, match=found):
            plot_completion(plain.fit(matrix))
    with pytest.raises(DataError, match=r"expected at most 2,?000 users and items, found 2,?001 and 3"):
        plot_completion(
            AIR.for_ratings(n_factors=1, n_sweeps=1, device="cpu").fit(np.arange(6003).reshape(2001, 3) % 5 + 1)
        )
