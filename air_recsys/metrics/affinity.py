"""Measures of predicted affinities, as papers on drug-target binding print them."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import check_pairs


def mse(y_true: Any, y_pred: Any) -> float:
    r"""Return the mean squared error, in the squared unit of the values; 0 is perfect.

    Parameters and errors are those of `air_recsys.metrics.rmse`.

    Examples
    --------
    >>> mse([5.0, 7.0], [5.0, 6.0])
    0.5
    """
    truth, prediction = check_pairs(y_true, y_pred)
    return float(np.square(truth - prediction).mean())


def concordance_index(y_true: Any, y_pred: Any) -> float:
    r"""Return the share of pairs of different true values that predictions put in the same order.

    .. math:: \mathrm{CI} = \frac{1}{Z} \sum_{y_s > y_t} h(\hat y_s - \hat y_t),\qquad h(x) = 1, \tfrac12, 0
        \text{ for } x > 0,\; x = 0,\; x < 0

    with Z the number of such pairs; 1/2 is chance, 1 perfect.

    Raises
    ------
    DataError
        For different lengths, no values, NaN and infinite ones, and true values that are all equal.

    Examples
    --------
    >>> round(concordance_index([5.0, 6.0, 7.0], [5.5, 5.5, 8.0]), 4)
    0.8333

    References
    ----------
    Gönen, Heller, Concordance probability and discriminatory power in proportional hazards regression, Biometrika 92,
    2005; Pahikkala et al., Toward more realistic drug-target interaction predictions, 2015.
    """
    from scipy.stats import kendalltau

    truth, prediction = check_pairs(y_true, y_pred)
    pairs, tied, alike = (_pairs(counts) for counts in ([truth.size], _counts(truth), _counts(prediction)))
    if tied == pairs:
        raise DataError("expected true values that differ, found one value")
    if alike == pairs:
        return 0.5
    found: Any = kendalltau(truth, prediction)  # tau-b: concordant less discordant pairs over this root
    tau = float(found.statistic)
    excess = tau * np.sqrt((pairs - tied) * (pairs - alike))
    return float(0.5 + excess / (2 * (pairs - tied)))


def modified_r_squared(y_true: Any, y_pred: Any) -> float:
    r"""Return :math:`r_m^2 = r^2 (1 - \sqrt{|r^4 - r_0^4|})`, as the evaluation of DeepDTA computes it.

    r is the correlation, and :math:`r_0^2` the coefficient of determination of the best line through the origin; above
    0.5 a model counts as acceptable.

    Raises
    ------
    DataError
        As `concordance_index`, and for predictions that are all equal.

    Examples
    --------
    >>> modified_r_squared([5.0, 6.0, 7.0], [5.0, 6.0, 7.0])
    1.0

    References
    ----------
    Roy et al., Some case studies on application of r_m^2 metrics, J. Computational Chemistry 34, 2013; Öztürk, Özgür,
    Ozkirimli, DeepDTA, Bioinformatics 34(17), 2018.
    """
    truth, prediction = check_pairs(y_true, y_pred)
    if np.ptp(truth) == 0 or np.ptp(prediction) == 0:
        raise DataError("expected true values, and predictions, that differ, found one value")
    squared = float(np.corrcoef(truth, prediction)[0, 1] ** 2)
    slope = truth @ prediction / (prediction @ prediction)
    of_line = 1 - np.square(truth - slope * prediction).sum() / np.square(truth - truth.mean()).sum()
    return float(squared * (1 - np.sqrt(abs(squared**2 - of_line**2))))


def _counts(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_counts=True)[1]


def _pairs(counts: Any) -> float:
    numbers = np.asarray(counts, dtype=np.float64)
    return float((numbers * (numbers - 1) / 2).sum())
