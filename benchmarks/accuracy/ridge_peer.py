"""Ridge regression on users, items and their features, by scikit-learn, behind `fit` and `predict`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import Ridge

from air_recsys.data.features import Features
from air_recsys.data.interactions import Interactions
from air_recsys.metrics import rmse
from air_recsys.splits import random_holdout

_PENALTIES = 2.0 ** np.arange(-2, 9, 2)


class RidgeOnFeatures:
    """A bias of each user and item, and an effect of each feature: what a plain regression knows.

    The penalty of all is the best of 1/4 to 256 on a hidden tenth.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [0, 0, 1, 1] * 5, "item": range(20), "rating": [5.0, 1.0] * 10})
    >>> table = pd.DataFrame({"kind": ["a", "b"] * 11})
    >>> model = RidgeOnFeatures().fit(Interactions.from_frame(frame).with_features(item=table))
    >>> low, high = model.predict([0, 0], [21, 20])
    >>> bool(low < 3 < high)
    True
    """

    def fit(self, shown: Interactions) -> Self:
        """Train on ratings with features."""
        self._users, self._items = shown.users, shown.items
        self._known = [
            _with_unknown(features, len(index))
            for features, index in ((shown.user_features, self._users), (shown.item_features, self._items))
        ]
        parts = [shown.select(part) for part in random_holdout(shown, 0.1, random_state=0)]
        errors = [self._error(penalty, *parts) for penalty in _PENALTIES]
        self._model = self._trained(_PENALTIES[int(np.argmin(errors))], shown)
        return self

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """Return the prediction of each pair of ids."""
        return self._model.predict(self._design(self._users.lookup(user_ids), self._items.lookup(item_ids)))

    def _error(self, penalty: float, shown: Interactions, hidden: Interactions) -> float:
        found = self._trained(penalty, shown).predict(self._design(hidden.user_index, hidden.item_index))
        return rmse(hidden.ratings, found)

    def _trained(self, penalty: float, shown: Interactions) -> Ridge:
        design = self._design(shown.user_index, shown.item_index)
        return Ridge(alpha=penalty, solver="sparse_cg").fit(design, shown.ratings)

    def _design(self, users: np.ndarray, items: np.ndarray) -> sp.csr_array:
        (of_users, of_items), ones = self._known, np.ones(users.size)
        indicators = [
            sp.csr_array((ones, (np.arange(users.size), index % size)), (users.size, size))
            for index, size in ((users, len(of_users)), (items, len(of_items)))
        ]
        return sp.csr_array(sp.hstack([*indicators, of_users[users], of_items[items]]))


def _with_unknown(features: Features | None, n_rows: int) -> np.ndarray:
    """Return the numbers of all rows, and zeros at the end for an unknown one, at -1."""
    values = np.zeros((n_rows, 0)) if features is None else features.values.astype(np.float64)
    return np.pad(values, ((0, 1), (0, 0)))
