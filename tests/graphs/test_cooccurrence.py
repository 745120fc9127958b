"""The graph of co-occurrences: its formula, its cut, and what permutations and empty rows do to it."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.exceptions import AirRecsysError
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors, strongest_products
from air_recsys.storage.threads import threads


@pytest.fixture
def pattern():
    rng = np.random.default_rng(0)
    return sp.csr_array((rng.random((30, 20)) < 0.2).astype(np.float32))


def dense_graph(pattern, exponent):
    x = pattern.toarray()
    counts = np.maximum(x.sum(axis=0), 1), np.maximum(x.sum(axis=1), 1)
    weights = (x * counts[0] ** -exponent) @ x.T / np.sqrt(np.outer(counts[1], counts[1]))
    np.fill_diagonal(weights, 0)
    return weights


def test_an_edge_stands_where_either_end_chose_it(pattern):
    whole = dense_graph(pattern, 0.7)
    found = cooccurrence_neighbors(pattern, 3, 0.7).toarray()
    assert (found == found.T).all()
    assert (found.diagonal() == 0).all()
    chosen = np.argsort(-whole, axis=1, kind="stable")[:, 3]
    floor = np.take_along_axis(whole, chosen[:, None], axis=1)  # the strongest that a row leaves out
    above = whole > floor * (1 + 1e-5)
    np.testing.assert_allclose(found[above | above.T], whole[above | above.T], rtol=1e-5)
    assert (np.count_nonzero(found, axis=1) >= np.minimum(3, np.count_nonzero(whole, axis=1))).all()


def test_strongest_products_are_of_other_rows(pattern):
    others = sp.csr_array(np.random.default_rng(1).random((25, 20)), dtype=np.float32)
    own = np.where(np.arange(30) < 25, np.arange(30), -1)
    found, whole = strongest_products(pattern, others, 4, own).toarray(), pattern.toarray() @ others.toarray().T
    whole[np.arange(25), np.arange(25)] = 0
    floor = np.sort(whole, axis=1)[:, -4, None]
    np.testing.assert_allclose(found, np.where(whole >= floor, whole, 0), rtol=1e-5)


def test_a_permutation_of_the_rows_permutes_the_graph(pattern):
    order = np.random.default_rng(1).permutation(30)
    found = cooccurrence_neighbors(pattern[order], 29).toarray()
    np.testing.assert_allclose(found, cooccurrence_neighbors(pattern, 29).toarray()[np.ix_(order, order)], rtol=1e-5)


def test_values_do_not_count_and_the_matrix_stays_as_it_is(pattern):
    other = pattern.copy()
    other.data[:] = np.arange(1, other.nnz + 1)
    before = other.copy()
    np.testing.assert_array_equal(
        cooccurrence_neighbors(other, 5).toarray(), cooccurrence_neighbors(pattern, 5).toarray()
    )
    np.testing.assert_array_equal(other.toarray(), before.toarray())


def test_rows_and_columns_without_entries_stay_isolated():
    rows, others = sp.csr_array([[1.0, 0, 1], [0, 0, 1]]), sp.csr_array([[2.0, 1, 0]])  # that lack a column
    assert strongest_products(rows, others, 1, np.array([-1, -1])).toarray().tolist() == [[2], [0]]
    pattern = sp.csr_array([[0, 0, 0], [1, 1, 0], [0, 1, 0]])
    found = cooccurrence_neighbors(pattern, 2).toarray()
    assert np.count_nonzero(found) == 2
    assert found[1, 2] == found[2, 1] > 0
    assert cooccurrence_neighbors(sp.csr_array((2, 3)), 1).nnz == 0


def test_of_equal_weights_the_first_are_chosen():
    """A row of one column and 40 rows that share it: all weights are equal, whatever sorts them."""
    rows = sp.csr_array(np.ones((41, 1), dtype=np.float32))
    found = strongest_products(rows, rows, 7, np.arange(41))
    for row in range(41):
        assert (
            found.indices[found.indptr[row] : found.indptr[row + 1]].tolist()
            == [other for other in range(8) if other != row][:7]
        )


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_without_a_cut_the_weights_are_those_of_the_formula_in_single_precision(pattern, exponent):
    found = cooccurrence_neighbors(pattern, 29, exponent)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), dense_graph(pattern, exponent), rtol=1e-5, atol=1e-7)
    if exponent == 0.5:  # where nothing else is asked for
        np.testing.assert_array_equal(cooccurrence_neighbors(pattern, 29).toarray(), found.toarray())


def test_small_blocks_and_blocks_in_threads_change_nothing(pattern, blocks_of):
    own = np.arange(pattern.shape[0])
    expected = strongest_products(pattern, pattern, 4, own).toarray()
    blocks_of(20)
    for number in (1, 3):
        with threads(number):
            np.testing.assert_array_equal(strongest_products(pattern, pattern, 4, own).toarray(), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, found 0"),
        ({"column_exponent": -1.0}, "column_exponent must be a number >= 0, found -1.0"),
        ({"matrix": np.ones((2, 2))}, "expected a SciPy sparse matrix, found ndarray"),
    ],
)
def test_what_is_out_of_range_or_dense_is_an_error(pattern, changes, message):
    with pytest.raises(AirRecsysError, match=message):
        cooccurrence_neighbors(**{"matrix": pattern, "n_neighbors": 2} | changes)
