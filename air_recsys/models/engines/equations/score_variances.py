r"""The variances of the scores of each user or item under a posterior, the mean over the other side.

With means and covariances the variance of a score is :math:`\tilde p^\top C \tilde p + \tilde q^\top S \tilde q +
\mathrm{tr}(S' C')`, where S and C are the covariances of factors and bias of the user and of the item, S' and C' those
of the factors alone, and :math:`\tilde p = (p, 1)`, :math:`\tilde q = (q, 1)`. It is linear in what the other side
has, so its mean over all of them follows from two matrices. With draws it is the variance over the draws.
"""

from __future__ import annotations

import numpy as np

from air_recsys.models.engines.equations.posterior_arrays import PosteriorArrays, double
from air_recsys.models.rows import Side
from air_recsys.nn.posterior.triangles import inner, packed, symmetric

_MOST_OTHERS = 2000  # of models of draws, evenly spaced
_BLOCK = 256


def score_variances(arrays: PosteriorArrays, side: Side) -> np.ndarray:
    """The mean variance of the scores of each row of a side without noise, (n,), in the unit of the ratings."""
    own, other = (arrays.users, arrays.items) if side == "user" else (arrays.items, arrays.users)
    if own.ndim == 3:
        variances = _of_draws(own, other)
    else:
        assert arrays.user_covariances is not None
        assert arrays.item_covariances is not None
        covariances = arrays.user_covariances, arrays.item_covariances
        variances = _of_means(own, other, *(covariances if side == "user" else covariances[::-1]))
    return float(arrays.scales[0]) ** 2 * variances.clip(min=0)


def _of_means(own: np.ndarray, other: np.ndarray, spread: np.ndarray, of_other: np.ndarray) -> np.ndarray:
    left, right = _with_one(own), _with_one(other)
    mean_spread = symmetric(double(of_other.mean(axis=0, dtype=np.float64)[None])).numpy()[0]
    moment = right.T @ right / len(right)
    moment[:-1, :-1] += mean_spread[:-1, :-1]
    of_own = inner(double(spread), packed(double(moment)[None])).numpy()
    return of_own + np.einsum("nd,de,ne->n", left, mean_spread, left, optimize=True)


def _with_one(means: np.ndarray) -> np.ndarray:
    """Factors with 1 in place of the bias."""
    return np.column_stack([means[:, :-1], np.ones(len(means))]).astype(np.float64)


def _of_draws(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    few = np.unique(np.linspace(0, len(other) - 1, min(len(other), _MOST_OTHERS)).astype(np.int64))
    others = other[few].astype(np.float64)
    variances = np.empty(len(own))
    for start in range(0, len(own), _BLOCK):
        rows = own[start : start + _BLOCK].astype(np.float64)
        total = np.zeros((len(rows), few.size))
        squared = np.zeros_like(total)
        for draw in range(rows.shape[1]):
            left, right = rows[:, draw], others[:, draw]
            scores = left[:, :-1] @ right[:, :-1].T + left[:, -1:] + right[:, -1]
            total += scores
            squared += scores**2
        n_draws = rows.shape[1]
        variances[start : start + _BLOCK] = (squared / n_draws - (total / n_draws) ** 2).mean(axis=1)
    return variances
