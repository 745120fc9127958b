"""Graphs of what occurs together: the strongest edges of each row, from a sparse matrix alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr
from air_recsys.validation import check_integer, check_real

_BLOCK_ENTRIES = 4_000_000  # of a block of products, on average


def cooccurrence_neighbors(matrix: Any, n_neighbors: int, column_exponent: float = 0.5) -> Csr:
    r"""Return the graph of the rows that share most columns, columns of many rows counting less; shape (m, m).

    .. math:: w_{ij} = \frac{\sum_{c \in N(i) \cap N(j)} |N(c)|^{-a}}{\sqrt{|N(i)|\,|N(j)|}}

    with N(i) the columns of row i, N(c) the rows of column c and a the `column_exponent`. An edge stands where either
    of its ends is among the other's `n_neighbors` strongest.

    Parameters
    ----------
    matrix : sparse, shape (m, n)
        The pattern of its stored entries counts, not their values.
    n_neighbors : int
        At least 1.
    column_exponent : float
        0 for plain cosines.

    Returns
    -------
    csr_array of float32, shape (m, m)
        Symmetric, non-negative, with a zero diagonal.

    Raises
    ------
    ParameterError
        For a parameter out of its range.
    DataError
        Unless `matrix` is sparse.

    Examples
    --------
    >>> pattern = sp.csr_array([[1, 1, 0], [1, 1, 0], [0, 1, 1]])
    >>> cooccurrence_neighbors(pattern, 1, column_exponent=0).toarray().round(6)
    array([[0. , 1. , 0.5],
           [1. , 0. , 0. ],
           [0.5, 0. , 0. ]], dtype=float32)
    """
    k = check_integer("n_neighbors", n_neighbors, minimum=1)
    check_real("column_exponent", column_exponent)
    if not sp.issparse(matrix):
        raise DataError(f"expected a SciPy sparse matrix, found {type(matrix).__name__}")
    pattern = sp.csr_array(matrix, dtype=np.float32, copy=True)
    pattern.sum_duplicates()
    pattern.data[:] = 1
    rows = scaled(pattern, 0.5, column_exponent / 2)
    chosen = strongest_products(rows, rows, k, np.arange(rows.shape[0]))
    return sp.csr_array(chosen.maximum(chosen.T))


def strongest_products(rows: Csr, others: Csr, k: int, own: np.ndarray) -> Csr:
    """Return the k largest products of each row with the rows of another matrix, without that with itself.

    Parameters
    ----------
    rows : csr_array, shape (m, n)
    others : csr_array, shape (p, n)
        All products are non-negative.
    k : int
    own : ndarray of int, shape (m,)
        Which of the others each row is, -1 for none of them.

    Returns
    -------
    csr_array, shape (m, p)

    Examples
    --------
    >>> rows = sp.csr_array([[1.0, 2.0], [0.0, 1.0]])
    >>> strongest_products(rows, rows, 1, np.array([0, -1])).toarray()
    array([[0., 2.],
           [2., 0.]])
    """
    blocks = [_strongest(rows[start:stop], others, k, own[start:stop]) for start, stop in _cuts(rows, others)]
    return sp.csr_array(sp.vstack(blocks))


def scaled(matrix: Csr, row_exponent: float, column_exponent: float) -> Csr:
    """Return a matrix with each entry over powers of the number of entries in its row and in its column.

    Parameters
    ----------
    matrix : csr_array, shape (m, n)
    row_exponent, column_exponent : float

    Examples
    --------
    >>> scaled(sp.csr_array([[1.0, 1.0], [1.0, 0.0]]), 1, 0).toarray()
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    counts = np.diff(matrix.indptr), np.bincount(matrix.indices)
    factors = [
        np.maximum(count, 1.0) ** -exponent
        for count, exponent in zip(counts, (row_exponent, column_exponent), strict=True)
    ]
    data = matrix.data * (np.repeat(factors[0], counts[0]) * factors[1][matrix.indices]).astype(matrix.dtype)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _cuts(rows: Csr, others: Csr) -> list[tuple[int, int]]:
    """Return where blocks of rows begin and end that have about as many products each."""
    per_column = np.bincount(others.indices, minlength=others.shape[1])
    products = np.cumsum(np.add.reduceat(np.r_[per_column[rows.indices], 0], rows.indptr[:-1]))
    n_blocks = 1 + int(products[-1]) // _BLOCK_ENTRIES
    inner = np.searchsorted(products, products[-1] * np.arange(1, n_blocks) / n_blocks)
    edges = np.unique([0, *inner.tolist(), rows.shape[0]]).tolist()
    return list(itertools.pairwise(edges))


def _strongest(rows: Csr, others: Csr, k: int, own: np.ndarray) -> Csr:
    products = sp.csr_array(rows @ others.T)
    products.data[np.repeat(own, np.diff(products.indptr)) == products.indices] = 0
    for first, last in zip(products.indptr[:-1], products.indptr[1:], strict=True):
        if last - first > k:
            row = products.data[first:last]
            row[np.argpartition(row, row.size - k)[: row.size - k]] = 0
    products.eliminate_zeros()
    return products
