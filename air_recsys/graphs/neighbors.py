"""Graphs that are not learned: each row's nearest rows, of factors or by the cosine of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.data.columns import as_float
from air_recsys.exceptions import DataError
from air_recsys.storage.arrays import largest_of_rows
from air_recsys.storage.threads import in_workers
from air_recsys.storage.validation import check_choice, check_integer

_BLOCK_ENTRIES = 4_000_000  # entries of gathered factors in a block
_TIE = 1e-13  # of the mean squared norm, by which a row seems farther than the one before it
METRICS = ("cosine", "euclidean")


def cosine_neighbors(matrix: sp.csr_array, n_neighbors: int) -> sp.csr_array:
    """The graph of each row's nearest rows by the cosine of their stored entries, shape (m, m).

    Each row of `matrix` (m, n), such as centred ratings, chooses at most min(n_neighbors, m - 1) edges. An edge weighs
    the cosine, at least 0, halved where only one of its two ends chose it. Rows without entries stay isolated.
    """
    check_integer("n_neighbors", n_neighbors, minimum=1)
    k = min(n_neighbors, len(matrix.indptr) - 2)
    if k == 0:
        return sp.csr_array((1, 1))
    unit: Any = sp.csr_array(matrix, dtype=np.float64, copy=True)
    norms = np.sqrt(unit.power(2) @ np.ones(unit.shape[1]))  # (m,)
    unit.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(unit.indptr))
    n, columns = len(unit.indptr) - 1, sp.csc_array(unit.T)
    found, weights = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    for rows in np.array_split(np.arange(n), n * n // _BLOCK_ENTRIES + 1):
        cosines = (unit[rows] @ columns).toarray()  # (b, m)
        cosines[np.arange(rows.size), rows] = -np.inf
        found[rows] = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        weights[rows] = np.take_along_axis(cosines, found[rows], axis=1)
    half = weights.clip(0, 1).ravel() / 2
    chosen = sp.csr_array((half, (np.repeat(np.arange(n), k), found.ravel())), shape=(n, n))
    symmetric = sp.csr_array(chosen + chosen.T)
    symmetric.eliminate_zeros()
    return symmetric


def as_factors(factors: Any, n_ids: int) -> np.ndarray:
    """Factors as float32, shape (n, r), or `DataError` unless they are finite and one row per id."""
    array = as_float(factors, "factors")
    if array.ndim != 2 or len(array) != n_ids:
        raise DataError(f"expected factors of shape ({n_ids}, r), one row per id, found shape {array.shape}")
    if not np.isfinite(array).all():
        raise DataError(f"expected finite factors, found {np.count_nonzero(~np.isfinite(array))} NaN or infinite")
    return array.astype(np.float32)


def nearest_neighbors_graph(factors: np.ndarray, k: int, metric: str) -> sp.csr_array:
    r"""The graph in which every row of some factors is joined to its k nearest rows, shape (n, n).

    An edge stands where either of its ends is among the min(k, n - 1) nearest of the other. It weighs

    * "cosine": the cosine of the two rows; pairs with a cosine <= 0 and rows of zeros get no edge,
    * "euclidean": :math:`\exp(-|x_i - x_j|^2 / (\sigma_i \sigma_j))` with :math:`\sigma_i` the distance of row i's
      k-th neighbour, so that the unit of the factors does not matter and thin regions are joined as dense ones are.

    References
    ----------
    Zelnik-Manor and Perona, Self-Tuning Spectral Clustering, NIPS 2004 (the weights of "euclidean").
    """
    check_integer("k", k, minimum=1)
    check_choice("metric", metric, METRICS)
    n = len(factors)
    norms = np.linalg.norm(factors, axis=1)  # (n,)
    # A row of zeros has no direction, and would stand nearer to all than a cosine below 1/2.
    used = np.flatnonzero(norms > 0) if metric == "cosine" else np.arange(n)
    if used.size < 2:
        return sp.csr_array((n, n))
    points = factors[used] / norms[used, None] if metric == "cosine" else factors
    neighbors = _nearest(points, min(k, used.size - 1))  # (u, k)
    weights = _cosines(points, neighbors) if metric == "cosine" else _self_tuned(points, neighbors)
    rows = np.repeat(used, neighbors.shape[1])
    chosen = sp.csr_array((weights.ravel(), (rows, used[neighbors.ravel()])), shape=(n, n))
    symmetric = sp.csr_array(chosen.maximum(chosen.T))
    symmetric.eliminate_zeros()
    return symmetric


def _nearest(points: np.ndarray, k: int) -> np.ndarray:
    """The k nearest other rows of every row in ascending index order, (n, k); of rows as near the first ones."""
    points, n = points.astype(np.float64), len(points)
    norms, neighbors = np.square(points).sum(axis=1), np.empty((n, k), np.int64)
    norms += _TIE * norms.mean() * np.arange(n)
    block = max(1, _BLOCK_ENTRIES // n)

    def search(start: int) -> None:
        rows = points[start : start + block]
        nearness = 2 * rows @ points.T - norms  # (b, n); less the own norm, which changes no order
        own = np.arange(len(rows))
        nearness[own, start + own] = -np.inf
        neighbors[start : start + block] = np.sort(largest_of_rows(nearness, k)[1], axis=1)

    in_workers(search, range(0, n, block), work=n * n)
    return neighbors


def _cosines(units: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    """The cosine of every row with each of its neighbours, at least 0; shape (n, k)."""
    return _in_blocks(units, neighbors, lambda own, others: np.einsum("br,bkr->bk", own, others)).clip(0, 1)


def _self_tuned(points: np.ndarray, neighbors: np.ndarray) -> np.ndarray:
    squared = _in_blocks(points, neighbors, lambda own, others: np.square(others - own[:, None]).sum(axis=2))
    scales = np.sqrt(squared.max(axis=1))  # (n,), the distance of the k-th neighbour
    products = scales[:, None] * scales[neighbors]
    # Where k rows or more are equal the scale is 0: equal rows weigh 1, and others are infinitely far.
    ratio = np.divide(squared, products, out=np.where(squared > 0, np.inf, 0.0), where=products > 0)
    return np.exp(-ratio)


def _in_blocks(points: np.ndarray, neighbors: np.ndarray, measure: Any) -> np.ndarray:
    n, k = neighbors.shape
    values = np.empty((n, k))
    block = max(1, _BLOCK_ENTRIES // (k * max(1, points.shape[1])))
    for start in range(0, n, block):
        rows = slice(start, start + block)
        values[rows] = measure(points[rows], points[neighbors[rows]])
    return values
