"""Cornac's own models, for comparisons with ours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from air_recsys.data.ids import as_id_array
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.exceptions import ParameterError
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.storage.validation import needs_extra

with needs_extra("cornac"):
    from cornac import models
    from cornac.data import Dataset


def to_dataset(interactions: Interactions) -> Dataset:
    """A Cornac dataset with the same raw ids."""
    users, items = interactions.user_ids[interactions.user_index], interactions.item_ids[interactions.item_index]
    return Dataset.from_uir(list(zip(users.tolist(), items.tolist(), interactions.ratings.tolist(), strict=True)))


def cornac_model(algorithm: str, **parameters: Any) -> Any:
    """A model of `cornac.models` by its name, for instance "MF"."""
    model = getattr(models, algorithm, None)
    if not isinstance(model, type):
        raise ParameterError(f"algorithm must be a class of cornac.models, found {algorithm!r}")
    return model(**parameters)


class CornacLists:
    """A class of `cornac.models` that makes lists of items, such as "BPR", with its keyword arguments."""

    def __init__(self, algorithm: str, **parameters: Any) -> None:
        self.model = cornac_model(algorithm, **parameters)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        self._data = data = as_interactions(interactions, allow_negative=True)
        known = to_dataset(data)
        self.model.fit(known)
        # Places in Cornac's dataset; an id without a rating has one past its end, and so has the last, of unknown ids.
        self._users = np.array([*(known.uid_map.get(id, known.num_users) for id in data.user_ids), known.num_users])
        self._items = np.array([*(known.iid_map.get(id, known.num_items) for id in data.item_ids), known.num_items])
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return lists_of_scores(self._scores, self._data.to_csr(), users, n)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        return np.stack([self._of_user(user, -np.inf)[:-1] for user in users])

    def _of_user(self, user: int, of_unknown: float) -> np.ndarray:
        """The scores of all items and of an unknown one, (n_items + 1,); `of_unknown` where Cornac has none."""
        place = self._users[user]
        if not self.model.knows_user(place):
            return np.full(self._items.size, of_unknown)
        return np.append(self.model.score(place), of_unknown)[self._items]


class CornacModel(CornacLists):
    """A class of `cornac.models` that predicts ratings, such as "MF", with the fit and predict of our models."""

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """The rating of each pair of ids, shape (n,); that of an unknown user or item is the mean."""
        users = self._data.users.lookup(as_id_array(user_ids))
        items = self._data.items.lookup(as_id_array(item_ids))
        predicted = np.empty(users.size)
        different, counts = np.unique(users, return_counts=True)
        places = np.split(np.argsort(users, kind="stable"), np.cumsum(counts)[:-1])
        for user, asked in zip(different, places, strict=True):
            predicted[asked] = self._of_user(user, self.model.default_score())[items[asked]]
        return predicted
