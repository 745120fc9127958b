"""Means, counts and seen items of some interactions."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataWarning

_DAMPING = 5.0  # ratings, as in `BiasModel`


class TrainingStatistics:
    """Means, counts and seen items of some interactions, each computed when it is first asked for.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, float("nan")], [2, 1]])
    >>> statistics = TrainingStatistics(data)
    >>> statistics.user_means, statistics.item_counts, statistics.rating_range
    (array([5. , 1.5]), array([2, 1]), (1.0, 5.0))
    >>> statistics.damped_item_means.round(2)
    array([2.9 , 2.39])
    """

    def __init__(self, data: Interactions, mean: float | None = None) -> None:
        self._data, self._given = data, mean

    @cached_property
    def mean(self) -> float:
        """Mean of all ratings, or that of a training of which these are no part."""
        return float(self._data.ratings.mean()) if self._given is None else self._given

    @cached_property
    def rating_range(self) -> tuple[float, float]:
        """Smallest and largest rating."""
        return self._data.rating_range

    @cached_property
    def item_counts(self) -> np.ndarray:
        """Number of ratings of each item, shape (n_items,)."""
        return np.bincount(self._data.item_index, minlength=self._data.n_items)

    @cached_property
    def user_counts(self) -> np.ndarray:
        """Number of ratings of each user, shape (n_users,)."""
        return np.bincount(self._data.user_index, minlength=self._data.n_users)

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
        mean, unit = self.mean, float(np.abs(self._data.ratings).max(initial=0)) or 1.0
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


BINARY = "binary"
Clip = bool | str
"""False, True or "binary"."""

# Chosen on validation parts of IC and GPCR, see benchmarks/reports/accuracy.md.
_MEDIAN, _WIDTH = 0.33, 0.02


def is_binary(ratings: np.ndarray) -> bool:
    """Whether ratings are 0 and 1, both of them and nothing else."""
    return bool(((ratings == 0) | (ratings == 1)).all() and np.ptp(ratings) > 0)


def pushed(scores: np.ndarray) -> np.ndarray:
    r"""Scores of 0/1 data pushed towards 0 and 1, in their order: :math:`1 / (1 + e^{-(s - c) / w})`.

    A regularized score is drawn to 0: from about c = 0.33 on a pair is a 1 more often than a 0. The value of the
    lowest expected absolute error is the conditional median, 0 below c and 1 above it. A step there would make ties;
    w = 0.02 keeps the order, so rankings and average precision stay. What comes out is neither a mean nor a
    probability.
    """
    return expit((np.asarray(scores, dtype=np.float64) - _MEDIAN) / _WIDTH)


def limited(scores: np.ndarray, clip: Clip, scale: tuple[float, float], *, binary: bool) -> np.ndarray:
    """Scores as `clip` says.

    Parameters
    ----------
    clip : bool or "binary"
        False leaves scores as they are, True limits them to `scale`. "binary" pushes those of 0/1 data, see `pushed`,
        and limits others to `scale`, unless it is a single value.
    scale : tuple of float
        Smallest and largest rating.
    binary : bool
        Whether the ratings are 0 and 1, see `is_binary`.
    """
    if clip == BINARY and binary:
        return pushed(scores)
    no_range = clip == BINARY and scale[0] == scale[1]
    return scores.clip(*scale) if clip and not no_range else scores


def only_likes(data: Interactions) -> bool:
    """Whether only positive pairs are recorded: all values equal and above 0, and pairs that have none."""
    return _is_constant(data) and data.ratings[0] > 0 and data.density < 1


def warn_if_constant(data: Interactions, stacklevel: int = 3) -> None:
    """Warn of ratings that are all equal, which teach most engines nothing; likes have models of their own."""
    if _is_constant(data):
        warn_of_constant(data.n_ratings, data.ratings[0], likes=only_likes(data), stacklevel=stacklevel + 1)


def warn_of_constant(n_ratings: int, value: float, *, likes: bool, stacklevel: int) -> None:
    """Warn of so many ratings that are all equal to a value."""
    advice = (
        "; only positive pairs are recorded: to rank by likes take AIR.for_likes(), or ImplicitAIR of "
        "air_recsys.adapters.implicit, or set unobserved_weight > 0 of Adam"
    )
    warnings.warn(
        f"all {n_ratings} rating(s) equal {value:g}: nothing tells good pairs from bad ones"
        + (advice if likes else ""),
        DataWarning,
        stacklevel=stacklevel,
    )


def _is_constant(data: Interactions) -> bool:
    return bool(data.ratings.min() == data.ratings.max())
