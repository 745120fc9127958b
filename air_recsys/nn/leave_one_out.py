r"""How much of each further covariance a process takes: by errors on entries that are left out, in closed form.

A row's residuals r stem from scores that were fitted to its values: with the influence H of the values on the scores,
leaving a value out changes its residual to :math:`e_i = r_i / (1 - H_{ii})` and the others by :math:`H_{ji} e_i`. With
:math:`A = A_0 + \sum_k w_k K_k` and :math:`B = A^{-1}` the error of what is then predicted at the entry is

.. math:: l_i = \frac{(B r)_i + (B H)_{ii}\, e_i}{B_{ii}}.

Gauss-Newton steps over the rows find the weights :math:`w \ge 0` with the smallest sum of squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_STEPS = 4
_MOST_INFLUENCE = 0.95  # of a value on its own score


class LeftOut(NamedTuple):
    """What the errors of a row follow from."""

    base: np.ndarray  # A_0, (n, n)
    kernels: np.ndarray  # K_k, (k, n, n)
    influence: np.ndarray  # H, (n, n)
    residuals: np.ndarray  # r, (n,)

    @property
    def alone(self) -> np.ndarray:
        """The errors of the scores alone, without a process: e, (n,)."""
        return self.residuals / (1 - np.diag(self.influence).clip(0, _MOST_INFLUENCE))

    def errors(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The errors l, (n,), and their derivatives by the weights, (n, k)."""
        influence = self.influence.copy()
        np.fill_diagonal(influence, np.diag(influence).clip(0, _MOST_INFLUENCE))
        inverse = np.linalg.inv(self.base + np.tensordot(weights, self.kernels, 1))  # B
        alone, solved, own = self.alone, inverse @ self.residuals, np.diag(inverse)
        reached = inverse @ influence
        errors = (solved + np.diag(reached) * alone) / own
        slopes = np.empty((errors.size, len(self.kernels)))
        for number, kernel in enumerate(self.kernels):
            by = inverse @ kernel
            change = -(by @ solved) - (by * reached.T).sum(axis=1) * alone
            slopes[:, number] = (change + errors * (by * inverse).sum(axis=1)) / own
        return errors, slopes


class Weighed(NamedTuple):
    """Weights of the further covariances, and what they gain."""

    weights: np.ndarray  # (k,)
    gain: float  # of the rows' squared errors, in standard errors of its sum


def weighed(rows: list[LeftOut]) -> Weighed:
    """The weights with the smallest errors on entries that are left out."""
    from scipy.optimize import lsq_linear

    weights = np.zeros(len(rows[0].kernels) if rows else 0)
    if not weights.size:
        return Weighed(weights, 0.0)
    without = np.array([np.square(row.errors(weights)[0]).sum() for row in rows])
    for _ in range(_STEPS):
        squares, target = np.zeros((weights.size, weights.size)), np.zeros(weights.size)
        for row in rows:
            errors, slopes = row.errors(weights)
            squares += slopes.T @ slopes
            target += slopes.T @ (slopes @ weights - errors)
        root = np.linalg.cholesky(squares + (1e-9 * np.trace(squares) + 1e-300) * np.eye(weights.size))
        weights = lsq_linear(root.T, np.linalg.solve(root, target), bounds=(0, np.inf)).x
    gains = without - np.array([np.square(row.errors(weights)[0]).sum() for row in rows])
    size = np.sqrt(np.square(gains).sum())
    return Weighed(weights, float(gains.sum() / size) if size else 0.0)
