"""Surprise's algorithms with the fit and predict of our models, for comparisons."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from air_recsys.adapters.surprise import to_trainset
from air_recsys.data.ids import as_id_array
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.validation import needs_extra

with needs_extra("surprise"):
    from surprise import AlgoBase, prediction_algorithms


class SurpriseModel:
    """A class of `surprise.prediction_algorithms`, such as "SVD", with its arguments; or an algorithm itself."""

    def __init__(self, algorithm: str | AlgoBase, **parameters: Any) -> None:
        if isinstance(algorithm, AlgoBase):
            self.algorithm: Any = algorithm
            return
        kind = getattr(prediction_algorithms, algorithm, None)
        if not isinstance(kind, type):
            raise ParameterError(f"algorithm must be a class of surprise.prediction_algorithms, found {algorithm!r}")
        self.algorithm = kind(**parameters)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        # Several algorithms divide by the number of ratings, so users and items without any are left out.
        table = as_interactions(interactions).to_frame().filter(["user", "item", "rating"])
        rated = Interactions.from_frame(table, allow_negative=True)
        self.algorithm.fit(to_trainset(rated))
        return self

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """The estimate of each pair, shape (n,)."""
        users, items = as_id_array(user_ids).tolist(), as_id_array(item_ids).tolist()
        if len(users) != len(items):
            raise DataError(f"expected as many users as items, found {len(users)} and {len(items)}")
        pairs = zip(users, items, strict=True)
        return np.array([self.algorithm.predict(user, item).est for user, item in pairs])
