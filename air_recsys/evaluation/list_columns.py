"""What tables of lists tell beside means: intervals over the users, paired tests, and effects on the catalogue."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from air_recsys.interactions import Interactions
from air_recsys.metrics import coverage, gini, miscalibration, novelty, popularity_lift
from air_recsys.metrics.checks import Csr

_RESAMPLES = 1000


class Spread(NamedTuple):
    """The 95 % interval of a mean over users, and the p-value of a paired t-test against another system, or NaN."""

    low: float
    high: float
    p: float


def spread(values: np.ndarray, first: np.ndarray, seed: int) -> Spread:
    """Return the interval of the mean over the users, and the p-value of its difference from the first system's.

    Parameters
    ----------
    values, first : ndarray, shape (n_users,)
        A measure of each user by a system, and by the first system; p is NaN where they are equal.
    seed : int
        Of the percentile bootstrap over the users.

    Examples
    --------
    >>> found = spread(np.array([0.0, 0.5, 1.0]), np.array([0.0, 0.5, 1.0]), seed=0)
    >>> found.low <= 0.5 <= found.high, found.p
    (True, nan)
    """
    from scipy.stats import bootstrap, ttest_rel

    low = high = values.mean()
    if values.size > 1 and np.ptp(values) > 0:
        rng = np.random.default_rng(seed)
        found = bootstrap((values,), np.mean, n_resamples=_RESAMPLES, batch=100, method="percentile", rng=rng)
        low, high = found.confidence_interval.low, found.confidence_interval.high
    differ = values.size > 1 and (values != first).any()
    tested: Any = ttest_rel(values, first) if differ else None
    return Spread(float(low), float(high), float(tested.pvalue) if differ else np.nan)


def catalogue_columns(lists: np.ndarray, train: Interactions, seen: Csr) -> dict[str, float]:
    """Return the effects of lists on the catalogue, by the names of their columns.

    Parameters
    ----------
    lists : ndarray of int, shape (n_users, k)
        Positions of items; -1 for a place that could not be filled.
    train : Interactions
        Of all users: what is popular.
    seen : csr_array, shape (n_users, n_items)
        The training items of the users who have the lists; `popularity_lift` and `miscalibration` compare with them.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, np.nan, 1]])
    >>> catalogue_columns(np.array([[2], [1]]), data, data.to_csr())["coverage"]
    0.666...
    """
    counts = np.bincount(train.item_index, minlength=train.n_items)
    return {
        "coverage": coverage(lists, train.n_items),
        "gini": gini(lists, train.n_items),
        "novelty": novelty(lists, train.to_csr()),
        "popularity lift": popularity_lift(lists, seen),
        "miscalibration": miscalibration(lists, seen, popularity_groups(counts)),
    }


def popularity_groups(counts: np.ndarray) -> np.ndarray:
    """Return 1 for the group of each item, (n_items, 3): head, middle and tail have a third of all interactions each.

    Examples
    --------
    >>> popularity_groups(np.array([1, 4, 3, 4])).argmax(axis=1).tolist()
    [2, 0, 2, 1]
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    group = np.empty(counts.size, dtype=np.int64)
    group[order] = np.minimum(3 * before // max(counts.sum(), 1), 2)
    return np.eye(3)[group]
