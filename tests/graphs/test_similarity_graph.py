"""`SimilarityGraph`: what it accepts, what it answers, and the ways out of it."""

import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import DataError, ParameterError, UnknownIdError

fast = settings(max_examples=30)
TRIANGLE = [[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def fails(message, error: type[Exception] = DataError):
    return pytest.raises(error, match=re.escape(message))


def random_adjacency(size, seed, density=0.5):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((size, size)) * (rng.random((size, size)) < density), 1)
    return upper + upper.T


def two_cliques():
    """Nodes 0, 2, 4 and nodes 1, 3, 5, 6, 8, one weak edge between the two; node 7 is isolated."""
    adjacency = np.zeros((9, 9))
    for clique in ([0, 2, 4], [1, 3, 5, 6, 8]):
        adjacency[np.ix_(clique, clique)] = 1.0
    adjacency[0, 1] = adjacency[1, 0] = 0.1
    return SimilarityGraph(adjacency, [f"n{row}" for row in range(9)], "user")


# -------------------------------------------------------------------- what it accepts


@fast
@given(
    st.integers(1, 8), st.integers(0, 999), st.sampled_from([np.asarray, sp.csr_array, sp.coo_matrix, sp.csc_array])
)
def test_every_container_gives_the_same_graph(size, seed, container):
    adjacency = random_adjacency(size, seed)
    graph = SimilarityGraph(container(adjacency), range(size))
    np.testing.assert_array_equal(graph.to_scipy().toarray(), adjacency)
    assert len(graph) == size
    assert graph.n_edges == np.count_nonzero(adjacency) / 2


def test_diagonal_and_what_float32_leaves_of_zero_are_ignored():
    adjacency = np.array([[9.0, 1.0, 1e-9], [1.0, 9.0, 2.0], [1e-9, 2.0, 0.0]])
    graph = SimilarityGraph(adjacency, "abc")
    assert graph.n_edges == 2
    assert graph.to_scipy().nnz == 4
    assert not graph.to_scipy().diagonal().any()


def test_rounding_is_no_asymmetry_and_the_result_is_exactly_symmetric():
    for unit in (1e-6, 1, 1e6):
        adjacency = unit * np.array(TRIANGLE)
        adjacency[0, 1] *= 1 + 1e-7
        matrix = SimilarityGraph(adjacency, "abc").to_scipy()
        assert (matrix != matrix.T).nnz == 0
        adjacency[0, 1] *= 1.1
        with fails("expected a symmetric adjacency, found a difference of"):
            SimilarityGraph(adjacency, "abc")


def test_stored_zeros_are_no_edges_and_weights_are_floats():
    matrix = sp.csr_array(np.array(TRIANGLE, dtype=np.int64))
    matrix.data[matrix.data == 1] = 0
    graph = SimilarityGraph(matrix, "abc")
    assert graph.n_edges == 1
    assert graph.to_scipy().dtype == np.float64


def test_the_graph_shares_no_memory_with_the_caller():
    given_matrix = sp.csr_array(TRIANGLE)
    graph = SimilarityGraph(given_matrix, "abc")
    given_matrix.data[:] = 7
    graph.to_scipy().data[:] = 7
    np.testing.assert_array_equal(graph.to_scipy().toarray(), TRIANGLE)


@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (np.zeros((2, 3)), "expected an adjacency of 3 x 3, one row per id, found shape (2, 3)"),
        (np.zeros((2, 2)), "expected an adjacency of 3 x 3, one row per id, found shape (2, 2)"),
        (np.zeros(3), "expected an adjacency of 3 x 3"),
        (-np.array(TRIANGLE), "expected finite weights >= 0, found -2..-1"),
        (np.array(TRIANGLE) * np.nan, "expected finite weights >= 0, found nan"),
        ([[0, np.inf, 0], [np.inf, 0, 0], [0, 0, 0]], "expected finite weights >= 0, found inf..inf"),
        (np.triu(TRIANGLE), "expected a symmetric adjacency, found a difference of 2"),
    ],
)
def test_unusable_matrices_are_named(adjacency, message):
    with fails(message):
        SimilarityGraph(adjacency, "abc")


def test_ids_must_be_distinct():
    with fails("node ids must be distinct, found 'a' twice"):
        SimilarityGraph(TRIANGLE, "aba")


def test_repr_counts_nodes_edges_and_isolated_ones():
    assert repr(two_cliques()) == "SimilarityGraph(9 users, 14 edges, 1 isolated, 2 components, weights 0.1..1)"


# -------------------------------------------------------------------- what it answers


@fast
@given(st.integers(1, 8), st.integers(0, 999))
def test_laplacian_laws(size, seed):
    adjacency = random_adjacency(size, seed)
    matrix = SimilarityGraph(adjacency, range(size)).laplacian()
    assert sp.issparse(matrix)
    np.testing.assert_allclose(matrix.toarray(), np.diag(adjacency.sum(axis=1)) - adjacency, atol=1e-14)
    np.testing.assert_allclose(matrix @ np.ones(size), 0, atol=1e-14)


