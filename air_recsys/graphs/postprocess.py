"""Factors of the nodes from the pattern of an interaction matrix, and a learned graph joined with it.

On ratings, *which* films a user has rated has more information on films than how they were rated: neighbours by the
learned graph alone agree less in their genres than neighbours by a plain cosine of the columns
(benchmarks/reports/graphs.md). A random pattern, as in matrix completion, has no information, so this module is for
ratings and interactions that people chose.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.graphs.cooccurrence import scaled_adjacency
from air_recsys.graphs.neighbors import nearest_neighbors_graph
from air_recsys.storage.validation import check_integer

_EXACT_BELOW = 512  # rows or columns; a dense decomposition takes a second there
_NOTHING = 1e-5  # norm of a row whose factors are 0 but for the rounding of single precision
_NO_COSINE = 1e-4  # cosine that is 0 but for the rounding of single precision
LEARNED_SHARE = 0.1  # weight of the learned graph; chosen on the genres of MovieLens-1M: more lowers agreement


def pattern_factors(pattern: Any, rank: int = 128) -> np.ndarray:
    r"""Factors of the rows whose cosine says how similar their two-step walks are; float32, (n, min(rank, n, m)).

    With the 0/1 pattern P (n x m), its degrees d (rows) and e (columns), and
    :math:`B = d^{-1/2} P e^{-1/2} = U \Sigma V^\top`, the factors are :math:`U \Sigma^2` without their component along
    :math:`u_0 = d^{1/2} / |d^{1/2}|`: their inner products are :math:`(B B^\top)^2 - u_0 u_0^\top`. So two items are
    similar if they go together with the same other items more than their numbers of entries would have it: u_0 is the
    singular vector of the value 1 that every connected pattern has, and measures only how popular a node is. Small
    singular values, mostly noise, count by their fourth power. The factors of a row without entries are 0, and so are
    all factors of a full pattern.

    Parameters
    ----------
    pattern : sparse or ndarray, shape (n, m)
        Rows are the nodes; every positive entry is one, whatever its value.
    rank : int
        Largest number of factors.
    """
    from sklearn.utils.extmath import randomized_svd

    check_integer("rank", rank, minimum=1)
    entries = _entries(pattern)
    rows, columns = (np.maximum(entries.sum(axis=axis), 1) ** -0.5 for axis in (1, 0))  # (n,), (m,)
    scaled = sp.csr_array(sp.diags_array(rows) @ entries @ sp.diags_array(columns))
    if min(rows.size, columns.size) <= max(rank, _EXACT_BELOW):
        left, values, _ = np.linalg.svd(scaled.toarray(), full_matrices=False)
    else:
        left, values, _ = randomized_svd(sp.csr_matrix(scaled), rank, random_state=0)
    factors = left[:, :rank] * values[:rank] ** 2
    degrees = np.asarray(entries.sum(axis=1))
    popular = np.sqrt(degrees / max(degrees.sum(), 1))  # u_0
    factors -= np.outer(popular, popular @ factors)
    factors[np.linalg.norm(factors, axis=1) < _NOTHING] = 0
    return factors.astype(np.float32)


def with_pattern(learned: Any, pattern: Any, k: int = 50, share: float = LEARNED_SHARE) -> sp.csr_array:
    """A learned graph joined with the nearest neighbours by the pattern, shape (n, n).

    An edge weighs the cosine of the `pattern_factors` of its ends, where one of the two is among the k nearest of the
    other, plus `share` times its learned weight over the root of both learned degrees.

    Parameters
    ----------
    learned : sparse or ndarray, shape (n, n)
        Symmetric, non-negative.
    pattern : sparse or ndarray, shape (n, m)
        Rows are the nodes, in the order of `learned`.
    k : int
    share : float
    """
    adjacency, similar = sp.csr_array(learned, dtype=np.float64), _pattern_graph(pattern, k)
    n = similar.indptr.size - 1
    if adjacency.shape != (n, n):
        raise DataError(
            f"expected a learned graph of {n} x {n}, one node a row of the pattern, found {adjacency.shape}"
        )
    joined = sp.csr_array(similar + share * scaled_adjacency(adjacency))
    joined.eliminate_zeros()
    return joined


def with_pattern_of_isolated(learned: sp.csr_array, pattern: Any, k: int = 50) -> sp.csr_array:
    """A learned graph in which nodes without an edge get those of the pattern, shape (n, n).

    Such nodes are new since the training, or nothing but the pattern tells nodes apart. An edge of theirs weighs the
    cosine of the `pattern_factors` of its ends, times the median over the other nodes of the largest learned weight:
    so a cosine of 1 is as much as the nearest neighbour of a usual node. It weighs at most the median of the learned
    edges of its other end. Without any learned edge it is the cosine.

    Parameters
    ----------
    learned, pattern, k
        As in `with_pattern`; the learned graph is returned where no node with entries lacks an edge.

    Examples
    --------
    >>> learned = sp.csr_array([[0, 0.2, 0], [0.2, 0, 0], [0, 0, 0]])
    >>> with_pattern_of_isolated(learned, [[1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 0, 0]]).toarray().round(3)
    array([[0. , 0.2, 0.2],
           [0.2, 0. , 0. ],
           [0.2, 0. , 0. ]])
    """
    isolated = np.diff(learned.indptr) == 0
    if not (isolated & (np.diff(_entries(pattern).indptr) > 0)).any():
        return learned
    largest = learned.max(axis=1).toarray().ravel()
    unit = 1.0 if isolated.all() else float(np.median(largest[~isolated]))
    edges = sp.coo_array(_pattern_graph(pattern, k))
    kept = isolated[edges.row] | isolated[edges.col]
    rows, columns = edges.row[kept], edges.col[kept]
    most = np.full(isolated.size, np.inf)
    most[~isolated] = [np.median(learned.data[a:b]) for a, b in itertools.pairwise(learned.indptr) if a < b]
    weights = np.minimum(unit * edges.data[kept], np.minimum(most[rows], most[columns]))
    added = sp.csr_array((weights, (rows, columns)), shape=learned.shape)
    whole = sp.csr_array(learned + added)
    whole.eliminate_zeros()
    return whole


def _pattern_graph(pattern: Any, k: int) -> sp.csr_array:
    """The cosines of the pattern's factors with the k nearest nodes of each, shape (n, n)."""
    similar = nearest_neighbors_graph(pattern_factors(pattern), k, "cosine")
    similar.data[similar.data < _NO_COSINE] = 0
    return similar


def _entries(pattern: Any) -> sp.csr_array:
    positive = sp.coo_array(pattern)
    kept = positive.data > 0
    ones = np.ones(np.count_nonzero(kept), dtype=np.float32)
    return sp.csr_array((ones, (positive.row[kept], positive.col[kept])), shape=positive.shape)
