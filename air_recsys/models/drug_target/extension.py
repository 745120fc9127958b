r"""Rows without any record, predicted from rows that are similar to them.

The prediction mixes two linear predictors of a row, both made of similarities alone:

* the mean of its neighbours under a row softmin of 1 - S whose effective number of neighbours (the exponential of the
  entropy) is three, and
* ridge regression in the kernel S, its decay the one with the least leave-one-out error.

Their shares come from leaving every known row out in turn, in closed form: between equal shares and those with the
highest average precision, which are uncertain where rows are few. Of n known rows the latter weigh
n^2 / (n^2 + 100^2).
"""

from __future__ import annotations

import numpy as np

from air_recsys.metrics import average_precision

EFFECTIVE_NEIGHBORS = 3.0
_DECAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
_UNCERTAIN = 100  # rows
_SHARES = np.linspace(0, 1, 6)


def extension_weights(
    similarity: np.ndarray, known: np.ndarray, rows: np.ndarray, labels: np.ndarray, recorded: np.ndarray
) -> np.ndarray:
    """Return weights whose product with the known rows predicts the unknown ones; shape (n_unknown, n_known).

    Parameters
    ----------
    similarity : ndarray, shape (m, m)
        Symmetric, in [0, 1].
    known : ndarray of bool, shape (m,)
        At least one is True.
    rows : ndarray, shape (n_known, n)
        Values to be predicted from.
    labels, recorded : ndarray, shape (n_known, n)
        Values 0 or 1 by which the two predictors are compared, and whether each is recorded.
    """
    among, across = similarity[np.ix_(known, known)], similarity[np.ix_(~known, known)]
    neighbors = softmin_neighbors(1 - across)
    if known.sum() < 3:  # too few to leave one out
        return neighbors
    others = 1 - among
    np.fill_diagonal(others, np.inf)
    by_neighbors = softmin_neighbors(others) @ rows
    values, vectors = np.linalg.eigh(among)
    values = np.maximum(values, 0)
    projected = vectors.T @ rows
    left_out = [_leave_one_out(values, vectors, decay, rows, projected) for decay in _DECAYS]
    errors = [np.square((predicted - labels)[recorded]).sum() for predicted in left_out]
    best = int(np.argmin(errors))
    best_share = _best_share(by_neighbors[recorded], left_out[best][recorded], labels[recorded])
    trust = len(rows) ** 2 / (len(rows) ** 2 + _UNCERTAIN**2)
    share = trust * best_share + (1 - trust) / 2
    ridge = (across @ vectors / (values + _DECAYS[best])) @ vectors.T
    return share * neighbors + (1 - share) * ridge


def softmin_neighbors(distances: np.ndarray, effective: float = EFFECTIVE_NEIGHBORS) -> np.ndarray:
    """Return the row softmin, scaled so that every row has that many effective neighbours (or all that there are).

    The distances, shape (a, b), are infinite where there is no neighbour.

    Examples
    --------
    >>> softmin_neighbors(np.array([[0.1, 0.1, 0.1, 5.0]])).round(2).tolist()
    [[0.33, 0.33, 0.33, 0.0]]
    """
    shifted = distances - distances.min(axis=1, keepdims=True)
    low, high = np.full(len(distances), 1e-3), np.full(len(distances), 1e4)
    weights = np.empty_like(distances)
    for _ in range(40):
        scale = np.sqrt(low * high)
        weights = np.exp(-scale[:, None] * shifted)
        weights /= weights.sum(axis=1, keepdims=True)
        entropy = -(weights * np.log(np.maximum(weights, np.finfo(np.float64).tiny))).sum(axis=1)
        too_many = np.exp(entropy) > effective
        low, high = np.where(too_many, scale, low), np.where(too_many, high, scale)
    return weights


def _leave_one_out(
    values: np.ndarray, vectors: np.ndarray, decay: float, rows: np.ndarray, projected: np.ndarray
) -> np.ndarray:
    """Return what ridge regression makes of each row without itself; projected rows are those on the vectors."""
    kept = values / (values + decay)
    own = (np.square(vectors) @ kept)[:, None]
    return (vectors @ (kept[:, None] * projected) - own * rows) / (1 - own)


def _best_share(first: np.ndarray, second: np.ndarray, labels: np.ndarray) -> float:
    precisions = [average_precision(labels, share * first + (1 - share) * second) for share in _SHARES]
    return float(_SHARES[int(np.argmax(precisions))])
