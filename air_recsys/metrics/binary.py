"""Measures of how well scores separate the pairs that interact from the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import check_pairs
from air_recsys.storage.validation import check_integer, check_real


def auroc(y_true: Any, y_score: Any) -> float:
    """Return the area under the receiver operating characteristic curve.

    It is the probability that a random positive is scored above a random negative, ties counting one half.

    Parameters
    ----------
    y_true : array_like of {0, 1}, shape (n,)
        Whether the pair interacts; both values must occur.
    y_score : array_like of float, shape (n,)
        Larger for pairs that are thought to interact.

    Returns
    -------
    float
        In [0, 1]; a constant or random score has 0.5.

    Raises
    ------
    DataError
        For different lengths, no values, NaN and infinite ones, labels other than 0 and 1, or only one of them.

    Examples
    --------
    >>> auroc([1, 0, 1, 0], [0.9, 0.5, 0.4, 0.1])
    0.75
    """
    truth, score = _check_labels(y_true, y_score)
    if truth.all():
        raise DataError(f"expected labels 0 and 1 in y_true, found only 1 in {truth.size} values")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, score))


def average_precision(y_true: Any, y_score: Any) -> float:
    r"""Return the average precision: the precision at each threshold, weighted by the recall gained there.

    .. math:: \mathrm{AP} = \sum_t (R_t - R_{t-1}) P_t

    Parameters and errors are those of `auroc`, but `y_true` may hold only 1. The value is in [0, 1]; a constant score
    has the share of positives.

    Examples
    --------
    >>> average_precision([1, 0, 0, 0], [1, 1, 1, 1])
    0.25
    """
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(*_check_labels(y_true, y_score)))


def weighted_precision(truth: np.ndarray, score: np.ndarray, weights: np.ndarray) -> float:
    """Return the average precision of pairs that count as often as their weights say, NaN without a positive one.

    Examples
    --------
    >>> weighted_precision(np.array([1, 0, 0]), np.array([2.0, 3.0, 1.0]), np.array([1, 3, 1]))
    0.25
    """
    from sklearn.metrics import average_precision_score

    if not weights[truth == 1].any():
        return np.nan
    return float(average_precision_score(truth, score, sample_weight=weights))


def aupr(y_true: Any, y_score: Any) -> float:
    """Return the area under the precision-recall curve by the trapezoid rule.

    Parameters and errors are those of `average_precision`. The value is in [0, 1]; see the warning.

    Warnings
    --------
    The curve starts at recall 0 with precision 1, and the trapezoid joins that point to the next with a straight
    line. Scores with many ties have few points, so the line has a large effect: a *constant* score, which holds no
    information, gets (1 + share of positives) / 2, more than 0.5. This happens in practice where whole users or
    items are hidden. Report `average_precision`, which has no such line, beside it.

    Examples
    --------
    >>> aupr([1, 0, 1, 0], [0.9, 0.5, 0.4, 0.1])
    0.7916666666666666
    >>> aupr([1, 0, 0, 0], [1, 1, 1, 1]), average_precision([1, 0, 0, 0], [1, 1, 1, 1])
    (0.625, 0.25)

    Notes
    -----
    This is the AUPR that the drug-target interaction literature reports.
    """
    from sklearn.metrics import auc, precision_recall_curve

    precision, recall, _ = precision_recall_curve(*_check_labels(y_true, y_score))
    return float(auc(recall, precision))


def bedroc(y_true: Any, y_score: Any, alpha: float = 20.0) -> float:
    r"""Return the Boltzmann-enhanced discrimination of the ROC curve: how early positives come in the list.

    A positive at rank r of N counts :math:`e^{-\alpha r / N}`; the sum is scaled to [0, 1], from positives that come
    last to those that come first. With 20 the first 8 % of the list make 80 % of it.

    Parameters
    ----------
    y_true, y_score : array_like, shape (n,)
        As in `auroc`. Equal scores share the mean of what their ranks count.
    alpha : float
        Above 0; larger for shorter tops.

    Notes
    -----
    Truchon, Bayly, Evaluating Virtual Screening Methods: Good and Bad Metrics for the "Early Recognition" Problem,
    J. Chemical Information and Modeling 47, 2007.

    Examples
    --------
    >>> labels = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    >>> round(bedroc(labels, range(10, 0, -1)), 3), round(bedroc(labels, range(10)), 3)
    (1.0, 0.0)
    """
    truth, score = _check_labels(y_true, y_score)
    check_real("alpha", alpha, strict=True)
    if truth.all():
        raise DataError(f"expected labels 0 and 1 in y_true, found only 1 in {truth.size} values")
    levels, size = np.unique(-score, return_inverse=True)[1], truth.size
    counts = np.exp(-alpha * np.arange(1, size + 1) / size)  # by rank
    of_level = np.bincount(np.sort(levels), counts) / np.bincount(levels)
    found, number = of_level[levels][truth == 1].sum(), int(truth.sum())
    least, most = counts[size - number :].sum(), counts[:number].sum()
    return float((found - least) / (most - least))


def calibration_error(y_true: Any, y_probability: Any, n_bins: int = 10) -> float:
    r"""Return the expected calibration error: how far shares of positives are from the probabilities.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \bar y_b - \bar p_b \right|

    over bins of equal width of the probability.

    Parameters
    ----------
    y_true : array_like of {0, 1}, shape (n,)
    y_probability : array_like of float, shape (n,)
        In [0, 1].
    n_bins : int

    Raises
    ------
    DataError
        As for `auroc`, but `y_true` may hold one value only; and for probabilities outside of [0, 1].
    ParameterError

    Notes
    -----
    Naeini, Cooper, Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning, AAAI 2015.

    Examples
    --------
    >>> calibration_error([1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]), calibration_error([1, 1], [0.5, 0.9])
    (0.0, 0.3)
    """
    truth, probability = check_pairs(y_true, y_probability, "y_probability")
    check_integer("n_bins", n_bins, minimum=1)
    if not np.isin(truth, (0, 1)).all():
        raise DataError(f"expected labels 0 and 1 in y_true, found {truth[~np.isin(truth, (0, 1))][0]:g}")
    outside = probability[(probability < 0) | (probability > 1)]
    if outside.size:
        raise DataError(f"expected probabilities in [0, 1], found {outside[0]:g}")
    place = np.minimum((probability * n_bins).astype(np.int64), n_bins - 1)
    sums = np.bincount(place, truth - probability, minlength=n_bins)
    return float(np.abs(sums).sum() / truth.size)


def _check_labels(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    truth, score = check_pairs(y_true, y_score, "y_score")
    others = truth[(truth != 0) & (truth != 1)]
    if others.size:
        raise DataError(f"expected labels 0 and 1 in y_true, found {others[0]:g}")
    if not truth.any():
        raise DataError(f"expected at least one label 1 in y_true, found only 0 in {truth.size} values")
    return truth, score
