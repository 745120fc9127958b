"""The squared error of `ImplicitAIR`: rows of factors are solved for by least squares, as those of ALS are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters.implicit_input import with_values
from air_recsys.adapters.implicit_targets import Targets, powers_of
from air_recsys.models.rows import LeastSquaresRows


class SquaredRows(NamedTuple):
    """How rows of factors follow from likes.

    Attributes
    ----------
    alpha : float
        Confidence of a value of 1.
    user_penalty, item_penalty : ndarray, shape (r, r)
        Quadratic penalties of a row: the regularization and the energy of the graph of the other side.
    targets : Targets, optional
        None: all are 1.
    """

    alpha: float
    user_penalty: np.ndarray
    item_penalty: np.ndarray
    targets: Targets | None

    def solver(self, side: str, others: np.ndarray) -> SquaredSolver:
        """Return what solves for rows of a side, "user" or "item", against the factors of the other side."""
        penalty = self.user_penalty if side == "user" else self.item_penalty
        trained = others if side == "item" or self.targets is None else times(others, 1 / self.targets.item_powers)
        rows = LeastSquaresRows(trained, np.zeros(len(trained)), penalty, unobserved_weight=1.0)
        return SquaredSolver(self, side, rows)

    def with_rows(self, side: str, ids: Any, likes: sp.csr_matrix, others: np.ndarray) -> SquaredRows:
        """Return this with the counts of rows at some ids that have these likes."""
        return self if self.targets is None else self._replace(targets=self.targets.with_rows(side, ids, likes))


class SquaredSolver(NamedTuple):
    """Solves for rows of one side."""

    rows: SquaredRows
    side: str
    least_squares: LeastSquaresRows

    def solve(self, likes: sp.csr_matrix) -> np.ndarray:
        """Return the factors of rows with these likes, (b, r)."""
        wanted = with_values(likes, targets_of(self.rows.targets, self.side, likes))
        factors = self.least_squares.solve(wanted, weights=likes.data * self.rows.alpha).factors
        return times(factors, powers_of(likes)) if self.side == "item" and self.rows.targets is not None else factors

    def contributions(self, likes: sp.csr_matrix) -> np.ndarray:
        """Return what each like of one user adds to its factors, (n_likes, r)."""
        wanted = targets_of(self.rows.targets, "user", likes)
        return self.least_squares.contributions(likes.indices, wanted, likes.data * self.rows.alpha)


def targets_of(targets: Targets | None, side: str, rows: sp.csr_matrix) -> np.ndarray:
    """Return the target of each stored like of some rows, (nnz,)."""
    return np.ones(rows.nnz) if targets is None else targets.of(side, rows)


def times(factors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Return factors times numbers, in the type of the factors."""
    return (factors * scales).astype(factors.dtype)
