"""Surprise: its trainsets, and its algorithms under our contract of fit and predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from air_recsys.interactions import Interactions, as_interactions
from air_recsys.validation import import_extra

if TYPE_CHECKING:
    from surprise import Trainset


def to_trainset(interactions: Interactions) -> Trainset:
    """Return a Surprise trainset with the same raw ids, inner ids equal to our indices.

    Users and items without ratings are left out of Surprise's rating lists but keep their ids.
    """
    surprise = import_extra("surprise", "surprise")
    by_user: dict[int, list[tuple[int, float]]] = {index: [] for index in range(interactions.n_users)}
    by_item: dict[int, list[tuple[int, float]]] = {index: [] for index in range(interactions.n_items)}
    triples = (interactions.user_index, interactions.item_index, interactions.ratings)
    for user, item, rating in zip(*(column.tolist() for column in triples), strict=True):
        by_user[user].append((item, rating))
        by_item[item].append((user, rating))
    return surprise.Trainset(
        by_user,
        by_item,
        interactions.n_users,
        interactions.n_items,
        interactions.n_ratings,
        (float(interactions.ratings.min()), float(interactions.ratings.max())),
        {raw: inner for inner, raw in enumerate(interactions.user_ids.tolist())},
        {raw: inner for inner, raw in enumerate(interactions.item_ids.tolist())},
    )


class SurpriseModel:
    """An algorithm of Surprise with the fit and predict of our models, to stand beside them in a comparison.

    Parameters
    ----------
    algorithm : str
        A class of `surprise.prediction_algorithms`, for instance "SVD" or "SVDpp".
    **parameters
        Its keyword arguments.
    """

    def __init__(self, algorithm: str, **parameters: Any) -> None:
        self.algorithm = getattr(import_extra("surprise", "surprise"), algorithm)(**parameters)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        self.algorithm.fit(to_trainset(as_interactions(interactions)))
        return self

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """Return the estimate of each pair, shape (n,)."""
        pairs = zip(np.asarray(user_ids).tolist(), np.asarray(item_ids).tolist(), strict=True)
        return np.array([self.algorithm.predict(user, item).est for user, item in pairs])
