"""Graphs of co-occurrence: the strongest edges of each row, from a sparse matrix alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr
from air_recsys.storage.reading import checked_sparse
from air_recsys.storage.threads import in_workers
from air_recsys.storage.validation import check_integer, check_real

_BLOCK_ENTRIES = 4_000_000  # mean number of products in a block


def cooccurrence_neighbors(matrix: Any, n_neighbors: int, column_exponent: float = 0.5) -> Csr:
    r"""The graph of the rows that share most columns, with less weight on columns of many rows; shape (m, m).

    .. math:: w_{ij} = \frac{\sum_{c \in N(i) \cap N(j)} |N(c)|^{-a}}{\sqrt{|N(i)|\,|N(j)|}}

    with N(i) the columns of row i, N(c) the rows of column c and a the `column_exponent`. An edge stands where either
    of its ends is among the other's `n_neighbors` strongest. The graph is symmetric, in float32, with a zero diagonal.

    Parameters
    ----------
    matrix : sparse, shape (m, n)
        The pattern of its stored entries counts, not their values.
    n_neighbors : int
        At least 1.
    column_exponent : float
        0 for plain cosines.

    Raises
    ------
    ParameterError
        For a parameter out of its range.
    DataError
        Unless `matrix` is sparse.
    """
    k = check_integer("n_neighbors", n_neighbors, minimum=1)
    check_real("column_exponent", column_exponent)
    if not sp.issparse(matrix):
        raise DataError(f"expected a SciPy sparse matrix, found {type(matrix).__name__}")
    pattern = sp.csr_array(checked_sparse("the pattern", matrix), dtype=np.float32, copy=True)
    pattern.sum_duplicates()
    pattern.data[:] = 1
    rows = scaled(pattern, 0.5, column_exponent / 2)
    chosen = strongest_products(rows, rows, k, np.arange(rows.shape[0]))
    return sp.csr_array(chosen.maximum(chosen.T))


def strongest_products(rows: Csr, others: Csr, k: int, own: np.ndarray) -> Csr:
    """The k largest products of each of `rows` (m, n) with `others` (p, n), except with itself; shape (m, p).

    All products are non-negative. `own` (m,) are the positions of the rows among the others, -1 for rows not there.
    """
    columns = sp.csr_array(others.T)

    def chosen(cut: tuple[int, int]) -> Csr:
        block = slice(*cut)
        return _strongest(rows[block], columns, k, own[block])

    return sp.csr_array(sp.vstack(in_workers(chosen, _cuts(rows, others))))


def strongest_entries(matrix: Csr, k: int) -> Csr:
    """A matrix with the k largest entries of each row alone, the first of equal ones."""
    kept = sp.csr_array(matrix, copy=True)
    for first, last in zip(kept.indptr[:-1], kept.indptr[1:], strict=True):
        if last - first > k:
            row = kept.data[first:last]
            row[~_are_largest(row, kept.indices[first:last], k)] = 0
    kept.eliminate_zeros()
    kept.sort_indices()
    return kept


def scaled(matrix: Csr, row_exponent: float, column_exponent: float) -> Csr:
    """A matrix with each entry divided by powers of the numbers of entries in its row and in its column."""
    counts = np.diff(matrix.indptr), np.bincount(matrix.indices)
    rows, columns = np.maximum(counts[0], 1.0) ** -row_exponent, np.maximum(counts[1], 1.0) ** -column_exponent
    data = matrix.data * (np.repeat(rows, counts[0]) * columns[matrix.indices]).astype(matrix.dtype)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def scaled_adjacency(adjacency: sp.csr_array) -> sp.csr_array:
    """D^-1/2 A D^-1/2 for D = diag(A 1), in double precision; nodes without edges have zeros, (n, n).

    Examples
    --------
    >>> scaled_adjacency(sp.csr_array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])).toarray().round(6)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    degrees = np.asarray(adjacency.sum(axis=1), dtype=np.float64)  # (n,)
    scales = sp.diags_array(np.where(degrees > 0, degrees, 1) ** -0.5)
    return sp.csr_array(scales @ adjacency @ scales)


def _cuts(rows: Csr, others: Csr) -> list[tuple[int, int]]:
    """The first and last + 1 rows of blocks that have about the same number of products."""
    per_column = np.bincount(others.indices, minlength=others.shape[1])
    products = np.cumsum(np.add.reduceat(np.r_[per_column[rows.indices], 0], rows.indptr[:-1]))
    n_blocks = 1 + int(products[-1]) // _BLOCK_ENTRIES
    inner = np.searchsorted(products, products[-1] * np.arange(1, n_blocks) / n_blocks)
    edges = np.unique([0, *inner.tolist(), rows.shape[0]]).tolist()
    return list(itertools.pairwise(edges))


def _strongest(rows: Csr, columns: Csr, k: int, own: np.ndarray) -> Csr:
    products = sp.csr_array(rows @ columns)
    products.data[np.repeat(own, np.diff(products.indptr)) == products.indices] = 0
    return strongest_entries(products, k)


def _are_largest(values: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """The mask of the k largest values, of equal ones those of the first columns.

    `argpartition` chooses among equal ones by the processor.
    """
    least = np.partition(values, values.size - k)[values.size - k]
    chosen, equal = values > least, np.flatnonzero(values == least)
    chosen[equal[np.argsort(columns[equal])[: k - chosen.sum()]]] = True
    return chosen
