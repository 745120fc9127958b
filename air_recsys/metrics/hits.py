"""From recommended and relevant items to hits, and from a user's hits to that user's score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from air_recsys.metrics.checks import Csr, check_sparse

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]


def as_relevant(matrix: Any) -> Csr:
    """Return the non-zero entries of a users x items sparse matrix, each once, rows sorted."""
    relevant = check_sparse("relevant", matrix, (None, None)).copy()
    relevant.sum_duplicates()
    relevant.eliminate_zeros()
    return relevant


def find_hits(recommended: np.ndarray, relevant: Csr) -> np.ndarray:
    """Return which recommended items are relevant, shape (n_users, k); -1 never is.

    Parameters
    ----------
    recommended : ndarray of int, shape (n_users, k)
    relevant : csr_array, shape (n_users, n_items)
        As from `as_relevant`.
    """
    n_users, n_items = relevant.shape
    rows = np.repeat(np.arange(n_users), np.diff(relevant.indptr))
    known = rows * n_items + relevant.indices
    wanted = np.arange(n_users)[:, None] * n_items + recommended  # (n_users, k)
    return np.isin(wanted, known) & (recommended >= 0)


def precision(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return hits / k of each user."""
    return hits.sum(axis=1) / hits.shape[1]


def recall(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return hits / number of relevant items of each user."""
    return hits.sum(axis=1) / n_relevant


def hit_rate(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return 1 for each user with a hit, else 0."""
    return (hits.sum(axis=1) > 0).astype(np.float64)


def ndcg(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the discounted gain of each user over that of the best possible list of k."""
    k = hits.shape[1]
    discount = 1 / np.log2(np.arange(2, k + 2))  # (k,)
    ideal: np.ndarray = np.cumsum(discount)[np.minimum(n_relevant, k) - 1]
    # Added up in the same order as the ideal, so that a perfect list has exactly 1.
    return np.cumsum(hits * discount, axis=1)[:, -1] / ideal


def average_precision(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the precision at each hit, summed, over min(k, number of relevant items), of each user."""
    k = hits.shape[1]
    precisions = np.cumsum(hits, axis=1) / np.arange(1, k + 1)  # (n_users, k)
    return (precisions * hits).sum(axis=1) / np.minimum(n_relevant, k)


MEASURES: dict[str, Measure] = {
    "precision_at_k": precision,
    "recall_at_k": recall,
    "ndcg_at_k": ndcg,
    "map_at_k": average_precision,
    "hit_rate_at_k": hit_rate,
}
