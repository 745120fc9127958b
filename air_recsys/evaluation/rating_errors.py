"""Errors of predicted ratings as comparisons tell them: of clipped predictions, and how well intervals hold."""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Interactions

_HALF_WIDTH = 1.6448536269514722  # of the central 90 % of a normal distribution, in standard deviations


def clipped(predicted: np.ndarray, train: Interactions) -> np.ndarray:
    """Return predictions within the range of the training ratings.

    Examples
    --------
    >>> clipped(np.array([0.5, 3.0]), Interactions.from_dense([[1, 5]])).tolist()
    [1.0, 3.0]
    """
    return np.clip(predicted, train.ratings.min(), train.ratings.max())


def interval_figures(truth: np.ndarray, predicted: np.ndarray, deviation: np.ndarray) -> dict[str, float]:
    """Return the share of true ratings inside of central 90 % intervals, and their mean width.

    Examples
    --------
    >>> interval_figures(np.array([1.0, 5.0]), np.array([1.5, 3.0]), np.array([1.0, 1.0]))
    {'inside 90 %': 0.5, 'width': 3.28...}
    """
    inside = np.abs(truth - predicted) <= _HALF_WIDTH * deviation
    return {"inside 90 %": float(inside.mean()), "width": float(2 * _HALF_WIDTH * deviation.mean())}
