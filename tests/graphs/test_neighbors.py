"""The graph of nearest rows by cosine against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import ParameterError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.neighbors import cosine_neighbors

fast = settings(max_examples=60)
TIE = 1e-9


def cosines(matrix):
    """Cosine of every pair of rows, 0 where one of the two is empty."""
    norms = np.linalg.norm(matrix, axis=1)
    products = matrix @ matrix.T
    return np.divide(products, np.outer(norms, norms), out=np.zeros_like(products), where=np.outer(norms, norms) > 0)


def normal(m, n, seed=0):
    return np.random.default_rng(seed).normal(size=(m, n))


@st.composite
def matrices(draw):
    """Sparse rows, some of them empty; whole numbers make ties, others do not."""
    m, n = draw(st.integers(2, 10)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    values = rng.integers(-2, 3, (m, n)) if draw(st.booleans()) else rng.normal(size=(m, n))
    return np.where(rng.random((m, n)) < draw(st.sampled_from([0.2, 0.6, 1.0])), values, 0).astype(float)


@fast
@given(matrices(), st.integers(1, 12))
def test_it_is_a_graph_with_weights_in_the_unit_interval(matrix, k):
    graph = cosine_neighbors(sp.csr_array(matrix), k)
    weights = graph.toarray()
    assert graph.shape == (len(matrix), len(matrix))
    np.testing.assert_allclose(weights, weights.T, atol=1e-15)
    assert not weights.diagonal().any()
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert not weights[~matrix.any(axis=1)].any()  # rows without entries are isolated
    assert len(SimilarityGraph(graph, range(len(matrix)))) == len(matrix)


@fast
@given(matrices(), st.integers(1, 12))
def test_edges_are_those_of_brute_force(matrix, k):
    k = min(k, len(matrix) - 1)
    expected = cosines(matrix)
    others = np.where(np.eye(len(matrix), dtype=bool), -np.inf, expected)
    limit = np.sort(others, axis=1)[:, -k, None]  # the cosine of each row's last neighbour
    surely, perhaps = others > limit + TIE, others >= limit - TIE
    weights = cosine_neighbors(sp.csr_array(matrix), k).toarray()
    least, most = (chosen.astype(int) + chosen.T for chosen in (surely, perhaps))
    positive = expected.clip(min=0)
    assert (weights >= positive * least / 2 - TIE).all()
    assert (weights <= positive * most / 2 + TIE).all()


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_each_row_chooses_k_edges_and_half_the_cosine_counts_for_each_choice(k):
    matrix = np.abs(normal(9, 4))  # no two cosines alike, all of them positive
    expected = cosines(matrix)
    chosen = np.zeros((9, 9))
    for row in range(9):
        order = np.argsort(-np.where(np.arange(9) == row, -np.inf, expected[row]))
        chosen[row, order[:k]] = 1
    weights = cosine_neighbors(sp.csr_array(matrix), k).toarray()
    np.testing.assert_allclose(weights, expected * (chosen + chosen.T) / 2, atol=1e-12)
    assert (np.count_nonzero(weights, axis=1) >= k).all()


@pytest.mark.parametrize("k", [6, 7, 100])
def test_no_more_than_all_other_rows_are_there(k):
    matrix = normal(7, 3)
    weights = cosine_neighbors(sp.csr_array(matrix), k).toarray()
    np.testing.assert_allclose(weights, cosines(matrix).clip(min=0) * (1 - np.eye(7)), atol=1e-12)


def test_rows_of_the_same_direction_weigh_one_whatever_their_length():
    matrix = sp.csr_array(np.array([[1.0, 2], [10, 20], [-3, -6], [0, 0]]))
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1
    np.testing.assert_allclose(cosine_neighbors(matrix, 3).toarray(), expected, atol=1e-12)


def test_a_permutation_of_rows_permutes_the_graph():
    matrix, order = normal(8, 4), np.random.default_rng(1).permutation(8)
    weights = cosine_neighbors(sp.csr_array(matrix), 3).toarray()
    permuted = cosine_neighbors(sp.csr_array(matrix[order]), 3).toarray()
    np.testing.assert_allclose(permuted, weights[np.ix_(order, order)], atol=1e-12)


@pytest.mark.parametrize("matrix", [[[1.0, 2.0]], [[0.0, 0.0]]])
@pytest.mark.parametrize("k", [1, 5])
def test_one_row_is_isolated(matrix, k):
    graph = cosine_neighbors(sp.csr_array(matrix), k)
    assert graph.shape == (1, 1)
    assert graph.nnz == 0


def test_without_any_entries_all_rows_are_isolated():
    assert cosine_neighbors(sp.csr_array((5, 3)), 2).nnz == 0


def test_the_matrix_stays_as_it_was():
    matrix = sp.csr_array(normal(5, 3))
    before = matrix.toarray()
    cosine_neighbors(matrix, 2)
    np.testing.assert_array_equal(matrix.toarray(), before)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2", True, None])
def test_a_bad_number_of_neighbors_is_named(k):
    with pytest.raises(ParameterError, match=r"^n_neighbors must be an integer >= 1, found"):
        cosine_neighbors(sp.csr_array(np.eye(3)), k)
