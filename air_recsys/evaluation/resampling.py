"""Intervals and tests of measures over users, whose ratings are not independent: bootstrap, paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

_MOST_GROUPS = 5_000
_BLOCK = 100
_RESAMPLES = 1000
_LEVELS = (2.5, 97.5)  # per cent
_HELD = 4_000_000  # weights held at a time


class Interval(NamedTuple):
    """A value, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


class UserResamples:
    """The same random draws of users, with replacement, for every measure: so differences are paired.

    More than 5,000 users are drawn in that many random groups.
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
        """The mean of the values of each draw, (n_resamples,)."""
        sums = np.bincount(self._group, values, minlength=self._size)
        counts = np.bincount(self._group, minlength=self._size)
        return np.concatenate([(weights @ sums) / np.maximum(weights @ counts, 1) for weights in self._weights()])

    def root_mean(self, squares: np.ndarray) -> np.ndarray:
        """The root of the mean of squares of each draw, (n_resamples,)."""
        return np.sqrt(self.mean(squares))

    def of(self, measure: Callable[[np.ndarray], float]) -> np.ndarray:
        """A measure that takes weights of the n values, of each draw, (n_resamples,)."""
        return np.array([measure(row[self._group]) for weights in self._weights() for row in weights])

    def _weights(self) -> Iterator[Any]:
        """Yield how often each group was drawn, a block of draws at a time."""
        rng = np.random.default_rng(self._seed)
        shares = np.full(self._size, 1 / self._size)
        for start in range(0, self.n_resamples, _BLOCK):
            yield rng.multinomial(self._size, shares, size=min(_BLOCK, self.n_resamples - start))


def interval_of(value: float, draws: np.ndarray) -> Interval:
    """A value with the 0.025 and 0.975 quantiles of what was drawn."""
    low, high = np.nanquantile(draws, (0.025, 0.975))
    return Interval(float(value), float(low), float(high))


class Advantage(NamedTuple):
    """How much better a model is than the best of its baselines, in the measure that counts."""

    baseline: str
    gain: Interval  # above 0 where the model is better


def with_interval(measures: Mapping[str, float], draws: np.ndarray) -> dict[str, float]:
    """Measures, the first of them with the ends of its interval.

    Examples
    --------
    >>> with_interval({"rmse": 20.0, "mae": 2.0}, np.arange(41.0))
    {'rmse': 20.0, 'rmse low': 1.0, 'rmse high': 39.0, 'mae': 2.0}
    """
    name, *others = measures
    value, low, high = interval_of(measures[name], draws)
    return {name: value, f"{name} low": low, f"{name} high": high} | {other: measures[other] for other in others}


def advantage_of(
    rows: list[dict[str, Any]], draws: Mapping[str, np.ndarray], higher_is_better: bool
) -> Advantage | None:
    """The advantage of the first row over the best of the others; None without others.

    A row is "model", then its measures, the one that counts first; `draws` are that measure in the same resamples.

    Examples
    --------
    >>> rows = [{"model": "AIR", "rmse": 1.0}, {"model": "mean", "rmse": 3.0}, {"model": "biases", "rmse": 2.0}]
    >>> advantage_of(rows, {"AIR": np.ones(9), "biases": np.full(9, 2.0)}, higher_is_better=False)
    Advantage(baseline='biases', gain=Interval(value=1.0, low=1.0, high=1.0))
    """
    own, *others = rows
    if not others:
        return None
    measure, sign = list(own)[1], 1 if higher_is_better else -1
    best = max(others, key=lambda row: sign * row[measure])
    gains = sign * (draws[own["model"]] - draws[best["model"]])
    return Advantage(best["model"], interval_of(sign * (own[measure] - best[measure]), gains))


@dataclass(frozen=True)
class ByUsers:
    """Sums of a measure over what was tested of each user, on each fold.

    Its value is the mean over the folds of sums / counts over all users, with a root for an RMSE.
    """

    sums: np.ndarray  # (n_folds, n_users), of a user who was not tested on a fold both are 0
    counts: np.ndarray
    root: bool = False  # whether the value is the root of the mean: the sums are those of squared errors

    def of(self, mask: np.ndarray) -> ByUsers | None:
        """The measure of some users, (n_users,), on the folds that test any of them; None without any."""
        tested = self.counts[:, mask].any(axis=1)
        some = np.ix_(tested, mask)
        return ByUsers(self.sums[some], self.counts[some], self.root) if tested.any() else None

    @property
    def n_tested(self) -> int:
        """The number of users who were tested on any fold."""
        return int(self.counts.any(axis=0).sum())

    def value(self) -> float:
        """The measure."""
        return float(self._values(np.ones((1, self.sums.shape[1])))[0])

    def interval(self, seed: int) -> tuple[float, float]:
        """The 95 % interval of the value, by the percentiles of 1,000 resamples of the users."""
        return _interval([self._values(weights) for weights in self._resamples(seed)])

    def difference(self, first: ByUsers, seed: int) -> tuple[float, float]:
        """The 95 % interval of the value minus that of the first system, on the same resamples."""
        resamples = self._resamples(seed)
        return _interval([self._values(weights) - first._values(weights) for weights in resamples])

    def p_value(self, first: ByUsers) -> float:
        """The p-value of a paired t-test over the users against the first system; NaN for equal measures.

        Tested are the sums of each user, every fold divided by what was tested on it, so that users with much to
        test count for more, as they do in the value.
        """
        from scipy.stats import ttest_1samp

        shares = (self.sums - first.sums) / self.counts.sum(axis=1, keepdims=True)
        differences = shares.sum(axis=0)[self.counts.any(axis=0)]
        if differences.size < 2 or np.ptp(differences) <= 1e-9 * np.abs(differences).max():
            return np.nan
        tested: Any = ttest_1samp(differences, 0)
        return float(tested.pvalue)

    def _resamples(self, seed: int) -> Iterator[np.ndarray]:
        """Yield how often each user is drawn, shape (some, n_users), of those who were tested; 1,000 times in all."""
        tested = np.flatnonzero(self.counts.any(axis=0))
        shares = np.full(tested.size, 1 / tested.size)
        rng = np.random.default_rng(seed)
        step = max(1, _HELD // self.counts.shape[1])
        for start in range(0, _RESAMPLES, step):
            weights = np.zeros((min(step, _RESAMPLES - start), self.counts.shape[1]))
            weights[:, tested] = rng.multinomial(tested.size, shares, size=len(weights))
            yield weights

    def _values(self, weights: np.ndarray) -> np.ndarray:
        """The value for each row of weights of the users; NaN where none of a fold was drawn."""
        sums, counts = weights @ self.sums.T, weights @ self.counts.T  # (n_resamples, n_folds)
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        return (np.sqrt(means) if self.root else means).mean(axis=1)


def _interval(values: list[np.ndarray]) -> tuple[float, float]:
    low, high = np.nanpercentile(np.concatenate(values), _LEVELS)
    return float(low), float(high)
