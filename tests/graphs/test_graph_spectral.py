"""The Laplacian of a graph, its eigenpairs, coordinates, and communities by either method."""

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
from air_recsys.graphs.spectral import by_size, each_component, eigenmaps, smallest_eigenpairs

either_method = pytest.mark.parametrize("method", ["louvain", "spectral"])


def ring(size):
    rows = np.arange(size)
    half = sp.csr_array((np.ones(size), (rows, (rows + 1) % size)), shape=(size, size))
    return sp.csr_array(half + half.T)


# -------------------------------------------------------------------- Laplacian


@fast
@given(graphs())
def test_the_laplacian_is_that_of_the_adjacency_and_its_kernel_counts_the_components(graph):
    adjacency, degrees = graph.to_scipy().toarray(), graph.degrees().to_numpy()
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    plain = np.diag(degrees) - adjacency
    assert sp.issparse(graph.laplacian())
    for normalized, expected in ((False, plain), (True, scale[:, None] * plain * scale)):
        found = graph.laplacian(normalized=normalized).toarray()
        np.testing.assert_allclose(found, expected, atol=1e-12)
        values = np.linalg.eigvalsh(found)
        assert values.min() > -1e-10
        assert np.count_nonzero(values < 1e-10) == graph.components().nunique()
        assert values.max() < 2 + 1e-10 or not normalized


@pytest.mark.parametrize(("size", "k"), [(80, 1), (80, 5), (450, 1), (450, 5)])
def test_eigenpairs_are_those_of_the_full_decomposition_and_the_same_every_time(size, k):
    """Of a small graph, and of one whose pairs are found step by step."""
    graph = SimilarityGraph(random_adjacency(size, 3, density=0.2), range(size))
    assert graph.components().nunique() == 1
    values, vectors = smallest_eigenpairs(graph.to_scipy(), k)
    matrix = graph.laplacian(normalized=True)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix.toarray())[1 : k + 1], atol=1e-7)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-5)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-7)
    for found, again in zip((values, vectors), smallest_eigenpairs(graph.to_scipy(), k), strict=True):
        np.testing.assert_array_equal(found, again)


def test_all_eigenpairs_of_a_bipartite_graph():
    """The eigenvalue 2 must not mix with the one that is left out."""
    values, vectors = smallest_eigenpairs(ring(6).astype(float), 5)
    np.testing.assert_allclose(values, [0.5, 0.5, 1.5, 1.5, 2], atol=1e-12)
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-12)


def test_where_the_iteration_does_not_converge_a_factorisation_does():
    values, vectors = smallest_eigenpairs(ring(2000), 2)
    np.testing.assert_allclose(values, 1 - np.cos(2 * np.pi / 2000), rtol=1e-4)
    np.testing.assert_allclose(np.square(vectors).sum(axis=1), 2 / 2000, rtol=1e-4)  # a circle


def test_nodes_of_a_component_keep_their_order():
    owners = np.random.default_rng(0).integers(3, size=200)
    adjacency = sp.csr_array((owners[:, None] == owners) * (1.0 - np.eye(200)))
    for rows, part in each_component(adjacency):
        assert (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(part.toarray(), adjacency[rows][:, rows].toarray())


# -------------------------------------------------------------------- coordinates


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_coordinates_of_a_connected_graph_solve_the_generalised_eigenproblem(n_dims):
    graph = SimilarityGraph(random_adjacency(30, 1, density=0.4), range(30))
    found = graph.spectral_coordinates(n_dims)
    values, vectors = scipy.linalg.eigh(graph.laplacian().toarray(), np.diag(graph.degrees()))
    for axis in range(n_dims):
        expected = vectors[:, axis + 1] / np.abs(vectors[:, axis + 1]).max()
        assert min(np.abs(found[:, axis] - sign * expected).max() for sign in (1, -1)) < 1e-9
    np.testing.assert_allclose(np.abs(found).max(axis=0), 1)
    assert values[n_dims] < values[n_dims + 1]
    order = np.random.default_rng(0).permutation(30)
    np.testing.assert_allclose(graph.subgraph(order).spectral_coordinates(n_dims), found[order], atol=1e-9)


@fast
@given(graphs(), st.integers(1, 4))
def test_coordinates_are_finite_and_the_same_every_time(graph, n_dims):
    found = graph.spectral_coordinates(n_dims)
    assert found.shape == (len(graph), n_dims)
    assert np.abs(found).max() <= 1 + 1e-12
    np.testing.assert_array_equal(found, graph.spectral_coordinates(n_dims))


@fast
@given(st.lists(st.integers(1, 6), min_size=2, max_size=9), st.integers(1, 3))
def test_components_lie_in_boxes_that_do_not_meet_and_reach_the_border(sizes, n_dims):
    graph = cliques(*sizes)
    found, components = graph.spectral_coordinates(n_dims), graph.components().to_numpy()
    boxes = [(found[components == c].min(axis=0), found[components == c].max(axis=0)) for c in range(len(sizes))]
    for number, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:number]:
            assert (low > other_high).any() or (other_low > high).any()
    np.testing.assert_allclose(found.max(axis=0), -found.min(axis=0), atol=1e-12)
    assert found.max() == pytest.approx(1)


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_components_look_as_they_do_alone_and_their_area_goes_with_their_nodes(n_dims):
    adjacency = scipy.linalg.block_diag(*[random_adjacency(size, 3, density=0.9) for size in (5, 12, 3, 2, 7)])
    graph = SimilarityGraph(adjacency, range(29))
    assert graph.components().nunique() == 5
    found, scales = graph.spectral_coordinates(n_dims), []
    for _, members in graph.components().groupby(graph.components()):
        part = found[members.index]
        alone = graph.subgraph(members.index).spectral_coordinates(n_dims)
        scales.append(np.ptp(part[:, 0]) / np.ptp(alone[:, 0]) / np.sqrt(len(part)))
        moved = part - scales[-1] * np.sqrt(len(part)) * alone
        np.testing.assert_allclose(moved, np.tile(moved[0], (len(part), 1)), atol=1e-9)
    np.testing.assert_allclose(scales, scales[0])


