"""Means, counts and seen items of some interactions."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions

_DAMPING = 5.0  # ratings, as in `BiasModel`


class TrainingStatistics:
    """Means, counts and seen items of some interactions, each computed when it is first asked for.

    Parameters
    ----------
    data : Interactions

    Examples
    --------
    >>> data = Interactions.from_dense([[5, float("nan")], [2, 1]])
    >>> statistics = TrainingStatistics(data)
    >>> statistics.user_means, statistics.item_counts, statistics.rating_range
    (array([5. , 1.5]), array([2, 1]), (1.0, 5.0))
    >>> statistics.damped_item_means.round(2)
    array([2.9 , 2.39])
    """

    def __init__(self, data: Interactions) -> None:
        self._data = data

    @cached_property
    def mean(self) -> float:
        """Mean of all ratings."""
        return float(self._data.ratings.mean())

    @cached_property
    def rating_range(self) -> tuple[float, float]:
        """Smallest and largest rating."""
        return float(self._data.ratings.min()), float(self._data.ratings.max())

    @cached_property
    def item_counts(self) -> np.ndarray:
        """Number of ratings of each item, shape (n_items,)."""
        return np.bincount(self._data.item_index, minlength=self._data.n_items)

    @cached_property
    def user_means(self) -> np.ndarray:
        """Mean rating of each user, that of all ratings for a user without any; shape (n_users,)."""
        return self._means(self._data.user_index, self._data.n_users)

    @cached_property
    def item_means(self) -> np.ndarray:
        """Mean rating of each item, that of all ratings for an item without any; shape (n_items,)."""
        return self._means(self._data.item_index, self._data.n_items)

    @cached_property
    def damped_item_means(self) -> np.ndarray:
        """Mean rating of each item with five ratings of the mean added, shape (n_items,): few ratings say little."""
        mean, unit = self.mean, float(np.abs(self._data.ratings).max()) or 1.0
        sums = np.bincount(self._data.item_index, self._data.ratings, self._data.n_items)
        means = (sums + _DAMPING * mean) / (self.item_counts + _DAMPING)
        return np.round(means / unit, 12) * unit  # so that those tie which only rounding tells apart

    @cached_property
    def seen(self) -> sp.csr_array:
        """Which items each user has rated, shape (n_users, n_items), of bool."""
        data = self._data
        ones = np.ones(data.n_ratings, dtype=bool)
        return sp.csr_array((ones, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))

    def _means(self, index: np.ndarray, size: int) -> np.ndarray:
        counts = np.bincount(index, minlength=size)
        sums = np.bincount(index, weights=self._data.ratings, minlength=size)
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.mean)
