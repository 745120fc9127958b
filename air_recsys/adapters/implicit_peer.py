"""implicit's own models, for comparisons with ours."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.inputs import interaction_values, strengths
from air_recsys.storage.threads import one_thread
from air_recsys.storage.validation import check_choice, needs_extra

with needs_extra("implicit"):
    from implicit.cpu.als import AlternatingLeastSquares
    from implicit.cpu.bpr import BayesianPersonalizedRanking
    from implicit.nearest_neighbours import BM25Recommender
    from implicit.recommender_base import RecommenderBase


class ImplicitLists:
    """A model of implicit that makes lists, for comparisons with ours."""

    def __init__(self, algorithm: str | RecommenderBase, strength: float = 0.0, **parameters: Any) -> None:
        self._strength = strength  # how values count
        if isinstance(algorithm, RecommenderBase):
            self.model: Any = algorithm
            return
        models = {"als": AlternatingLeastSquares, "bpr": BayesianPersonalizedRanking, "bm25": BM25Recommender}
        with one_thread():  # implicit warns of more, and trains more slowly with them
            self.model = models[check_choice("algorithm", algorithm, tuple(models))](**parameters)

    def fit(self, interactions: Interactions) -> Self:
        """Train on the pattern of some interactions, or on how much they count."""
        pattern = sp.csr_matrix(strengths(interaction_values(interactions), self._strength))
        with one_thread(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Method expects CSR input")  # of its models of items, about themselves
            self.model.fit(pattern, show_progress=False)
        self._pattern = pattern
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return self._lists(users, self._pattern[users], n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Those of new users with these items, (b, n_items), of "als" alone: their factors are solved for."""
        return self._lists(np.arange(rows.shape[0]), sp.csr_matrix(rows), n, recalculate_user=True)

    def _lists(self, users: np.ndarray, rows: sp.csr_matrix, n: int, **how: bool) -> np.ndarray:
        n = min(n, self._pattern.shape[1])  # type: ignore[index]
        with one_thread():
            items, scores = self.model.recommend(users, rows, N=n, **how)
        left = np.asarray(scores) > np.finfo(np.float32).min  # the score of items that it leaves out
        return np.where(left, items, -1).astype(np.int64)
