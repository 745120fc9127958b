"""The score of a setting: its error or its ranking on a held-out part of the training data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import check_fraction
from air_recsys.exceptions import DataError
from air_recsys.metrics import auroc, average_precision, mae, ranking_report, rmse
from air_recsys.models.learned import Factors
from air_recsys.models.ratings import Clip, is_binary, limited
from air_recsys.splits import random_holdout
from air_recsys.storage.validation import check_choice

_LIST_LENGTH = 10


class Metric(NamedTuple):
    """A measure with its direction in Optuna's words, and whether it needs labels 0 and 1."""

    direction: str
    on_labels: bool
    of_pairs: Callable[[np.ndarray, np.ndarray], float] | None = None  # None ranks all items for each user


METRICS: dict[str, Metric] = {
    "rmse": Metric("minimize", False, rmse),
    "mae": Metric("minimize", False, mae),
    "average_precision": Metric("maximize", True, average_precision),
    "auroc": Metric("maximize", True, auroc),
    "ndcg_at_k": Metric("maximize", False),
}
"""The measures of `tune`, as `air_recsys.metrics` defines them; k is 10."""


class Holdout:
    """A fixed random part of the training data, and the score of factors on it.

    Parameters
    ----------
    data : Interactions
    fraction : float
        Share of the ratings to hold out, in (0, 1).
    metric : str
        A key of `METRICS`.
    random_state : int

    Attributes
    ----------
    training, validation : Interactions
        Two disjoint parts of `data` over the same users and items.

    Raises
    ------
    ParameterError
        For an unknown metric or a fraction out of its range.
    DataError
        If the data do not suit the metric.
    """

    def __init__(self, data: Interactions, fraction: float, metric: str, random_state: int) -> None:
        self.metric = METRICS[check_choice("metric", metric, list(METRICS))]
        check_fraction("validation_fraction", fraction)
        split = random_holdout(data, fraction, random_state=random_state)
        self.training, self.validation = data.select(split.train), data.select(split.test)
        ratings = np.unique(self.validation.ratings)
        if self.metric.on_labels and ratings.tolist() != [0, 1]:
            raise DataError(
                f"metric={metric!r} needs ratings 0 and 1, both of them in the validation part, found "
                f"{', '.join(f'{value:g}' for value in ratings[:5])}"
            )
        if self.metric.of_pairs is None and not ratings.any():
            raise DataError(f"metric={metric!r} needs ratings other than 0 in the validation part, found none")

    def score(self, factors: Factors, clip: Clip) -> float:
        """Return the score of factors over the users and items of the data, predicted as `predict` does."""
        measure = self.metric.of_pairs
        if measure is None:
            return self._rank(factors)
        scores = factors.scores(self.validation.user_index, self.validation.item_index)
        ratings = self.training.ratings
        scale = float(ratings.min()), float(ratings.max())
        return measure(self.validation.ratings, limited(scores, clip, scale, binary=is_binary(ratings)))

    def _rank(self, factors: Factors) -> float:
        def score_block(users: np.ndarray) -> np.ndarray:
            products = factors.user_factors[users] @ factors.item_factors.T
            return products + factors.user_biases[users, None] + factors.item_biases

        k = min(_LIST_LENGTH, self.validation.n_items)
        relevant, seen = self.validation.to_csr(), self.training.to_csr()
        return ranking_report(score_block, relevant, seen, k)["ndcg_at_k"]
