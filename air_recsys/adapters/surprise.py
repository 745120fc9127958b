"""Surprise: its trainsets, and its algorithms under our contract of fit and predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.ids import as_id_array
from air_recsys.interactions import Interactions, as_interactions
from air_recsys.validation import import_extra

if TYPE_CHECKING:
    from surprise import Trainset


def to_trainset(interactions: Interactions) -> Trainset:
    """Return a Surprise trainset with the same raw ids, inner ids equal to our indices.

    Users and items without ratings keep their ids, with empty rating lists; some of Surprise's algorithms fail on
    those.
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
        found = getattr(import_extra("surprise.prediction_algorithms", "surprise"), algorithm, None)
        if not isinstance(found, type):
            raise ParameterError(f"algorithm must be a class of surprise.prediction_algorithms, found {algorithm!r}")
        self.algorithm: Any = found(**parameters)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        # Several algorithms divide by the number of ratings, so users and items without any are left out.
        rated = Interactions.from_frame(as_interactions(interactions).to_frame(), allow_negative=True)
        self.algorithm.fit(to_trainset(rated))
        return self

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """Return the estimate of each pair, shape (n,)."""
        users, items = as_id_array(user_ids).tolist(), as_id_array(item_ids).tolist()
        if len(users) != len(items):
            raise DataError(f"expected as many users as items, found {len(users)} and {len(items)}")
        pairs = zip(users, items, strict=True)
        return np.array([self.algorithm.predict(user, item).est for user, item in pairs])
