"""implicit's own models and measures, for comparisons with ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.storage.validation import needs_extra

with needs_extra("implicit"):
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.cpu.topk import topk
    from implicit.evaluation import ranking_metrics_at_k


def alternating_least_squares(**parameters: Any) -> Any:
    """Return implicit's ALS for the CPU."""
    return AlternatingLeastSquares(**parameters)


def bayesian_ranking(**parameters: Any) -> Any:
    """Return implicit's BPR for the CPU."""
    return BayesianPersonalizedRanking(**parameters)


def ranking_metrics(model: Any, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10) -> dict[str, float]:
    """Return implicit's measures of a model's k best unseen items: precision, map, ndcg, auc."""
    return ranking_metrics_at_k(model, train, test, K=k, show_progress=False)


def top_items_of_implicit(
    user_vectors: np.ndarray, item_vectors: np.ndarray, n: int, seen: sp.csr_matrix
) -> tuple[np.ndarray, np.ndarray]:
    """Return the n items with the largest products, by the search that all of implicit's factorizations use."""
    return topk(item_vectors, user_vectors, n, filter_query_items=seen)
