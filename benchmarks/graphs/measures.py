"""Measures of the agreement of similarities with other knowledge about the nodes, and other ways to similarities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.comparison import spearman

N_NEIGHBORS = 10


def dense(similarity: Any) -> np.ndarray:
    """Similarities as an array of float64 with a zero diagonal, shape (n, n)."""
    matrix = np.array(similarity.toarray() if sp.issparse(similarity) else similarity, dtype=np.float64)
    np.fill_diagonal(matrix, 0)
    return matrix


def neighbor_agreement(similarity: Any, known: np.ndarray, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """For every node, the expected mean of `known` over its nearest neighbours, ties broken at random.

    A node with fewer edges than neighbours asked for gets the rest at random among those that it has no edge to, so
    that a graph gains nothing by leaving edges out.

    Row i of `similarity` says how near the others are to i; both are (n, n), and the result is (n,).
    """
    scores = dense(similarity)
    np.fill_diagonal(scores, -np.inf)
    k = min(n_neighbors, len(scores) - 1)
    last = np.partition(scores, -k, axis=1)[:, -k, None]  # (n, 1)
    above, level = scores > last, scores == last
    left = k - above.sum(axis=1)
    of_level = np.where(level, known, 0).sum(axis=1) / level.sum(axis=1)
    return (np.where(above, known, 0).sum(axis=1) + left * of_level) / k


def pair_correlation(similarity: Any, known: np.ndarray) -> float:
    """The Spearman correlation of two similarities over all pairs, each symmetrised."""
    pairs = np.triu_indices(len(known), k=1)
    matrix = dense(similarity)
    return spearman((matrix + matrix.T)[pairs], (known + known.T)[pairs])


def lift(similarity: Any, known: np.ndarray) -> float:
    """The mean similarity of nearest neighbours as a multiple of that of all pairs."""
    pairs = np.triu_indices(len(known), k=1)
    return float(neighbor_agreement(similarity, known).mean() / known[pairs].mean())


def jaccard(flags: np.ndarray) -> np.ndarray:
    """The Jaccard index of every two rows of flags, 0 where neither has any, (n, n)."""
    table = flags.astype(np.float64)
    shared, sizes = table @ table.T, table.sum(axis=1)
    return shared / np.maximum(sizes[:, None] + sizes - shared, 1)


def group_recovery_of(similarity: Any, groups: np.ndarray) -> tuple[float, float]:
    """AUC over all pairs, and NMI of Louvain on the 10 nearest neighbours of every node (positive weights)."""
    pairs = np.triu_indices(groups.size, k=1)
    matrix = dense(similarity)
    matrix = (matrix + matrix.T) / 2
    auc = float(roc_auc_score((groups[:, None] == groups)[pairs], matrix[pairs]))
    lowest = np.partition(matrix, -N_NEIGHBORS, axis=1)[:, -N_NEIGHBORS, None]
    nearest = np.where((matrix >= lowest) & (matrix > 0), matrix, 0)
    communities = SimilarityGraph(np.maximum(nearest, nearest.T), range(groups.size)).communities().to_numpy()
    return auc, float(normalized_mutual_info_score(groups, communities))


# -------------------------------------------------------------------- rivals; what is not observed is 0


def ease(rows: np.ndarray, decay: float) -> np.ndarray:
    """EASE's weights between the rows: those of a ridge regression of each row on all others, (n, n).

    Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019.
    """
    gram = (rows @ rows.T).astype(np.float64)
    precision = np.linalg.inv(gram + decay * np.eye(len(gram)))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0)
    return weights.T


def gip(rows: np.ndarray) -> np.ndarray:
    """The Gaussian interaction profile kernel, its width the mean squared norm of the rows, (n, n).

    Source: van Laarhoven, Nabuurs, Marchiori, Bioinformatics 27(21), 2011.
    """
    return rbf_kernel(rows, gamma=1 / np.square(rows).sum(axis=1).mean())


def smooth_graph(rows: np.ndarray, n_neighbors: int = 10, n_iterations: int = 300) -> np.ndarray:
    r"""The graph on which the rows are smooth signals, by the log-degree model, (n, n).

    .. math:: \min_{W \ge 0} \; \theta \|W \circ Z\|_1 - 1^\top \log(W 1) + \tfrac12 \|W\|_F^2

    with Z the squared distances, by the primal-dual iteration of the paper; :math:`\theta` is the one for which rows
    have about `n_neighbors` edges.

    Source: Kalofolias, How to learn a graph from smooth signals, AISTATS 2016 (algorithm 1); theta: Kalofolias and
    Perraudin, Large scale graph learning from smooth signals, ICLR 2019.
    """
    distances = euclidean_distances(rows, squared=True)
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


def _scale(distances: np.ndarray, n_neighbors: int) -> float:
    k = min(n_neighbors, len(distances) - 2)
    ordered = np.sort(distances, axis=1)[:, 1:].astype(np.float64)  # without the node itself
    totals = ordered[:, :k].sum(axis=1)
    spread = k * ordered[:, k] ** 2 - totals * ordered[:, k]
    return float(np.mean(1 / np.sqrt(spread[spread > 1e-9]))) if (spread > 1e-9).any() else 1.0
