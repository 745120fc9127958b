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

from air_recsys.metrics import average_precision

DECAY = 10.0
_PRIOR = 0.2  # chosen on validation parts: docs/dti.md
_SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


class Regressed(NamedTuple):
    """The scores of both regressions, and their weights."""

    scores: np.ndarray  # E, (m, n)
    drugs: np.ndarray  # C, (m, m), zero diagonal
    targets: np.ndarray  # B, (n, n), zero diagonal

    def contributions(self, known: np.ndarray, drug: int, target: int) -> np.ndarray:
        """Return what each known interaction adds to the score of a pair, (m, n)."""
        added = np.zeros(known.shape)
        added[drug] = known[drug] * self.targets[:, target] / 2
        added[:, target] += known[:, target] * self.drugs[drug] / 2
        return added


def regress(known: np.ndarray, decay: float = DECAY) -> Regressed:
    """Regress targets on targets and drugs on drugs.

    Parameters
    ----------
    known : ndarray, shape (m, n)
        Z.
    decay : float
        Of both ridge regressions.

    Examples
    --------
    >>> regress(np.array([[1.0, 1.0], [1.0, 0.0]]), decay=1.0).scores.round(2).tolist()
    [[0.5, 0.17], [0.17, 0.33]]
    """
    targets, drugs = _between_columns(known, decay), _between_columns(known.T, decay).T
    return Regressed((known @ targets + drugs @ known) / 2, drugs, targets)


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


def _between_columns(rows: np.ndarray, decay: float) -> np.ndarray:
    """Return the weights whose product with rows (m, n) predicts each column from all others, (n, n)."""
    precision = np.linalg.inv(rows.T @ rows + decay * np.eye(rows.shape[1]))
    weights = -precision / np.diag(precision)
    np.fill_diagonal(weights, 0)
    return weights