def test_many_components_fill_a_square_and_not_a_line_but_for_one_dimension():
    found = cliques(*[1] * 100).spectral_coordinates()
    assert len(np.unique(found.round(9), axis=0)) == 100
    assert np.ptp(found, axis=0).min() > 1.5
    assert len(np.unique(cliques(*[1] * 100).spectral_coordinates(1))) == 100
    first, second = cliques(2, 2).spectral_coordinates(1).reshape(2, 2)
    assert abs(np.diff(first)[0]) / abs(second.mean() - first.mean()) == pytest.approx(0.8)  # of its box


def test_one_node_lies_at_the_origin_none_has_no_coordinates_and_bad_dimensions_are_named():
    np.testing.assert_array_equal(SimilarityGraph([[0.0]], ["x"]).spectral_coordinates(), [[0, 0]])
    assert SimilarityGraph(np.zeros((0, 0)), []).spectral_coordinates().shape == (0, 2)
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


@either_method
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_groups_are_found_largest_first_whatever_the_order_of_nodes(method, seed):
    graph, groups = planted(seed=seed)
    found = graph.communities(method=method)
    assert (found.index.name, found.name, found.dtype) == ("user", "community", np.int64)
    assert found.tolist() == groups.tolist()  # planted from the largest to the smallest
    moved = graph.subgraph(np.random.default_rng(1).permutation(graph.ids)).communities(method=method)
    pd.testing.assert_series_equal(moved.reindex(graph.ids), found, check_names=False)


@either_method
@fast
@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=7))
def test_cliques_side_by_side_are_communities_of_their_own(method, sizes):
    graph = cliques(*sizes)
    found = graph.communities(method=method)
    assert same_partition(found.tolist(), graph.components().tolist())
    assert found.value_counts().sort_index().is_monotonic_decreasing


def test_communities_are_the_same_for_the_same_seed_and_finer_at_a_higher_resolution():
    graph = SimilarityGraph(random_adjacency(40, 0, density=0.3), range(40))
    pd.testing.assert_series_equal(graph.communities(random_state=3), graph.communities(random_state=3))
    pd.testing.assert_series_equal(graph.communities(), graph.communities(random_state=0))
    assert graph.communities().tolist() != graph.communities(random_state=1).tolist()
    assert graph.communities(resolution=5.0).nunique() > graph.communities(resolution=0.5).nunique()
    first, again = (graph.communities(7, method="spectral", n_communities=5) for _ in range(2))
    pd.testing.assert_series_equal(first, again)
    assert first.nunique() == 5


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


@pytest.mark.parametrize("wanted", [1, 2, 6])
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


def ring_of_cliques(n_cliques):
    adjacency, ends = scipy.linalg.block_diag(*[np.ones((4, 4))] * n_cliques), 4 * np.arange(n_cliques)
    adjacency[ends, (ends + 5) % len(adjacency)] += 0.01
    return np.maximum(adjacency, adjacency.T)


def test_many_groups_are_all_found_and_more_may_be_asked_for_than_are_looked_for():
    graph, groups = planted([8] * 20, inside=0.9, outside=0.01)
    assert same_partition(graph.communities(method="spectral", n_communities=20).tolist(), groups.tolist())
    found = SimilarityGraph(ring_of_cliques(40), range(160)).communities(method="spectral", n_communities=40)
    assert same_partition(found.tolist(), np.repeat(range(40), 4).tolist())


def test_of_components_alike_the_first_are_cut():
    pairs = cliques(*[2] * 40)
    found = pairs.communities(method="spectral", n_communities=45).to_numpy().reshape(40, 2)
    assert (found[:, 0] != found[:, 1]).tolist() == [True] * 5 + [False] * 35


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "leiden"}, "method must be one of 'louvain', 'spectral', found 'leiden'"),
        ({"resolution": 0}, "resolution must be a number > 0, found 0"),
        ({"random_state": -1}, "random_state must be an integer >= 0, found -1"),
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
