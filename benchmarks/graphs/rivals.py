"""Other ways from a matrix to similarities of its rows; what is not observed is 0."""

from __future__ import annotations

import numpy as np


def cosine(rows: np.ndarray) -> np.ndarray:
    """Return the cosine of every two rows, 0 for rows of zeros; shape (n, n)."""
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(rows.dtype).tiny)
    return units @ units.T


def ease(rows: np.ndarray, decay: float) -> np.ndarray:
    """Return EASE's weights between the rows: those of a ridge regression of each row on all others; shape (n, n).

    Parameters
    ----------
    rows : ndarray, shape (n, m)
        For the item matrix of a rating matrix, its transpose.

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.

    Examples
    --------
    >>> ease(np.array([[1.0, 1.0], [1.0, 1.0]]), 1.0).round(3).tolist()
    [[0.0, 0.667], [0.667, 0.0]]
    """
    gram = (rows @ rows.T).astype(np.float64)
    precision = np.linalg.inv(gram + decay * np.eye(len(gram)))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0)
    return weights.T


def gip(rows: np.ndarray) -> np.ndarray:
    """Return the Gaussian interaction profile kernel, its width the mean squared norm of the rows; shape (n, n).

    Source: van Laarhoven, Nabuurs, Marchiori, Bioinformatics 27(21), 2011.
    """
    return np.exp(-_squared_distances(rows) / np.square(rows).sum(axis=1).mean())


def smooth_graph(rows: np.ndarray, n_neighbors: int = 10, n_iterations: int = 300) -> np.ndarray:
    r"""Return the graph on which the rows are smooth signals, by the log-degree model; shape (n, n).

    .. math:: \min_{W \ge 0} \; \theta \|W \circ Z\|_1 - 1^\top \log(W 1) + \tfrac12 \|W\|_F^2

    with Z the squared distances, by the primal-dual iteration of the paper; :math:`\theta` is the one for which rows
    have about `n_neighbors` edges.

    Source: Kalofolias, How to learn a graph from smooth signals, AISTATS 2016 (algorithm 1); theta: Kalofolias and
    Perraudin, Large scale graph learning from smooth signals, ICLR 2019.

    Examples
    --------
    >>> graph = smooth_graph(np.array([[0.0], [0.1], [5.0], [5.1]]), n_neighbors=1)
    >>> graph.argmax(axis=1)
    array([1, 0, 3, 2])
    """
    distances = _squared_distances(rows)
    distances = distances / distances.mean()
    costs = _scale(distances, n_neighbors) * distances
    n = len(costs)
    step = 0.9 / (3 + np.sqrt(2 * (n - 1)))
    weights, dual = np.zeros_like(costs), np.zeros(n, dtype=costs.dtype)
    for _ in range(n_iterations):
        point = weights - step * (2 * weights + dual[:, None] + dual)
        dual_point = dual + step * weights.sum(axis=1)
        primal = np.maximum(point - 2 * step * costs, 0)
        np.fill_diagonal(primal, 0)
        dual_primal = (dual_point - np.sqrt(np.square(dual_point) + 4 * step)) / 2
        dual += dual_primal + step * primal.sum(axis=1) - dual_point
        weights += primal - step * (2 * primal + dual_primal[:, None] + dual_primal) - point
        np.fill_diagonal(weights, 0)
    return np.maximum(weights, 0)


def _squared_distances(rows: np.ndarray) -> np.ndarray:
    norms = np.square(rows).sum(axis=1)
    distances = np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0)
    np.fill_diagonal(distances, 0)
    return distances


def _scale(distances: np.ndarray, n_neighbors: int) -> float:
    k = min(n_neighbors, len(distances) - 2)
    ordered = np.sort(distances, axis=1)[:, 1:].astype(np.float64)  # without the node itself
    totals = ordered[:, :k].sum(axis=1)
    spread = k * ordered[:, k] ** 2 - totals * ordered[:, k]
    return float(np.mean(1 / np.sqrt(spread[spread > 1e-9]))) if (spread > 1e-9).any() else 1.0
