r"""The linear part of the scores: each target regressed on all others, and each drug on all others.

With Z the known interactions (0 elsewhere), :math:`E = (Z B + C Z) / 2`, where column j of B regresses target j on the
other targets by ridge regression, and row i of C drug i on the other drugs. Where interactions gather on few targets
it ranks the first pairs better than the completion, and the others worse. So the scores are
:math:`(1 - g) X + g E` with a small g: the mean of 0.2 and of the share that ranks recorded pairs best when
:math:`X` lacks each of them in turn, in closed form; E lacks them by its zero diagonals.

Source: Steck, Embarrassingly Shallow Autoencoders for Sparse Data, WWW 2019 (B).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from air_recsys.metrics import average_precision

DECAY = 10.0
_PRIOR = 0.2  # chosen on validation parts: docs/dti.md
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


class Regressed(NamedTuple):
    """The scores of both regressions, and what their weights are made of."""

    scores: np.ndarray  # E, (m, n)
    solved: np.ndarray  # Z (Z^T Z + decay)^-1, which is (Z Z^T + decay)^-1 Z, (m, n)
    decay: float

    def contributions(self, known: np.ndarray, row: int, column: int) -> np.ndarray:
        """Return what each known interaction adds to the score of a pair, (m, n)."""
        added = np.zeros(known.shape)
        added[row] = known[row] * _weights(known.T @ self.solved[:, column], column, self.decay) / 2
        added[:, column] += known[:, column] * _weights(known @ self.solved[row], row, self.decay) / 2
        return added


def regress(known: np.ndarray, decay: float = DECAY) -> Regressed:
    """Regress targets on targets and drugs on drugs.

    Both take one system of equations, of the smaller side: with :math:`S = Z (Z^T Z + c)^{-1}`, which is
    :math:`(Z Z^T + c)^{-1} Z`, the inverses that the weights are ratios of are :math:`(1 - Z^T S) / c` and
    :math:`(1 - S Z^T) / c`.

    Parameters
    ----------
    known : ndarray, shape (m, n)
        Z.
    decay : float
        c, of both ridge regressions.

    Examples
    --------
    >>> regress(np.array([[1.0, 1.0], [1.0, 0.0]]), decay=1.0).scores.round(2).tolist()
    [[0.5, 0.17], [0.17, 0.33]]
    """
    solved = _solved(known, decay) if known.shape[0] >= known.shape[1] else _solved(known.T, decay).T
    explained = known * solved
    rows, columns = 1 - explained.sum(axis=1), 1 - explained.sum(axis=0)  # diagonals of both inverses, times c
    return Regressed(known - decay / 2 * solved * (1 / rows[:, None] + 1 / columns), solved, decay)


def chosen_share(left_out: np.ndarray, regressed: np.ndarray, labels: np.ndarray) -> float:
    """Return g for scores of recorded pairs that lack each of them, shape (n_recorded,) all.

    Examples
    --------
    >>> labels = np.array([1, 1, 0, 0])
    >>> chosen_share(np.array([0.9, 0.8, 0.1, 0.2]), np.array([0.0, 0.0, 0.5, 0.5]), labels)
    0.1
    """
    precisions = [average_precision(labels, (1 - share) * left_out + share * regressed) for share in _SHARES]
    return (_SHARES[int(np.argmax(precisions))] + _PRIOR) / 2


def _solved(known: np.ndarray, decay: float) -> np.ndarray:
    factor = cho_factor(known.T @ known + decay * np.eye(known.shape[1], dtype=known.dtype), overwrite_a=True)
    return cho_solve(factor, known.T).T


def _weights(product: np.ndarray, own: int, decay: float) -> np.ndarray:
    """Return the weights of a line on all others, of its own 0, by its row of Z^T S or of S Z^T; (n,)."""
    weights = product / (1 - product[own])
    weights[own] = 0
    return weights
