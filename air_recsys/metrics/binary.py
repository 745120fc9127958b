"""Measures of how well scores separate the pairs that interact from the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import check_pairs


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


def _check_labels(y_true: Any, y_score: Any) -> tuple[np.ndarray, np.ndarray]:
    truth, score = check_pairs(y_true, y_score, "y_score")
    others = truth[(truth != 0) & (truth != 1)]
    if others.size:
        raise DataError(f"expected labels 0 and 1 in y_true, found {others[0]:g}")
    if not truth.any():
        raise DataError(f"expected at least one label 1 in y_true, found only 0 in {truth.size} values")
    return truth, score
