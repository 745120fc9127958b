"""Whether intervals hold as many ratings as they say, and probabilities as many interactions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import ndtri

from air_recsys.evaluation.resampling import UserResamples, interval_of

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_MOST_BINS = 10


def interval_reliability(
    truth: np.ndarray, predicted: np.ndarray, deviations: np.ndarray, users: np.ndarray, seed: int = 0
) -> pd.DataFrame:
    """Return how many ratings lie within intervals of a normal distribution around their predictions.

    Parameters
    ----------
    truth, predicted, deviations : ndarray, shape (n,)
        Ratings, predictions, and the standard deviations of new ratings around them.
    users : ndarray, shape (n,)
        Whose ratings they are.
    seed : int
        Of the bootstrap over users.

    Returns
    -------
    DataFrame
        Columns meant (of the ratings, by the model), held (of them, in truth), low and high (a 95 % interval of held),
        and width (the mean, in the unit of the ratings).

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> table = interval_reliability(3 + noise, np.full(1000, 3.0), np.ones(1000), np.arange(1000))
    >>> bool((abs(table["held"] - table["meant"]) < 0.05).all())
    True
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
    """Return the share of ones among pairs of like probability, in at most ten groups of as many pairs each.

    Parameters
    ----------
    truth : ndarray of {0, 1}, shape (n,)
    probability : ndarray, shape (n,)

    Returns
    -------
    DataFrame
        Columns meant (the mean probability), held (the share of ones), low and high (Wilson's 95 % interval of held)
        and pairs.

    Examples
    --------
    >>> probability_reliability(np.array([0, 0, 1, 0]), np.array([0.1, 0.1, 0.6, 0.6]))[["meant", "held"]].values
    array([[0.1, 0. ],
           [0.6, 0.5]])
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
