"""Spectral coordinates: eigenmaps of a component, and a box for each."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from graph_cases import cliques, fails, fast, films, graphs, random_adjacency
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import SimilarityGraph
from air_recsys.exceptions import ParameterError
from air_recsys.graphs import spectral
from air_recsys.graphs.spectral import eigenmaps


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


@fast
@given(st.lists(st.integers(1, 6), min_size=2, max_size=9), st.integers(1, 3))
def test_coordinates_stand_in_the_middle_and_reach_the_border(sizes, n_dims):
    found = cliques(*sizes).spectral_coordinates(n_dims)
    np.testing.assert_allclose(found.max(axis=0), -found.min(axis=0), atol=1e-12)
    assert found.max() == pytest.approx(1)


@fast
@given(st.lists(st.integers(1, 40), min_size=2, max_size=12))
def test_boxes_stand_in_rows_side_by_side_the_largest_first(sizes):
    sizes = np.sort(sizes)[::-1]
    sides = 2 * np.sqrt(sizes)
    centres = spectral._shelves(sizes, 2)
    left, top = centres[:, 0] - sides / 2, centres[:, 1] + sides / 2
    begins = np.flatnonzero(np.abs(left) < 1e-9)
    assert (begins[0], top[0]) == (0, 0)
    rows = np.split(np.arange(len(sizes)), begins[1:])
    length = np.sqrt(np.square(sides).sum())
    for row, below in itertools.zip_longest(rows, rows[1:]):
        np.testing.assert_allclose(left[row], np.cumsum(sides[row]) - sides[row], atol=1e-9)
        np.testing.assert_allclose(top[row], top[row[0]])
        assert sides[row].sum() <= length * (1 + 1e-6)
        if below is not None:
            np.testing.assert_allclose(top[below[0]], top[row[0]] - sides[row[0]])
            assert sides[row].sum() + sides[below[0]] > length


def test_a_component_fills_a_share_of_its_box():
    first, second = cliques(2, 2).spectral_coordinates(1).reshape(2, 2)
    width, step = abs(np.diff(first)[0]), abs(second.mean() - first.mean())
    assert width / step == pytest.approx(spectral._FILLED)


def test_a_graph_without_nodes_has_no_coordinates():
    assert SimilarityGraph(np.zeros((0, 0)), []).spectral_coordinates().shape == (0, 2)


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
