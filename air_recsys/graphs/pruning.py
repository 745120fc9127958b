"""Fewer edges: the strongest of every node, those above a weight, and those that hold most of the weight.

Adjacencies are symmetric, shape (n, n). A node keeps some of its edges, and an edge stays where either of its two ends
keeps it; so the result is symmetric, and a node may end with more edges than it kept.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def strongest(adjacency: sp.csr_array, k: int, support: np.ndarray | None = None) -> sp.csr_array:
    """Return the graph where every node keeps its k strongest edges, and of equal ones as `ranked` orders them.

    Examples
    --------
    >>> path = sp.csr_array([[0, 3, 0, 0], [3, 0, 2, 1], [0, 2, 0, 0], [0, 1, 0, 0]])
    >>> strongest(path, 1).toarray()[1]
    array([3, 0, 2, 1])
    """
    return _where_an_end_keeps(adjacency, strongest_of_each(adjacency, k, support))


def strongest_of_each(adjacency: sp.csr_array, k: int, support: np.ndarray | None = None) -> np.ndarray:
    """Return which stored entries are among the k strongest of their row; bool, shape (nnz,)."""
    rows, order = ranked(adjacency, support)
    chosen = np.zeros(adjacency.nnz, dtype=bool)
    chosen[order] = np.arange(adjacency.nnz) - adjacency.indptr[rows] < k
    return chosen


def above(adjacency: sp.csr_array, weight: float) -> sp.csr_array:
    """Return the graph of the edges with at least that weight."""
    return _where_an_end_keeps(adjacency, adjacency.data >= weight)


def holding(adjacency: sp.csr_array, share: float, support: np.ndarray | None = None) -> sp.csr_array:
    """Return the graph where every node keeps the fewest of its edges that hold a `share` in (0, 1] of its weight.

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
    """Return the row of every stored entry, and the entries' order by row and falling weight, (nnz,) each.

    Of equal weights that with more `support` (nnz,) comes first, then the first in the row.
    """
    rows = np.repeat(np.arange(adjacency.indptr.size - 1), np.diff(adjacency.indptr))
    second = np.zeros(adjacency.nnz) if support is None else np.negative(support)
    return rows, np.lexsort((adjacency.indices, second, np.negative(adjacency.data), rows))


def _where_an_end_keeps(adjacency: sp.csr_array, kept: np.ndarray) -> sp.csr_array:
    entries = adjacency.tocoo()
    places = entries.row[kept], entries.col[kept]
    chosen = sp.csr_array((entries.data[kept], places), shape=adjacency.shape)
    return sp.csr_array(chosen.maximum(chosen.T))
