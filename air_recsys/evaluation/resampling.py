"""Intervals of measures by a bootstrap over users: ratings of one user are not independent of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_MOST_GROUPS = 5_000
_BLOCK = 100


class Interval(NamedTuple):
    """A value, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class UserResamples:
    """The same random draws of users, with replacement, for every measure: so differences are paired.

    More than 5,000 users are drawn in that many random groups.

    Parameters
    ----------
    users : ndarray, shape (n,)
        Whose value each of the n is; ids of any kind.
    n_resamples, seed : int

    Examples
    --------
    >>> errors = np.array([1.0, -1.0, 1.0, 3.0])
    >>> resamples = UserResamples(np.array(["a", "a", "b", "b"]))
    >>> interval_of(np.sqrt(2.0), resamples.root_mean(errors**2)).low
    1.0
    """

    def __init__(self, users: np.ndarray, n_resamples: int = 1_000, seed: int = 0) -> None:
        group, names = pd.factorize(users)
        self.n_resamples, self._seed = n_resamples, seed
        rng = np.random.default_rng(seed)
        if len(names) > _MOST_GROUPS:
            group = rng.integers(_MOST_GROUPS, size=len(names))[group]
        self._group = group
        self._size = int(group.max()) + 1

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of the values of each draw, (n_resamples,)."""
        sums = np.bincount(self._group, values, minlength=self._size)
        counts = np.bincount(self._group, minlength=self._size)
        return np.concatenate([(weights @ sums) / np.maximum(weights @ counts, 1) for weights in self._weights()])

    def root_mean(self, squares: np.ndarray) -> np.ndarray:
        """Return the root of the mean of squares of each draw, (n_resamples,)."""
        return np.sqrt(self.mean(squares))

    def of(self, measure: Callable[[np.ndarray], float]) -> np.ndarray:
        """Return a measure that takes weights of the n values, of each draw, (n_resamples,)."""
        return np.array([measure(row[self._group]) for weights in self._weights() for row in weights])

    def _weights(self) -> Iterator[Any]:
        """Yield how often each group was drawn, a block of draws at a time."""
        rng = np.random.default_rng(self._seed)
        shares = np.full(self._size, 1 / self._size)
        for start in range(0, self.n_resamples, _BLOCK):
            yield rng.multinomial(self._size, shares, size=min(_BLOCK, self.n_resamples - start))


def interval_of(value: float, draws: np.ndarray) -> Interval:
    """Return a value with the 0.025 and 0.975 quantiles of what was drawn.

    Examples
    --------
    >>> interval_of(20.0, np.arange(41.0))
    Interval(value=20.0, low=1.0, high=39.0)
    """
    low, high = np.nanquantile(draws, (0.025, 0.975))
    return Interval(float(value), float(low), float(high))
