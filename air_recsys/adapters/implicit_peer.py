"""implicit's own models and measures, to stand beside ours in a comparison."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from air_recsys.validation import needs_extra

with needs_extra("implicit"):
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.evaluation import ranking_metrics_at_k


def alternating_least_squares(**parameters: Any) -> Any:
    """Return implicit's ALS for the CPU."""
    return AlternatingLeastSquares(**parameters)


def ranking_metrics(model: Any, train: sp.csr_matrix, test: sp.csr_matrix, k: int = 10) -> dict[str, float]:
    """Return implicit's measures of a model's k best unseen items: precision, map, ndcg, auc."""
    return ranking_metrics_at_k(model, train, test, K=k, show_progress=False)
