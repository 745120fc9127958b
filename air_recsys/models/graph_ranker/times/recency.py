"""What a `GraphRanker` makes of times: later items of a user count more, and so do items that gain interactions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.smoothings import RankerSettings

_LATEST = 0.1  # share of the interactions that a trend is read from
_PRIOR = 2.0  # interactions at the mean rate, added to those of each item


def interaction_times(data: Interactions) -> Csr | None:
    """Return the time of every pair, in the order of `interaction_pattern`; None where there are none that differ.

    Examples
    --------
    >>> data = Interactions([0, 0], [1, 0], [1, 1], ["ann"], ["x", "y"], timestamps=[30, 10])
    >>> interaction_times(data).toarray()
    array([[10, 30]])
    """
    times = data.timestamps
    if times is None or not np.ptp(times):
        return None
    return sp.csr_array((times, (data.user_index, data.item_index)), shape=(data.n_users, data.n_items))


def own_items(pattern: Csr, data: Interactions, settings: RankerSettings) -> Csr:
    """Return how much each item of a user counts in its scores, (n_users, n_items), by the pattern of `data`."""
    times = interaction_times(data) if settings.user_half_life else None
    return of_later_items(pattern, times, settings.user_half_life)


def item_gains(data: Interactions, settings: RankerSettings) -> np.ndarray:
    """Return the logs of what the scores of the items are multiplied by, (n_items,); 0 without a trend or times."""
    times = interaction_times(data) if settings.item_trend else None
    return np.zeros(data.n_items) if times is None else settings.item_trend * log_trend(times)


def of_later_items(pattern: Csr, times: Csr | None, half_life: float) -> Csr:
    """Return a pattern where an entry counts h / (h + k), with h the half-life and k later entries of its row.

    Entries of the same time count the same. A half-life of 0, or no times: all count alike.

    Examples
    --------
    >>> times = sp.csr_array(np.array([[10, 30, 20, 20]]))
    >>> of_later_items(sp.csr_array(np.ones((1, 4), dtype=np.float32)), times, 1.0).toarray()
    array([[0.25, 1.  , 0.5 , 0.5 ]], dtype=float32)
    """
    if not half_life or times is None:
        return pattern
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    order = np.lexsort((times.data, rows))
    ordered, moments = rows[order], times.data[order]
    begins = np.flatnonzero(np.r_[True, (np.diff(ordered) > 0) | (moments[1:] != moments[:-1])][: ordered.size])
    ends = np.repeat(np.r_[begins[1:], ordered.size], np.diff(np.r_[begins, ordered.size]))
    later = np.empty(rows.size)
    later[order] = pattern.indptr[ordered + 1] - ends
    weights = pattern.data * (half_life / (half_life + later)).astype(pattern.dtype)
    return sp.csr_array((weights, pattern.indices, pattern.indptr), shape=pattern.shape)


def log_trend(times: Csr) -> np.ndarray:
    r"""Return the log of how much more of the latest tenth each item has than of all interactions, (n_items,).

    .. math:: t_j = \log \frac{n_j^{latest} + 2}{x n_j + 2}

    with x the share that is latest, a tenth or a little more where many have the same time.

    Examples
    --------
    >>> times = sp.csr_array(np.repeat([[1, 2], [1, 3], [1, 3]], 10, axis=0))
    >>> np.exp(log_trend(times)).round(2)
    array([0.17, 1.83])
    """
    first = np.sort(times.data)[int((1 - _LATEST) * times.nnz)]
    latest = times.data >= first
    share, counts = latest.mean(), np.bincount(times.indices, minlength=times.shape[1])
    gained = np.bincount(times.indices[latest], minlength=times.shape[1])
    return np.log((gained + _PRIOR) / (share * counts + _PRIOR))
