"""Lists of items by positions: of models of this library, of what is popular, and of any model by its scores."""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import GraphRanker, Recommender

_PAIRS = 500_000  # scored at a time


class Lister(Protocol):
    """A model that makes lists of items for users, all by their positions in the training data."""

    def fit(self, interactions: Interactions) -> Any:
        """Train."""
        ...

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items, shape (b, n) or fewer columns; -1 where none is left."""
        ...


@runtime_checkable
class NewUsersLister(Lister, Protocol):
    """A `Lister` that makes lists for users whom it was not trained on, too."""

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """The best n unseen items of users with these items, (b, n_items) and 1 each, as `lists` does."""
        ...


class Recommending:
    """The lists of a model of this library, by positions; those of new users of a `GraphRanker` alone.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, 1], [np.nan, 1, 1]])
    >>> Recommending(GraphRanker(settings={})).fit(data).lists(np.array([0, 1]), 2).tolist()
    [[2, -1], [-1, -1]]
    """

    def __init__(self, model: Recommender) -> None:
        self.model = model

    def fit(self, interactions: Interactions) -> Self:
        """Train the model."""
        self.model.fit(interactions)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The lists of `recommend`, by positions; -1 where it has no item left."""
        data = self.model.interactions_
        table = self.model.recommend(data.user_ids[users], n)
        place = np.full(data.n_users, -1)
        place[users] = np.arange(users.size)
        return self._positions(table, place[data.users.lookup(table["user"].to_numpy())], (users.size, n))

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """The lists of users folded in with these items, (b, n_items)."""
        assert isinstance(self.model, GraphRanker)
        table = self.model.fold_in(rows).recommend(n)
        return self._positions(table, table["user"].to_numpy(), (rows.shape[0], n))

    def _positions(self, table: pd.DataFrame, places: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        items = np.full(shape, -1, dtype=np.int64)
        items[places, table["rank"].to_numpy() - 1] = self.model.interactions_.items.lookup(table["item"].to_numpy())
        return items


class Popularity:
    """The most interacted items that a user does not have.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [np.nan, 1, 1]])
    >>> Popularity().fit(data).lists(np.array([0, 1]), 1).tolist()
    [[2], [0]]
    """

    def fit(self, interactions: Interactions) -> Self:
        """Count."""
        self._seen = interactions.to_csr()
        self._counts = np.bincount(interactions.item_index, minlength=interactions.n_items).astype(np.float64)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items, by positions."""
        return self._lists(self._seen, users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Those of new users with these items, (b, n_items)."""
        return self._lists(rows, np.arange(rows.shape[0]), n)

    def _lists(self, seen: Csr, users: np.ndarray, n: int) -> np.ndarray:
        return lists_of_scores(lambda some: np.tile(self._counts, (some.size, 1)), seen, users, n)


def lists_of(model: Any, shown: Interactions, users: np.ndarray, k: int) -> np.ndarray:
    """The best unseen items of some users, (n_users, at most k): by the model's own lists, or by its scores."""
    if isinstance(model, Recommender):
        return Recommending(model).lists(users, k)
    if hasattr(model, "lists"):
        return np.asarray(model.lists(users, k))
    step = max(1, _PAIRS // shown.n_items)
    seen = shown.to_csr()

    def scores(some: np.ndarray) -> np.ndarray:
        user_ids, item_ids = np.repeat(shown.user_ids[some], shown.n_items), np.tile(shown.item_ids, some.size)
        return np.asarray(model.predict(user_ids, item_ids)).reshape(some.size, shown.n_items)

    blocks = [users[start : start + step] for start in range(0, users.size, step)]
    return np.concatenate([lists_of_scores(scores, seen, block, k) for block in blocks])


def lists_of_new_users(model: Any, rows: Csr, k: int) -> np.ndarray:
    """The best items of new users with these items, (b, n_items), as `lists_of` makes those of users."""
    lister = Recommending(model) if isinstance(model, Recommender) else model
    return np.asarray(lister.lists_of_new(rows, k))
