"""Fewer edges and fewer nodes: laws of top, threshold, mass, ego and components."""

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graph_cases import fails, fast, films, graphs, random_adjacency
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs.pruning import common_counts, support_of_ties, to_similarities

CUTS = {
    "top": lambda graph, level: graph.top(1 + int(3 * level)),
    "threshold": lambda graph, level: graph.threshold(level),
    "mass": lambda graph, level: graph.mass(max(level, 0.01)),
}


def edges(graph):
    table = graph.edge_list()
    return {(row.source, row.target): row.weight for row in table.itertuples()}


# -------------------------------------------------------------------- edges


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@fast
@given(graph=graphs(), levels=st.tuples(st.floats(0, 1), st.floats(0, 1)), random=st.randoms())
def test_a_cut_keeps_ids_and_some_edges_more_where_it_is_milder_in_any_order_of_nodes(cut, graph, levels, random):
    before = graph.to_scipy().toarray()
    found, other = (cut(graph, level) for level in levels)
    after = found.to_scipy().toarray()
    np.testing.assert_array_equal(after, after.T)
    np.testing.assert_array_equal(after[after > 0], before[after > 0])
    np.testing.assert_array_equal(found.ids, graph.ids)
    np.testing.assert_array_equal(graph.to_scipy().toarray(), before)
    assert edges(found).keys() <= edges(other).keys() or edges(other).keys() <= edges(found).keys()
    order = random.sample(graph.ids.tolist(), len(graph))
    moved = cut(graph.subgraph(order), levels[0])
    np.testing.assert_array_equal(moved.to_scipy().toarray(), found.subgraph(order).to_scipy().toarray())


@fast
@given(graphs(), st.integers(1, 9))
def test_top_keeps_what_either_end_ranks_among_its_first(graph, k):
    adjacency = graph.to_scipy().toarray()
    rank = (-adjacency).argsort(axis=1).argsort(axis=1)
    chosen = (rank < k) & (adjacency > 0)
    np.testing.assert_array_equal(graph.top(k).to_scipy().toarray(), np.where(chosen | chosen.T, adjacency, 0))
    assert edges(graph.top(k).top(k)) == edges(graph.top(k))


@fast
@given(graphs(), st.floats(0, 1))
def test_threshold_keeps_the_edges_of_at_least_that_weight(graph, weight):
    expected = {pair: found for pair, found in edges(graph).items() if found >= weight}
    assert edges(graph.threshold(weight)) == expected
    for found in edges(graph).values():
        assert found in edges(graph.threshold(found)).values()
    with pytest.raises(ParameterError, match="weight must be a number >= 0 and <= "):
        graph.threshold(80)


@fast
@given(graphs(), st.sampled_from([0.01, 0.3, 0.5, 0.9, 1.0]))
def test_mass_is_held_by_every_node_and_not_with_one_edge_less(graph, share):
    adjacency = graph.to_scipy().toarray()
    chosen = np.zeros_like(adjacency, dtype=bool)
    for node, row in enumerate(adjacency):
        order = np.argsort(-row)[: np.count_nonzero(row)]
        for count in range(order.size + 1):
            if row[order[:count]].sum() >= share * row.sum() - 1e-12:
                chosen[node, order[:count]] = True
                break
    found = graph.mass(share).to_scipy().toarray()
    np.testing.assert_array_equal(found, np.where(chosen | chosen.T, adjacency, 0))


def test_a_share_that_is_held_exactly_needs_no_further_edge_and_of_equal_weights_top_keeps_the_first():
    graph = SimilarityGraph([[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]], "abcd")
    assert edges(graph.mass(0.5)) == {("a", "b"): 2, ("c", "d"): 2}
    assert set(edges(SimilarityGraph(np.ones((4, 4)), "abcd").top(1))) == {("a", "b"), ("a", "c"), ("a", "d")}


def test_mass_of_weights_far_apart_loses_none_of_them():
    graph = SimilarityGraph(random_adjacency(60, 0, density=0.5) ** 8, range(60))
    assert graph.n_edges > 500
    assert edges(graph.mass(1.0)) == edges(graph)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda graph: graph.top(0), "k must be an integer >= 1, found 0"),
        (lambda graph: graph.top(1.5), "k must be an integer >= 1, found 1.5"),
        (lambda graph: graph.threshold(-1), "weight must be a number >= 0 and <= 1, found -1"),
        (lambda graph: graph.threshold(float("nan")), "weight must be a number >= 0 and <= 1, found nan"),
        (lambda graph: graph.mass(0), "share must be a number > 0 and <= 1, found 0"),
        (lambda graph: graph.mass(1.1), "share must be a number > 0 and <= 1, found 1.1"),
        (lambda graph: graph.ego(10, hops=-1), "hops must be an integer >= 0, found -1"),
    ],
)
def test_levels_out_of_range_are_named(cut, message):
    with fails(message, ParameterError):
        cut(films())


