"""Hits of recommended items among the relevant ones, and the score of each user's hits."""

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
    relevant_pairs = rows * n_items + relevant.indices
    recommended_pairs = np.arange(n_users)[:, None] * n_items + recommended  # (n_users, k)
    return np.isin(recommended_pairs, relevant_pairs) & (recommended >= 0)


def ndcg(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the discounted gain of each user over that of the best possible list of k."""
    k = hits.shape[1]
    discount = 1 / np.log2(np.arange(2, k + 2))  # (k,)
    ideal: np.ndarray = np.cumsum(discount)[np.minimum(n_relevant, k) - 1]
    # The sum has the order of the ideal one, so a perfect list has exactly 1.
    return np.cumsum(hits * discount, axis=1)[:, -1] / ideal


def average_precision(hits: np.ndarray, n_relevant: np.ndarray) -> np.ndarray:
    """Return the precision at each hit, summed, over min(k, number of relevant items), of each user."""
    k = hits.shape[1]
    precisions = np.cumsum(hits, axis=1) / np.arange(1, k + 1)  # (n_users, k)
    return (precisions * hits).sum(axis=1) / np.minimum(n_relevant, k)


def reciprocal_rank(hits: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Return one over the place of the first hit of each user, 0 where there is none."""
    return np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)


MEASURES: dict[str, Measure] = {
    "precision_at_k": lambda hits, _: hits.sum(axis=1) / hits.shape[1],
    "recall_at_k": lambda hits, n_relevant: hits.sum(axis=1) / n_relevant,
    "ndcg_at_k": ndcg,
    "map_at_k": average_precision,
    "mrr_at_k": reciprocal_rank,
    "hit_rate_at_k": lambda hits, _: (hits.sum(axis=1) > 0).astype(np.float64),
}