def test_neighbors_come_strongest_first_and_ties_in_the_order_of_ids():
    adjacency = np.zeros((5, 5))
    adjacency[2] = [1, 3, 0, 3, 1]
    graph = SimilarityGraph(adjacency + adjacency.T, [10, 11, 12, 13, 14], "item")
    expected = pd.DataFrame({"item": [11, 13, 10, 14], "weight": [3.0, 3.0, 1.0, 1.0]})
    pd.testing.assert_frame_equal(graph.neighbors(12), expected)
    pd.testing.assert_frame_equal(graph.neighbors(12, n=2), expected.head(2))
    assert graph.neighbors(10)["item"].tolist() == [12]


def test_ten_neighbors_come_where_no_number_is_asked_for():
    assert len(SimilarityGraph(1 - np.eye(13), range(13)).neighbors(0)) == 10


def test_ties_among_many_keep_the_order_of_ids():
    levels = np.random.default_rng(0).integers(1, 3, 60).astype(float)
    adjacency = np.zeros((61, 61))
    adjacency[60, :60] = adjacency[:60, 60] = levels
    found = SimilarityGraph(adjacency, range(61)).neighbors(60, n=60)["node"]
    assert found.tolist() == [*np.flatnonzero(levels == 2), *np.flatnonzero(levels == 1)]


def test_an_isolated_node_has_no_neighbors():
    found = two_cliques().neighbors("n7")
    assert found.empty
    assert list(found.columns) == ["user", "weight"]


def test_unknown_node_and_bad_n():
    with fails("1 user id(s) were not in the training data: 'n99'", UnknownIdError):
        two_cliques().neighbors("n99")
    with fails("n must be an integer >= 1, found 0", ParameterError):
        two_cliques().neighbors("n0", n=0)


@fast
@given(st.integers(2, 8), st.integers(0, 999), st.randoms())
def test_permuting_the_nodes_changes_no_answer(size, seed, random):
    adjacency = random_adjacency(size, seed, density=0.9)
    order = random.sample(range(size), size)
    graph = SimilarityGraph(adjacency, range(size))
    moved = SimilarityGraph(adjacency[np.ix_(order, order)], order)
    for node in range(size):
        pd.testing.assert_frame_equal(moved.neighbors(node), graph.neighbors(node))


# -------------------------------------------------------------------- communities and ways out


def test_communities_of_two_cliques_are_the_cliques_largest_first():
    communities = two_cliques().communities()
    assert communities.index.tolist() == [f"n{row}" for row in range(9)]
    assert (communities.index.name, communities.name) == ("user", "community")
    assert communities.tolist() == [1, 0, 1, 0, 1, 0, 0, 2, 0]


def test_communities_without_edges_are_single_nodes():
    communities = SimilarityGraph(np.zeros((3, 3)), "abc").communities()
    assert communities.tolist() == [0, 1, 2]


def test_communities_are_the_same_for_the_same_seed_and_finer_at_a_higher_resolution():
    graph = SimilarityGraph(random_adjacency(30, 0, density=0.3), range(30))
    pd.testing.assert_series_equal(graph.communities(random_state=3), graph.communities(random_state=3))
    pd.testing.assert_series_equal(graph.communities(), graph.communities(random_state=0))
    assert graph.communities().tolist() != graph.communities(random_state=1).tolist()
    assert graph.communities(resolution=5.0).nunique() > graph.communities(resolution=0.5).nunique()


def test_communities_check_their_parameters():
    with fails("resolution must be a number > 0, found 0", ParameterError):
        two_cliques().communities(resolution=0)
    with fails("random_state must be an integer >= 0, found -1", ParameterError):
        two_cliques().communities(random_state=-1)


def test_networkx_keeps_nodes_edges_and_weights():
    graph = two_cliques()
    found = graph.to_networkx()
    assert list(found.nodes) == graph.ids.tolist()
    assert found.number_of_edges() == graph.n_edges
    np.testing.assert_array_equal(nx.to_numpy_array(found), graph.to_scipy().toarray())
    assert set(graph.to_networkx(labels=False).nodes) == set(range(9))


def test_integer_ids_become_plain_integers():
    found = SimilarityGraph(TRIANGLE, np.array([7, 8, 9])).to_networkx()
    assert [type(node) for node in found.nodes] == [int, int, int]


@pytest.mark.parametrize("as_text", [True, False])
def test_graphml_round_trip(tmp_path, as_text):
    graph = two_cliques()
    path = tmp_path / "graph.graphml"
    assert graph.to_graphml(str(path) if as_text else path) == path
    again = nx.read_graphml(path)
    np.testing.assert_array_equal(nx.to_numpy_array(again, nodelist=graph.ids), graph.to_scipy().toarray())


def test_graphml_needs_an_existing_folder(tmp_path):
    with fails("expected an existing folder for graph.graphml", ParameterError):
        two_cliques().to_graphml(tmp_path / "nowhere" / "graph.graphml")
