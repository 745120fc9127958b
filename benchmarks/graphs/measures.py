"""Measures of the agreement of nodes' similarities with other knowledge about the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.comparison import spearman

N_NEIGHBORS = 10


def dense(similarity: Any) -> np.ndarray:
    """Return similarities as an array of float64 with a zero diagonal, shape (n, n)."""
    matrix = np.array(similarity.toarray() if sp.issparse(similarity) else similarity, dtype=np.float64)
    np.fill_diagonal(matrix, 0)
    return matrix


def neighbor_agreement(similarity: Any, known: np.ndarray, n_neighbors: int = N_NEIGHBORS) -> np.ndarray:
    """Return, for every node, the expected mean of `known` over its nearest neighbours, ties broken at random.

    A node with fewer edges than neighbours asked for gets the rest at random among those that it has no edge to, so
    that a graph gains nothing by leaving edges out.

    Parameters
    ----------
    similarity : sparse or ndarray, shape (n, n)
        Row i says how near the others are to i.
    known : ndarray, shape (n, n)

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> known = np.array([[0, 1, 0.5], [1, 0, 0], [0.5, 0, 0]])
    >>> neighbor_agreement([[0, 2, 1], [2, 0, 1], [0, 0, 0]], known, n_neighbors=1)
    array([1.  , 1.  , 0.25])
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
    """Return the Spearman correlation of two similarities over all pairs, each symmetrised."""
    pairs = np.triu_indices(len(known), k=1)
    matrix = dense(similarity)
    return spearman((matrix + matrix.T)[pairs], (known + known.T)[pairs])


def lift(similarity: Any, known: np.ndarray) -> float:
    """Return the mean similarity of nearest neighbours as a multiple of that of all pairs."""
    pairs = np.triu_indices(len(known), k=1)
    return float(neighbor_agreement(similarity, known).mean() / known[pairs].mean())


def jaccard(flags: np.ndarray) -> np.ndarray:
    """Return the Jaccard index of every two rows of flags, 0 where neither has any; shape (n, n).

    Examples
    --------
    >>> jaccard(np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    table = flags.astype(np.float64)
    shared, sizes = table @ table.T, table.sum(axis=1)
    return shared / np.maximum(sizes[:, None] + sizes - shared, 1)


def group_recovery_of(similarity: Any, groups: np.ndarray) -> tuple[float, float]:
    """Return AUC over all pairs, and NMI of Louvain on the 10 nearest neighbours of every node (positive weights)."""
    pairs = np.triu_indices(groups.size, k=1)
    matrix = dense(similarity)
    matrix = (matrix + matrix.T) / 2
    auc = float(roc_auc_score((groups[:, None] == groups)[pairs], matrix[pairs]))
    lowest = np.partition(matrix, -N_NEIGHBORS, axis=1)[:, -N_NEIGHBORS, None]
    nearest = np.where((matrix >= lowest) & (matrix > 0), matrix, 0)
    communities = SimilarityGraph(np.maximum(nearest, nearest.T), range(groups.size)).communities().to_numpy()
    return auc, float(normalized_mutual_info_score(groups, communities))
