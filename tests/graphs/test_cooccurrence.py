"""The graph of co-occurrences: its formula, its cut, and what permutations and empty rows do to it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import cooccurrence
from air_recsys.graphs.cooccurrence import cooccurrence_neighbors, scaled, strongest_products


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


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_without_a_cut_the_weights_are_those_of_the_formula(pattern, exponent):
    found = cooccurrence_neighbors(pattern, 29, exponent).toarray()
    np.testing.assert_allclose(found, dense_graph(pattern, exponent), rtol=1e-5, atol=1e-7)


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


def test_small_blocks_change_nothing(pattern, blocks_of):
    expected = cooccurrence_neighbors(pattern, 4).toarray()
    blocks_of(50)
    np.testing.assert_array_equal(cooccurrence_neighbors(pattern, 4).toarray(), expected)


def test_blocks_have_about_as_many_products_each(blocks_of):
    rng = np.random.default_rng(0)
    rows = sp.csr_array((rng.random((200, 20)) < 0.3).astype(np.float32))
    products = rows.toarray() @ rows.toarray().sum(axis=0)  # of each row, one for every pair of entries
    blocks_of(10_000)
    cuts, n_blocks = cooccurrence._cuts(rows, rows), 1 + int(products.sum()) // 10_000
    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])]
    assert cuts[-1][1] == 200
    assert len(cuts) == n_blocks > 5
    sizes = [products[start:stop].sum() for start, stop in cuts]
    assert np.abs(np.array(sizes) - products.sum() / n_blocks).max() <= products.max()


def test_columns_that_the_others_lack_are_shared_with_none():
    rows, others = sp.csr_array([[1.0, 0, 1], [0, 0, 1]]), sp.csr_array([[2.0, 1, 0]])
    assert strongest_products(rows, others, 1, np.array([-1, -1])).toarray().tolist() == [[2], [0]]


def test_weights_are_in_single_precision(pattern):
    assert scaled(pattern, 0.5, 0.5).dtype == np.float32
    assert cooccurrence_neighbors(pattern, 3).dtype == np.float32


def test_a_column_counts_by_the_root_of_its_rows_where_nothing_else_is_asked_for(pattern):
    np.testing.assert_array_equal(
        cooccurrence_neighbors(pattern, 3).toarray(), cooccurrence_neighbors(pattern, 3, 0.5).toarray()
    )


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
    pattern = sp.csr_array([[0, 0, 0], [1, 1, 0], [0, 1, 0]])
    found = cooccurrence_neighbors(pattern, 2).toarray()
    assert np.count_nonzero(found) == 2
    assert found[1, 2] == found[2, 1] > 0
    assert cooccurrence_neighbors(sp.csr_array((2, 3)), 1).nnz == 0


def test_scaled_divides_by_powers_of_the_counts(pattern):
    x = pattern.toarray()
    rows, columns = (np.maximum(x.sum(axis=axis), 1) for axis in (1, 0))
    expected = x * rows[:, None] ** -0.5 * columns**0.25
    np.testing.assert_allclose(scaled(pattern, 0.5, -0.25).toarray(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1, found 0"),
        ({"column_exponent": -1.0}, "column_exponent must be a number >= 0, found -1.0"),
    ],
)
def test_parameters_out_of_range_are_errors(pattern, changes, message):
    with pytest.raises(ParameterError, match=message):
        cooccurrence_neighbors(pattern, **{"n_neighbors": 2} | changes)


def test_blocks_in_threads_are_those_in_turn(pattern, blocks_of):
    blocks_of(20)
    own = np.arange(pattern.shape[0])
    expected = strongest_products(pattern, pattern, 4, own)
    with ThreadPoolExecutor(3) as pool:
        found = strongest_products(pattern, pattern, 4, own, pool.map)
    assert len(cooccurrence._cuts(pattern, pattern)) > 3
    np.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_a_dense_matrix_is_an_error():
    with pytest.raises(DataError, match="expected a SciPy sparse matrix, found ndarray"):
        cooccurrence_neighbors(np.ones((2, 2)), 1)


def test_of_equal_weights_the_first_are_chosen():
    """A row of one column and 40 rows that share it: all weights are equal, whatever sorts them."""
    rows = sp.csr_array(np.ones((41, 1), dtype=np.float32))
    found = strongest_products(rows, rows, 7, np.arange(41))
    for row in range(41):
        assert (
            found.indices[found.indptr[row] : found.indptr[row + 1]].tolist()
            == [other for other in range(8) if other != row][:7]
        )
