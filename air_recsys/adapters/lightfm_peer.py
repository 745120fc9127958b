"""LightFM's models with the interface of our comparisons."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.storage.validation import import_extra

_EPOCHS = 30


class LightFMLists:
    """LightFM with one of its losses, "warp" or "bpr", and its keyword arguments; it learns the pattern alone."""

    def __init__(self, loss: str, **parameters: Any) -> None:
        self.model: Any = import_extra("lightfm", "lightfm").LightFM(loss=loss, **parameters)

    def fit(self, interactions: Interactions) -> Self:
        """Train on the pattern of some interactions."""
        self._seen, self._n_items = interactions.to_csr(), interactions.n_items
        pairs = interactions.user_index, interactions.item_index
        ones = np.ones(interactions.n_ratings, dtype=np.float32)
        shape = interactions.n_users, interactions.n_items
        self.model.fit(sp.coo_matrix((ones, pairs), shape=shape), epochs=_EPOCHS, num_threads=1)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items of some users, by positions; (b, n), or fewer; -1 where none is left."""
        return lists_of_scores(self._scores, self._seen, users, n)

    def _scores(self, users: np.ndarray) -> np.ndarray:
        items = np.arange(self._n_items)
        return np.stack([self.model.predict(int(user), items) for user in users])
