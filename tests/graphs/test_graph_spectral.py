"""Laplacian, its eigenpairs, and communities by either method."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from graph_cases import cliques, fails, fast, films, graphs, planted, random_adjacency, same_partition
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import spectral
from air_recsys.graphs.spectral import by_size, each_component, smallest_eigenpairs

METHODS = ("louvain", "spectral")


def ring(size):
    rows = np.arange(size)
    half = sp.csr_array((np.ones(size), (rows, (rows + 1) % size)), shape=(size, size))
    return sp.csr_array(half + half.T)


# -------------------------------------------------------------------- Laplacian


@fast
@given(graphs(), st.booleans())
def test_the_laplacian_is_positive_semidefinite_and_its_kernel_counts_the_components(graph, normalized):
    matrix = graph.laplacian(normalized=normalized).toarray()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
    values = np.linalg.eigvalsh(matrix)
    assert values.min() > -1e-10
    assert np.count_nonzero(values < 1e-10) == graph.components().nunique()
    if normalized:
        assert values.max() < 2 + 1e-10


@fast
@given(graphs())
def test_the_normalised_laplacian_is_the_other_scaled_by_the_degrees(graph):
    roots = np.sqrt(graph.degrees().to_numpy())
    scale = np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)
    expected = scale[:, None] * graph.laplacian().toarray() * scale
    np.testing.assert_allclose(graph.laplacian(normalized=True).toarray(), expected, atol=1e-12)


@pytest.mark.parametrize(("size", "k"), [(80, 1), (80, 5), (450, 1), (450, 5)])
def test_eigenpairs_are_those_of_the_full_decomposition(size, k):
    """Of a small graph, and of one whose pairs are found step by step."""
    graph = SimilarityGraph(random_adjacency(size, 3, density=0.2), range(size))
    assert graph.components().nunique() == 1
    values, vectors = smallest_eigenpairs(graph.to_scipy(), k)
    matrix = graph.laplacian(normalized=True)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix.toarray())[1 : k + 1], atol=1e-7)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-7)


def test_all_eigenpairs_of_a_bipartite_graph():
    """The eigenvalue 2 must not mix with the one that is left out."""
    values, vectors = smallest_eigenpairs(ring(6).astype(float), 5)
    np.testing.assert_allclose(values, [0.5, 0.5, 1.5, 1.5, 2], atol=1e-12)
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-12)


def test_large_graphs_get_the_same_eigenpairs_every_time():
    graph = SimilarityGraph(random_adjacency(500, 0, density=0.02), range(500)).to_scipy()
    values, vectors = smallest_eigenpairs(graph, 3)
    again, vectors_again = smallest_eigenpairs(graph, 3)
    np.testing.assert_array_equal(values, again)
    np.testing.assert_array_equal(vectors, vectors_again)


@pytest.fixture
def no_convergence(monkeypatch):
    """As of graphs on which the iteration does not converge."""
    monkeypatch.setattr(spectral, "_ITERATIONS", 1)


@pytest.mark.usefixtures("no_convergence")
def test_a_factorisation_finds_the_smallest_eigenvalues_where_the_largest_are_others():
    graph = SimilarityGraph(random_adjacency(500, 0, density=0.02), range(500))
    values, _ = smallest_eigenpairs(graph.to_scipy(), 3)
    expected = np.linalg.eigvalsh(graph.laplacian(normalized=True).toarray())
    np.testing.assert_allclose(values, expected[1:4], rtol=1e-6)


def test_nodes_of_a_component_keep_their_order():
    owners = np.random.default_rng(0).integers(3, size=200)
    adjacency = sp.csr_array((owners[:, None] == owners) * (1.0 - np.eye(200)))
    for rows, part in each_component(adjacency):
        assert (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(part.toarray(), adjacency[rows][:, rows].toarray())


@pytest.mark.usefixtures("no_convergence")
def test_where_the_iteration_does_not_converge_a_factorisation_does():
    values, vectors = smallest_eigenpairs(ring(2000), 2)
    np.testing.assert_allclose(values, 1 - np.cos(2 * np.pi / 2000), rtol=1e-4)
    np.testing.assert_allclose(np.square(vectors).sum(axis=1), 2 / 2000, rtol=1e-4)  # a circle


# -------------------------------------------------------------------- communities


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_groups_are_found_largest_first(method, seed):
    graph, groups = planted(seed=seed)
    found = graph.communities(method=method)
    assert found.tolist() == groups.tolist()  # planted from the largest to the smallest


@pytest.mark.parametrize("method", METHODS)
def test_permuting_the_nodes_moves_no_node_to_other_company(method):
    graph, _ = planted()
    order = np.random.default_rng(1).permutation(graph.ids)
    moved = graph.subgraph(order).communities(method=method)
    pd.testing.assert_series_equal(moved.reindex(graph.ids), graph.communities(method=method), check_names=False)


@pytest.mark.parametrize("method", METHODS)
@fast
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=7))
def test_cliques_side_by_side_are_communities_of_their_own(method, sizes):
    graph = cliques(*sizes)
    found = graph.communities(method=method)
    assert same_partition(found.tolist(), graph.components().tolist())
    assert found.value_counts().sort_index().is_monotonic_decreasing


@fast
@given(graphs(), st.data())
def test_spectral_finds_as_many_as_asked_and_cuts_no_two_components_into_one(graph, data):
    components = graph.components()
    lonely = (graph.degrees(weighted=False) == 0).to_numpy()
    n_parts = components[~lonely].nunique()
    wanted = data.draw(st.integers(n_parts, int(np.count_nonzero(~lonely))))
    if wanted == 0:
        return
    found = graph.communities(method="spectral", n_communities=wanted)
    assert found.groupby(found).agg(lambda members: components[members.index].nunique()).max() == 1
    assert found[~lonely].nunique() == wanted  # distinct weights: no twins
    assert set(found[lonely]).isdisjoint(found[~lonely])
    assert found[lonely].is_unique


def test_the_same_seed_gives_the_same_spectral_communities():
    graph = SimilarityGraph(random_adjacency(40, 0, density=0.3), range(40))
    first, again = (graph.communities(7, method="spectral", n_communities=5) for _ in range(2))
    pd.testing.assert_series_equal(first, again)
    assert first.nunique() == 5


@pytest.mark.parametrize("wanted", range(1, 7))
def test_twins_are_cut_apart_where_so_many_communities_are_asked_for(wanted):
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    assert SimilarityGraph(star, range(6)).communities(method="spectral", n_communities=wanted).nunique() == wanted


def test_hubs_and_nodes_of_few_edges_are_told_apart_by_company_and_not_by_degree():
    rng = np.random.default_rng(0)
    groups, sizes = np.arange(60) % 3, 10 ** rng.uniform(-2, 2, 60)
    weights = np.outer(sizes, sizes) * np.where(groups[:, None] == groups, 1, 0.05) * rng.uniform(0.5, 1.5, (60, 60))
    graph = SimilarityGraph(np.triu(weights, 1) + np.triu(weights, 1).T, range(60))
    assert same_partition(graph.communities(method="spectral", n_communities=3).tolist(), groups.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_many_groups_are_all_found(seed):
    graph, groups = planted([8] * 20, inside=0.9, outside=0.01, seed=seed)
    assert same_partition(graph.communities(seed, method="spectral", n_communities=20).tolist(), groups.tolist())


def ring_of_cliques(n_cliques):
    adjacency, ends = scipy.linalg.block_diag(*[np.ones((4, 4))] * n_cliques), 4 * np.arange(n_cliques)
    adjacency[ends, (ends + 5) % len(adjacency)] += 0.01
    return np.maximum(adjacency, adjacency.T)


def test_more_communities_may_be_asked_for_than_are_looked_for():
    graph = SimilarityGraph(ring_of_cliques(40), range(160))
    found = graph.communities(method="spectral", n_communities=40).tolist()
    assert same_partition(found, np.repeat(range(40), 4).tolist())


@pytest.mark.parametrize(("rings", "apart"), [([31], True), ([32], False), ([16, 16], True), ([16, 17], False)])
def test_the_gap_may_ask_for_thirty_communities_more_than_components(rings, apart):
    graph = SimilarityGraph(scipy.linalg.block_diag(*map(ring_of_cliques, rings)), range(4 * sum(rings)))
    assert graph.components().nunique() == len(rings)
    found = graph.communities(method="spectral").nunique()
    assert (found == sum(rings)) == apart
    assert found <= 30 + len(rings)


def test_of_components_alike_the_first_are_cut():
    pairs = cliques(*[2] * 40)
    found = pairs.communities(method="spectral", n_communities=45).to_numpy().reshape(40, 2)
    assert (found[:, 0] != found[:, 1]).tolist() == [True] * 5 + [False] * 35


@pytest.mark.parametrize("method", METHODS)
def test_communities_are_a_series_of_that_name(method):
    found = cliques(3, 2, 1).communities(method=method)
    assert (found.name, found.dtype) == ("community", np.int64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "leiden"}, "method must be one of 'louvain', 'spectral', found 'leiden'"),
        ({"n_communities": 3}, "Louvain finds the number of communities itself, found n_communities=3"),
        (
            {"method": "spectral", "resolution": 2.0},
            "resolution is for Louvain: set n_communities, found resolution=2",
        ),
        ({"method": "spectral", "n_communities": 0}, "n_communities must be an integer >= 1, found 0"),
        ({"method": "spectral", "n_communities": 4}, "components with edges, 1, and that of nodes with edges, 3"),
    ],
)
def test_parameters_of_communities_are_checked(arguments, message):
    with fails(message, ParameterError):
        films().communities(**arguments)


def test_groups_are_numbered_by_size_and_then_by_first_member():
    assert by_size(np.array([9, 2, 2, 5, 5, 7])).tolist() == [2, 0, 0, 1, 1, 3]
