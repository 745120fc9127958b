"""Errors of predicted ratings, over the pairs given (not averaged user by user)."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import check_pairs
from air_recsys.storage.validation import check_real


def rmse(y_true: Any, y_pred: Any) -> float:
    r"""Return the root mean squared error.

    .. math:: \mathrm{RMSE} = \sqrt{\tfrac1n \sum_t (y_t - \hat y_t)^2}

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
        True and predicted ratings.

    Returns
    -------
    float
        In the unit of the ratings; 0 is perfect.

    Raises
    ------
    DataError
        For different lengths, no values, or NaN and infinite ones.

    Examples
    --------
    >>> rmse([3, 5], [3, 3])
    1.4142135623730951
    """
    from sklearn.metrics import root_mean_squared_error

    return float(root_mean_squared_error(*check_pairs(y_true, y_pred)))


def mae(y_true: Any, y_pred: Any) -> float:
    r"""Return the mean absolute error.

    .. math:: \mathrm{MAE} = \tfrac1n \sum_t |y_t - \hat y_t|

    Parameters, unit and errors are those of `rmse`.

    Examples
    --------
    >>> mae([3, 5], [3, 3])
    1.0
    """
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(*check_pairs(y_true, y_pred)))


def nmae(y_true: Any, y_pred: Any, value_range: float | None = None) -> float:
    r"""Return the normalised mean absolute error: the mean absolute error divided by the range of the truth.

    .. math:: \mathrm{NMAE} = \frac{1}{n\,(y_{\max} - y_{\min})} \sum_t |y_t - \hat y_t|

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
        True and predicted values, in matrix completion those of the unobserved entries.
    value_range : float, optional
        :math:`y_{\max} - y_{\min}`, larger than 0. By default that of `y_true`. To compare with published tables
        give the range of the whole true matrix, the observed entries included.

    Returns
    -------
    float
        A share of the range; 0 is perfect.

    Raises
    ------
    DataError
        For different lengths, no values, NaN and infinite ones, or a constant truth without `value_range`.
    ParameterError
        For a `value_range` that is not a number > 0.

    Examples
    --------
    >>> nmae([1, 5, 3], [1, 3, 3])
    0.16666666666666666
    >>> nmae([3, 3], [3, 4], value_range=4)
    0.125

    Notes
    -----
    Li, Sun, Wang, Wang (SIAM J. Imaging Sciences 15(4), 2022) define NMAE by a squared norm. Their published numbers
    are the mean *absolute* error over the unobserved entries, divided by the range of the whole true matrix, as here.
    """
    truth, prediction = check_pairs(y_true, y_pred)
    width = float(np.ptp(truth)) if value_range is None else check_real("value_range", value_range, strict=True)
    if width == 0:
        raise DataError(
            f"expected y_true with at least two different values, found only {truth[0]:g}; pass value_range"
        )
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(truth, prediction)) / width
