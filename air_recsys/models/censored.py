"""Ratings of which a limit is known, in the state of a trained model: what they are expected to be."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import log_ndtr

_LOG_ROOT = math.log(2 * math.pi) / 2


def _slope(inside: np.ndarray) -> np.ndarray:
    """The derivative of the logarithm of the normal distribution function."""
    return np.exp(-np.square(inside) / 2 - _LOG_ROOT - log_ndtr(inside))


def expected(scores: np.ndarray, deviations: np.ndarray, limits: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The means of normal numbers that are known to lie above a limit (sign 1) or below it (-1).

    Examples
    --------
    >>> expected(np.zeros(2), np.ones(2), np.array([0.0, -9.0]), np.array([-1, 1])).round(4).tolist()
    [-0.7979, 0.0]
    """
    return scores + signs * deviations * _slope(signs * (scores - limits) / deviations)


def as_measured(
    scores: np.ndarray, deviations: np.ndarray, limits: np.ndarray, signs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and shares of weight (0 to 1) of measurements that say what limits say near the scores (Newton's step).

    Examples
    --------
    >>> values, shares = as_measured(np.array([5.0, 9.0]), np.ones(2), np.full(2, 5.0), np.array([1, 1]))
    >>> values.round(2).tolist(), shares.round(2).tolist()
    ([6.25, 9.25], [0.64, 0.0])
    """
    inside = signs * (scores - limits) / deviations
    slope = _slope(inside)
    bend = np.maximum(slope + inside, np.finfo(float).tiny)
    return scores + signs * deviations / bend, (slope * bend).clip(0, 1)
