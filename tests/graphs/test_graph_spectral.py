"""Laplacian, spectral coordinates, and communities by either method."""

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse as sp
from graph_cases import fails, fast, films, graphs, planted, random_adjacency, same_partition
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import spectral
from air_recsys.graphs.spectral import by_size, eigenmaps, smallest_eigenpairs

METHODS = ("louvain", "spectral")


def ring(size):
    rows = np.arange(size)
    half = sp.csr_array((np.ones(size), (rows, (rows + 1) % size)), shape=(size, size))
    return sp.csr_array(half + half.T)


def cliques(*sizes):
    """Complete graphs side by side; a clique of one is an isolated node."""
    return SimilarityGraph(scipy.linalg.block_diag(*[np.ones((size, size)) for size in sizes]), range(sum(sizes)))


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


@pytest.mark.parametrize("limit", [0, 1000], ids=["iterative", "dense"])
@pytest.mark.parametrize("k", [1, 5])
def test_eigenpairs_are_those_of_the_full_decomposition(monkeypatch, limit, k):
    monkeypatch.setattr(spectral, "_DENSE", limit)
    graph = SimilarityGraph(random_adjacency(80, 3, density=0.2), range(80))
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


def test_where_the_iteration_does_not_converge_a_factorisation_does(monkeypatch):
    monkeypatch.setattr(spectral, "_ITERATIONS", 2)
    values, vectors = smallest_eigenpairs(ring(2000), 2)
    np.testing.assert_allclose(values, 1 - np.cos(2 * np.pi / 2000), rtol=1e-4)
    np.testing.assert_allclose(np.square(vectors).sum(axis=1), 2 / 2000, rtol=1e-4)  # a circle


# -------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_coordinates_of_a_connected_graph_solve_the_generalised_eigenproblem(n_dims):
    graph = SimilarityGraph(random_adjacency(30, 1, density=0.4), range(30))
    found = graph.spectral_coordinates(n_dims)
    degrees = np.diag(graph.degrees())
    values, vectors = scipy.linalg.eigh(graph.laplacian().toarray(), degrees)
    for axis in range(n_dims):
        expected = vectors[:, axis + 1] / np.abs(vectors[:, axis + 1]).max()
        assert min(np.abs(found[:, axis] - sign * expected).max() for sign in (1, -1)) < 1e-9
    np.testing.assert_allclose(np.abs(found).max(axis=0), 1)
    assert values[n_dims] < values[n_dims + 1]


@fast
@given(graphs(), st.integers(1, 4))
def test_coordinates_are_finite_and_the_same_every_time(graph, n_dims):
    found = graph.spectral_coordinates(n_dims)
    assert found.shape == (len(graph), n_dims)
    assert np.abs(found).max() <= 1 + 1e-12
    np.testing.assert_array_equal(found, graph.spectral_coordinates(n_dims))


def test_permuting_the_nodes_permutes_the_coordinates():
    graph = SimilarityGraph(random_adjacency(25, 2, density=0.5), range(25))
    order = np.random.default_rng(0).permutation(25)
    np.testing.assert_allclose(
        graph.subgraph(order).spectral_coordinates(), graph.spectral_coordinates()[order], atol=1e-9
    )


@fast
@given(st.lists(st.integers(1, 6), min_size=2, max_size=9))
def test_components_lie_in_boxes_that_do_not_meet(sizes):
    graph = cliques(*sizes)
    found, components = graph.spectral_coordinates(), graph.components().to_numpy()
    boxes = [(found[components == c].min(axis=0), found[components == c].max(axis=0)) for c in range(len(sizes))]
    for number, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:number]:
            assert (low > other_high).any() or (other_low > high).any()


def test_many_components_fill_a_square_and_not_a_line():
    found = cliques(*[1] * 100).spectral_coordinates()
    assert len(np.unique(found.round(9), axis=0)) == 100
    assert np.ptp(found, axis=0).min() > 1.5
    assert len(np.unique(cliques(*[1] * 100).spectral_coordinates(1))) == 100


def test_one_node_lies_at_the_origin_and_bad_dimensions_are_named():
    np.testing.assert_array_equal(SimilarityGraph([[0.0]], ["x"]).spectral_coordinates(), [[0, 0]])
    with fails("n_dims must be an integer >= 1, found 0", ParameterError):
        films().spectral_coordinates(0)


def test_ten_thousand_nodes_take_a_sparse_way(monkeypatch):
    monkeypatch.setattr(scipy.linalg, "eigh", lambda *args, **kwargs: pytest.fail("a dense decomposition"))
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(10_000), 5)
    half = sp.csr_array((rng.random(rows.size), (rows, rng.integers(10_000, size=rows.size))), shape=(10_000,) * 2)
    found = eigenmaps(sp.csr_array(half.maximum(half.T)), 2)
    assert np.isfinite(found).all()


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


def test_twins_may_leave_fewer_communities_than_asked_for():
    """The leaves of a star are alike: a cut may find no two points to tell apart."""
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1
    found = SimilarityGraph(star, range(6)).communities(method="spectral", n_communities=4)
    assert 1 <= found.nunique() <= 4


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
