"""Errors of predicted ratings: how large they are, where a model errs, and whether its intervals hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtri

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.resampling import UserResamples, interval_of

_HALF_WIDTH = 1.6448536269514722  # of the central 90 % of a normal distribution, in standard deviations
_GROUPS = 5
_FEW = 12  # distinct ratings that get a group each
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_MOST_BINS = 10


def clipped(predicted: np.ndarray, train: Interactions) -> np.ndarray:
    """Predictions within the range of the training ratings.

    Examples
    --------
    >>> clipped(np.array([0.5, 3.0]), Interactions.from_dense([[1, 5]])).tolist()
    [1.0, 3.0]
    """
    return np.clip(predicted, train.ratings.min(), train.ratings.max())


def interval_figures(truth: np.ndarray, predicted: np.ndarray, deviation: np.ndarray) -> dict[str, float]:
    """The share of true ratings inside of central 90 % intervals, and their mean width.

    Examples
    --------
    >>> interval_figures(np.array([1.0, 5.0]), np.array([1.5, 3.0]), np.array([1.0, 1.0]))
    {'inside 90 %': 0.5, 'width': 3.28...}
    """
    inside = np.abs(truth - predicted) <= _HALF_WIDTH * deviation
    return {"inside 90 %": float(inside.mean()), "width": float(2 * _HALF_WIDTH * deviation.mean())}


def errors_by(values: np.ndarray, errors: np.ndarray, users: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """The errors of pairs in groups of like values.

    At most 12 distinct values make a group each, others make up to five groups of about as many pairs each. Errors are
    predictions less ratings; the seed is that of the bootstrap over users. Columns are lowest and highest (of the
    values), pairs, rmse, low and high (its 95 % interval), and bias (the mean error: above 0 where predictions are too
    high).
    """
    group = groups_of_values(values)
    rows = []
    for number in range(int(group.max()) + 1):
        chosen = group == number
        squares = errors[chosen] ** 2
        rmse = interval_of(np.sqrt(squares.mean()), UserResamples(users[chosen], seed=seed).root_mean(squares))
        inside = values[chosen]
        rows.append((inside.min(), inside.max(), squares.size, *rmse, errors[chosen].mean()))
    return pd.DataFrame(rows, columns=["lowest", "highest", "pairs", "rmse", "low", "high", "bias"])


def groups_of_values(values: np.ndarray) -> np.ndarray:
    """The group of each value: at most 12 distinct ones make a group each, others up to five of about equal size."""
    distinct, number = np.unique(values, return_inverse=True)
    if distinct.size <= _FEW:
        return number
    ends = np.unique(np.quantile(values, np.arange(1, _GROUPS) / _GROUPS))
    return np.unique(np.searchsorted(ends, values, side="left"), return_inverse=True)[1]


def interval_reliability(
    truth: np.ndarray, predicted: np.ndarray, deviations: np.ndarray, users: np.ndarray, seed: int = 0
) -> pd.DataFrame:
    """How many ratings lie within intervals of a normal distribution around their predictions.

    Columns are meant (of the ratings, by the model), held (of them, in truth), low and high (a 95 % interval of held),
    and width (the mean, in the unit of the ratings).
    """
    distance = np.abs(truth - predicted)
    resamples = UserResamples(users, seed=seed)
    rows = []
    for level in LEVELS:
        half = float(ndtri(0.5 + level / 2)) * deviations
        inside = (distance <= half).astype(np.float64)
        held = interval_of(inside.mean(), resamples.mean(inside))
        rows.append((level, *held, 2 * half.mean()))
    return pd.DataFrame(rows, columns=["meant", "held", "low", "high", "width"])


def probability_reliability(truth: np.ndarray, probability: np.ndarray) -> pd.DataFrame:
    """The share of ones among pairs of like probability, in at most ten groups of as many pairs each.

    Columns are meant (the mean probability), held (the share of ones), low and high (Wilson's 95 % interval of held)
    and pairs.
    """
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, _MOST_BINS + 1)))
    group = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, max(edges.size - 2, 0))
    if edges.size == 2:  # two values
        group = (probability == edges[1]).astype(np.int64)
    number = np.unique(group, return_inverse=True)[1]
    pairs = np.bincount(number)
    meant, held = np.bincount(number, probability) / pairs, np.bincount(number, truth) / pairs
    middle, half = _wilson(held, pairs)
    return pd.DataFrame({"meant": meant, "held": held, "low": middle - half, "high": middle + half, "pairs": pairs})


def _wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z = float(ndtri(0.975))
    whole = 1 + z**2 / n
    return (share + z**2 / (2 * n)) / whole, z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / whole
