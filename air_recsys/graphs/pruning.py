"""Fewer edges of a graph, and the numbers that people see on them.

Adjacencies are symmetric, shape (n, n). A node keeps some of its edges, and an edge stays where either of its two ends
keeps it; so the result is symmetric, and a node may end with more edges than it kept.

A graph is learned, or counted, in a unit of its own. Divided by its largest weight it keeps communities and the order
of neighbours, and all graphs read the same: 1 is the pair that is most similar, 0 is no edge. Four digits are
what pages print, and they are above the rounding of single precision, so that pairs that are equally similar have
equal numbers.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

_DIGITS = 4
_BLOCK_ENTRIES = 4_000_000  # stored entries of rows that are compared at a time


def strongest(adjacency: sp.csr_array, k: int, support: np.ndarray | None = None) -> sp.csr_array:
    """The graph where every node keeps its k strongest edges, and of equal ones as `ranked` orders them."""
    return _where_an_end_keeps(adjacency, strongest_of_each(adjacency, k, support))


def strongest_of_each(adjacency: sp.csr_array, k: int, support: np.ndarray | None = None) -> np.ndarray:
    """The mask of the stored entries that are among the k strongest of their row; bool, shape (nnz,)."""
    rows, order = ranked(adjacency, support)
    chosen = np.zeros(adjacency.nnz, dtype=bool)
    chosen[order] = np.arange(adjacency.nnz) - adjacency.indptr[rows] < k
    return chosen


def above(adjacency: sp.csr_array, weight: float) -> sp.csr_array:
    """The graph of the edges with at least that weight."""
    return _where_an_end_keeps(adjacency, adjacency.data >= weight)


def holding(adjacency: sp.csr_array, share: float, support: np.ndarray | None = None) -> sp.csr_array:
    """The graph where every node keeps the fewest of its edges that hold a `share` in (0, 1] of its weight.

    Examples
    --------
    >>> square = sp.csr_array([[0, 8, 0, 1], [8, 0, 1, 0], [0, 1, 0, 8], [1, 0, 8, 0]])
    >>> holding(square, 0.5).toarray()
    array([[0, 8, 0, 0],
           [8, 0, 0, 0],
           [0, 0, 0, 8],
           [0, 0, 8, 0]])
    """
    rows, order = ranked(adjacency, support)
    total = np.concatenate([[0.0], np.cumsum(adjacency.data[order])])  # (nnz + 1,)
    before = total[:-1] - total[adjacency.indptr[rows]]  # the weight of the node's stronger edges
    whole = total[adjacency.indptr[rows + 1]] - total[adjacency.indptr[rows]]
    chosen = np.zeros(adjacency.nnz, dtype=bool)
    chosen[order] = before < share * whole
    return _where_an_end_keeps(adjacency, chosen)


def ranked(adjacency: sp.csr_array, support: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The row of every stored entry, and the entries' order by row and falling weight, (nnz,) each.

    Of equal weights that with more `support` (nnz,) comes first, then the first in the row.
    """
    rows = np.repeat(np.arange(adjacency.indptr.size - 1), np.diff(adjacency.indptr))
    second = np.zeros(adjacency.nnz) if support is None else np.negative(support)
    return rows, np.lexsort((adjacency.indices, second, np.negative(adjacency.data), rows))


def _where_an_end_keeps(adjacency: sp.csr_array, kept: np.ndarray) -> sp.csr_array:
    entries = adjacency.tocoo()
    positions = entries.row[kept], entries.col[kept]
    chosen = sp.csr_array((entries.data[kept], positions), shape=adjacency.shape)
    return sp.csr_array(chosen.maximum(chosen.T))


def to_similarities(adjacency: sp.csr_array) -> sp.csr_array:
    """Weights as shares of the largest one, rounded to four significant digits; shape (n, n)."""
    largest = adjacency.data.max(initial=0.0)
    values = adjacency.data.astype(np.float64) / (largest or 1.0)
    digits = _DIGITS - 1 - np.floor(np.log10(values, where=values > 0, out=np.zeros_like(values)))
    scales = 10.0**digits
    return sp.csr_array((np.round(values * scales) / scales, adjacency.indices, adjacency.indptr), adjacency.shape)


def common_counts(rows: sp.csr_array, first: ArrayLike, second: ArrayLike) -> np.ndarray:
    """How many columns two rows have both entries in, for pairs of rows (p,); int, shape (p,)."""
    if not np.size(first):
        return np.empty(0, dtype=np.int64)
    ones = sp.csr_array((np.ones(rows.nnz, np.int32), rows.indices, rows.indptr), shape=rows.shape)
    first, second = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    lengths = np.diff(rows.indptr)
    block = np.cumsum(lengths[first] + lengths[second]) // _BLOCK_ENTRIES
    parts = np.flatnonzero(np.diff(block)) + 1
    pairs = zip(np.split(first, parts), np.split(second, parts), strict=True)
    found = [np.asarray(ones[a].multiply(ones[b]).sum(axis=1)).ravel() for a, b in pairs]
    return np.concatenate(found).astype(np.int64)


def support_of_ties(adjacency: sp.csr_array, rows: sp.csr_array) -> sp.csr_array:
    """The common columns of the ends of edges that tie with another edge of a node; symmetric, shape (n, n)."""
    node, order = ranked(adjacency)
    weights = adjacency.data[order]
    equal = (np.diff(weights) == 0) & (np.diff(node[order]) == 0)
    tied = order[np.append(equal, False) | np.append(False, equal)] if equal.size else order[:0]
    ends = np.unique(np.sort(np.column_stack((node[tied], adjacency.indices[tied])), axis=1), axis=0).T
    half = sp.coo_array((common_counts(rows, *ends), (ends[0], ends[1])), shape=adjacency.shape)
    return sp.csr_array(half + half.T)
