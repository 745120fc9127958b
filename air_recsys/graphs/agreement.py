r"""The graph of rows whose residuals agree: who is near by factors, shares columns, and errs alike there.

A model leaves residuals :math:`r_{iu}` at the observed pairs of rows i and columns u. Two rows belong together where
one's residual tells the other's:

.. math::
    A_{ij} = \exp\Big(-\frac{|q_i - q_j|^2}{h\,m}\Big) \sqrt{J_{ij}}\,
             \Big(\beta + \Big[\frac{\sum_u r_{iu} r_{ju}}{(n_{ij} + n_0)\,\overline{r^2}}\Big]_+\Big),

with factors q, m the median squared distance of two rows, J the Jaccard index of their columns, n_ij the number of
shared columns. Each row keeps its k largest among the nearest by factors.
benchmarks/reports/graph-residuals.md says how the form was chosen.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.graphs.candidates import near_rows

N_EDGES = 20
_CANDIDATES = 60
_WIDTH = 0.25  # h
_SHRUNK = 50.0  # n_0, shared columns that count against an agreement
_FLOOR = 0.1  # beta
_SAMPLED = 1500  # rows whose distances give the median
_BLOCK = 4_000_000  # entries of a dense block of rows


def agreement_graph(points: np.ndarray, residuals: sp.csr_array, n_edges: int = N_EDGES) -> sp.csr_array:
    """The graph of rows, symmetric with an empty diagonal, (m, m) of float64.

    Parameters
    ----------
    points : ndarray, shape (m, r)
        Factors q of the rows.
    residuals : csr_array, shape (m, n)
        Stored entries are residuals, zeros included.
    n_edges : int
        Edges that each row chooses.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [1.0]])
    >>> left = sp.csr_array(np.array([[1.0, -1.0], [1.0, -1.0], [1.0, 1.0]]))
    >>> graph = agreement_graph(points, left, n_edges=1)
    >>> bool(graph[0, 1] > graph[1, 2])
    True
    """
    m = len(points)
    if m < 2 or not residuals.nnz:
        return sp.csr_array((m, m))
    points = points - points.mean(axis=0, dtype=np.float64)
    near = _nearest(points, min(_CANDIDATES, m - 1))
    rows, columns = np.repeat(np.arange(m), near.shape[1]), near.ravel()
    smaller, larger = np.minimum(rows, columns), np.maximum(rows, columns)
    pairs, place = np.unique(smaller * np.int64(m) + larger, return_inverse=True)
    first, second = pairs // m, pairs % m
    weights = _weights(points, residuals, first, second)[place].reshape(near.shape)
    chosen = np.argsort(-weights, axis=1, kind="stable")[:, :n_edges]
    ends = np.take_along_axis(near, chosen, axis=1)
    values = np.take_along_axis(weights, chosen, axis=1)
    directed = sp.csr_array((values.ravel(), (np.repeat(np.arange(m), chosen.shape[1]), ends.ravel())), shape=(m, m))
    directed.eliminate_zeros()
    return sp.csr_array(directed.maximum(directed.T))


def _nearest(points: np.ndarray, k: int) -> np.ndarray:
    """The k nearest other rows of every row, (m, k)."""
    found = torch.from_numpy(np.ascontiguousarray(points, dtype=np.float32))
    return near_rows(found, found, k).numpy()


def _weights(points: np.ndarray, residuals: sp.csr_array, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A of pairs of rows, (p,)."""
    counts = np.diff(residuals.indptr).astype(np.float64)
    shared, agreed = _shared(residuals, first, second)
    jaccard = shared / np.maximum(counts[first] + counts[second] - shared, 1.0)
    square = float(np.square(residuals.data).mean())
    agreement = agreed / ((shared + _SHRUNK) * square) if square else np.zeros(shared.size)
    distances = np.square(points[first] - points[second]).sum(axis=1)
    unit = _WIDTH * _median_distance(points)
    near = np.exp(-distances / unit) if unit else np.ones(distances.size)
    return near * np.sqrt(jaccard) * (_FLOOR + agreement.clip(min=0))


def _median_distance(points: np.ndarray) -> float:
    """The median squared distance of two rows, of some of them."""
    some = points
    if len(points) > _SAMPLED:
        some = points[np.random.default_rng(0).choice(len(points), _SAMPLED, replace=False)]
    norms = np.square(some).sum(axis=1)
    return float(np.median((norms[:, None] + norms - 2 * some @ some.T).clip(min=0)))


def _shared(residuals: sp.csr_array, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of shared columns of pairs of rows, and the sums of the products of their residuals there, (p,)."""
    m, n = residuals.shape
    indptr, counts = residuals.indptr.astype(np.int64), np.diff(residuals.indptr)
    swapped = counts[first] < counts[second]  # the row with more columns is dense, the other one is gone through
    dense, gone = np.where(swapped, second, first), np.where(swapped, first, second)
    order = np.argsort(dense, kind="stable")
    shared, agreed = np.zeros(first.size), np.zeros(first.size)
    step = max(1, _BLOCK // n)
    for start in range(0, m, step):
        rows = residuals[start : start + step]
        values, stored = np.zeros(rows.shape), np.zeros(rows.shape, dtype=bool)
        place = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices
        values[place], stored[place] = rows.data, True
        block = order[slice(*np.searchsorted(dense[order], (start, start + step)))]
        for pairs in np.array_split(block, max(1, int(counts[gone[block]].sum() // _BLOCK) + 1)):
            sizes = counts[gone[pairs]]
            entries = ranges(indptr[gone[pairs]], sizes)
            own, columns = np.repeat(dense[pairs] - start, sizes), residuals.indices[entries]
            shared[pairs] = sums(stored[own, columns].astype(np.float64), sizes)
            agreed[pairs] = sums(values[own, columns] * residuals.data[entries], sizes)
    return shared, agreed


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers from each start on, as many as its size, one after the other.

    Examples
    --------
    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(int(sizes.sum()))


def sums(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The sums of successive stretches of some sizes, 0 included; each is summed by itself.

    Examples
    --------
    >>> sums(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]))
    array([3., 0., 3.])
    """
    found, some = np.zeros(sizes.size), sizes > 0
    if some.any():
        found[some] = np.add.reduceat(values, (np.cumsum(sizes) - sizes)[some])
    return found
