"""myFM's Bayesian matrix factorization under our contract of fit and predict, to stand beside our models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.interactions import Interactions, as_interactions
from air_recsys.validation import needs_extra


@contextmanager
def _without_pkg_resources() -> Iterator[None]:
    """Let myFM 0.4.0 be imported: it wants two names of pkg_resources, gone from setuptools 82, and uses neither."""
    if "pkg_resources" in sys.modules:
        yield
        return
    stand_in: Any = ModuleType("pkg_resources")
    stand_in.get_distribution, stand_in.DistributionNotFound = None, LookupError
    sys.modules["pkg_resources"] = stand_in
    try:
        yield
    finally:
        del sys.modules["pkg_resources"]


with needs_extra("test"), _without_pkg_resources():
    from myfm import MyFMRegressor


class MyFMModel:
    """Bayesian matrix factorization with biases, sampled by Gibbs steps; the mean over the samples predicts.

    Parameters
    ----------
    rank : int
        Width of the factors.
    n_steps : int
        Gibbs steps; all but the first five are kept.
    random_state : int

    Examples
    --------
    >>> ratings = np.array([[5.0, 3.0], [4.0, np.nan]])
    >>> MyFMModel(rank=1, n_steps=10).fit(ratings).predict([1], [1]).shape
    (1,)
    """

    def __init__(self, rank: int, n_steps: int, random_state: int = 0) -> None:
        self.n_steps = n_steps
        self._model = MyFMRegressor(rank=rank, random_seed=random_state)

    def fit(self, interactions: Any) -> Self:
        """Train on whatever `as_interactions` accepts."""
        self._data = as_interactions(interactions)
        design = _one_hot(self._data, self._data.user_index, self._data.item_index)
        sides = [self._data.n_users, self._data.n_items]
        self._model.fit(design, self._data.ratings, n_iter=self.n_steps, group_shapes=sides)
        return self

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """Return the mean over the samples for each pair of known ids, shape (n,)."""
        users, items = self._data.users.lookup(user_ids), self._data.items.lookup(item_ids)
        return np.asarray(self._model.predict(_one_hot(self._data, users, items)))


def _one_hot(data: Interactions, users: np.ndarray, items: np.ndarray) -> sp.csr_matrix:
    """Return a row a pair with a 1 for its user and one for its item, shape (n, n_users + n_items)."""
    columns = np.column_stack([users, data.n_users + items]).ravel().astype(np.int32)
    starts = np.arange(0, columns.size + 1, 2, dtype=np.int32)
    return sp.csr_matrix((np.ones(columns.size), columns, starts), shape=(users.size, data.n_users + data.n_items))
