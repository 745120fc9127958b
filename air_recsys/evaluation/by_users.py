"""A measure by users: its value, its interval by bootstrap over the users, and paired tests between two systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_RESAMPLES = 1000
_LEVELS = (2.5, 97.5)  # per cent
_HELD = 4_000_000  # weights held at a time


@dataclass(frozen=True)
class ByUsers:
    """Sums of a measure over what was tested of each user, on each fold.

    Its value is the mean over the folds of sums / counts over all users, with a root for an RMSE.

    Parameters
    ----------
    sums, counts : ndarray, shape (n_folds, n_users)
        Of a user who was not tested on a fold both are 0.
    root : bool
        Whether the value is the root of the mean: the sums are those of squared errors.

    Examples
    --------
    >>> squared = ByUsers(np.array([[8.0, 0.0, 2.0]]), np.array([[2, 1, 2]]), root=True)
    >>> round(squared.value(), 3)
    1.414
    >>> low, high = squared.interval(seed=0)
    >>> low < squared.value() < high
    True
    """

    sums: np.ndarray
    counts: np.ndarray
    root: bool = False

    def value(self) -> float:
        """Return the measure."""
        return float(self._values(np.ones((1, self.sums.shape[1])))[0])

    def interval(self, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the value, by the percentiles of 1,000 resamples of the users."""
        return _interval([self._values(weights) for weights in self._resamples(seed)])

    def difference(self, first: ByUsers, seed: int) -> tuple[float, float]:
        """Return the 95 % interval of the value minus that of the first system, on the same resamples."""
        resamples = self._resamples(seed)
        return _interval([self._values(weights) - first._values(weights) for weights in resamples])

    def p_value(self, first: ByUsers) -> float:
        """Return the p-value of a paired t-test over the users against the first system; NaN for equal measures.

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
        """Return the value for each row of weights of the users; NaN where none of a fold was drawn."""
        sums, counts = weights @ self.sums.T, weights @ self.counts.T  # (n_resamples, n_folds)
        means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        return (np.sqrt(means) if self.root else means).mean(axis=1)


def _interval(values: list[np.ndarray]) -> tuple[float, float]:
    low, high = np.nanpercentile(np.concatenate(values), _LEVELS)
    return float(low), float(high)