# -------------------------------------------------------------------- nodes


@fast
@given(graphs(), st.integers(0, 9))
def test_ego_is_that_of_networkx_in_the_order_of_the_ids(graph, hops):
    for node in graph.ids.tolist():
        expected = nx.ego_graph(graph.to_networkx(), node, radius=hops)
        found = graph.ego(node, hops)
        assert found.ids.tolist() == [id for id in graph.ids.tolist() if id in expected]
        assert edges(found) == {tuple(sorted(pair[:2])): pair[2] for pair in expected.edges.data("weight")}


def test_an_ego_graph_ends_where_the_component_does():
    path = SimilarityGraph(np.eye(5, k=1) + np.eye(5, k=-1), range(5))
    assert path.ego(0).ids.tolist() == path.ego(0, hops=1).ids.tolist() == [0, 1]
    assert path.ego(0, hops=sys.maxsize).ids.tolist() == [0, 1, 2, 3, 4]


@fast
@given(graphs())
def test_components_are_those_of_networkx_largest_first_and_degrees_are_row_sums_and_counts(graph):
    found = graph.components()
    expected = {frozenset(group) for group in nx.connected_components(graph.to_networkx())}
    assert {frozenset(members.index) for _, members in found.groupby(found)} == expected
    sizes = found.value_counts().sort_index()
    assert sizes.index.tolist() == list(range(len(expected)))
    assert sizes.is_monotonic_decreasing
    assert (found.index.name, found.name, found.dtype) == ("item", "component", np.int64)
    adjacency, index = graph.to_scipy().toarray(), pd.Index(graph.ids, name="item")
    pd.testing.assert_series_equal(graph.degrees(), pd.Series(adjacency.sum(axis=1), index, name="degree"))
    counts = pd.Series(np.count_nonzero(adjacency, axis=1), index, name="degree")
    pd.testing.assert_series_equal(graph.degrees(weighted=False), counts)


def test_a_graph_without_nodes_answers_too():
    graph = SimilarityGraph(np.zeros((0, 0)), [])
    assert len(graph.top(1)) == len(graph.threshold(1)) == len(graph.mass(0.5)) == len(graph.subgraph([])) == 0
    spectral = graph.communities(method="spectral")
    for answer in (graph.components(), graph.degrees(), graph.edge_list(), graph.communities(), spectral):
        assert answer.empty
    assert graph.laplacian().shape == (0, 0)


# -------------------------------------------------------------------- weights as they are shown, and ties


@pytest.mark.parametrize("unit", [1e-7, 1.0, 3e5])
def test_similarities_do_not_depend_on_the_unit_and_keep_the_order(unit):
    edges = sp.csr_array(random_adjacency(30, 0, density=0.4))
    shown = to_similarities(sp.csr_array(unit * edges))
    np.testing.assert_array_equal(shown.toarray(), to_similarities(edges).toarray())
    assert shown.data.max() == 1
    assert (np.diff(shown.data[np.argsort(edges.data)]) >= 0).all()
    np.testing.assert_allclose(shown.data, edges.data / edges.data.max(), rtol=5.1e-4)


def test_common_counts_are_those_of_the_rows_and_an_empty_graph_stays_empty():
    rows = (np.random.default_rng(1).random((20, 9)) < 0.5).astype(float)
    first, second = np.nonzero(np.ones((20, 20)))
    np.testing.assert_array_equal(common_counts(sp.csr_array(rows), first, second), (rows @ rows.T).ravel())
    assert common_counts(sp.csr_array(rows), [], []).size == 0
    nothing = sp.csr_array((3, 3))
    assert to_similarities(nothing).nnz == support_of_ties(nothing, sp.csr_array(np.eye(3))).nnz == 0


def test_support_orders_equal_weights_everywhere():
    ids = ["a", "b", "c", "d"]
    edges = sp.csr_array([[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    support = sp.csr_array([[0, 1, 5, 1], [1, 0, 0, 0], [5, 0, 0, 0], [1, 0, 0, 0]])
    graph = SimilarityGraph(edges, ids, "item", support=support)
    assert SimilarityGraph(edges, ids, "item").neighbors("a")["item"].tolist() == ["b", "c", "d"]
    assert [ids[column] for column in graph.strongest_first().col] == ["c", "b", "d"]
    for other in (graph, graph.top(3), graph.mass(1), graph.with_attributes(graph.attributes), graph.ego("a")):
        assert other.neighbors("a")["item"].tolist() == ["c", "b", "d"]
    assert graph.subgraph(["d", "c", "a"]).neighbors("a")["item"].tolist() == ["c", "d"]
    with pytest.raises(DataError, match="expected support of the shape"):
        SimilarityGraph(edges, ids, support=sp.csr_array((3, 3)))
