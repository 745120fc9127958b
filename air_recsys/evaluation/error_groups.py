"""Where a model errs: its errors by what is known of users and items, and by the rating itself."""

from __future__ import annotations

import numpy as np
import pandas as pd

from air_recsys.evaluation.resampling import UserResamples, interval_of

_GROUPS = 5
_FEW = 12  # distinct ratings that get a group each


def errors_by(values: np.ndarray, errors: np.ndarray, users: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Return the errors of pairs in groups of like values.

    Parameters
    ----------
    values : ndarray, shape (n,)
        What the pairs are grouped by: at most 12 distinct values make a group each, others make up to five groups of
        about as many pairs each.
    errors : ndarray, shape (n,)
        Predictions less ratings.
    users : ndarray, shape (n,)
    seed : int
        Of the bootstrap over users.

    Returns
    -------
    DataFrame
        Columns lowest and highest (of the values), pairs, rmse, low and high (its 95 % interval), and bias (the mean
        error: above 0 where predictions are too high).

    Examples
    --------
    >>> table = errors_by(np.array([1, 1, 9]), np.array([0.5, -0.5, 2.0]), np.arange(3))
    >>> table[["lowest", "pairs", "rmse", "bias"]]
       lowest  pairs  rmse  bias
    0       1      2   0.5   0.0
    1       9      1   2.0   2.0
    """
    group = _groups(values)
    rows = []
    for number in range(int(group.max()) + 1):
        chosen = group == number
        squares = errors[chosen] ** 2
        rmse = interval_of(np.sqrt(squares.mean()), UserResamples(users[chosen], seed=seed).root_mean(squares))
        inside = values[chosen]
        rows.append((inside.min(), inside.max(), squares.size, *rmse, errors[chosen].mean()))
    return pd.DataFrame(rows, columns=["lowest", "highest", "pairs", "rmse", "low", "high", "bias"])


def _groups(values: np.ndarray) -> np.ndarray:
    distinct, number = np.unique(values, return_inverse=True)
    if distinct.size <= _FEW:
        return number
    ends = np.unique(np.quantile(values, np.arange(1, _GROUPS) / _GROUPS))
    return np.unique(np.searchsorted(ends, values, side="left"), return_inverse=True)[1]
