r"""The equations of the factors and the bias of each row from observed entries, given a Gaussian for the columns.

Row i has :math:`x = (p_i, b_i)`, column j has :math:`z = (q_j, c_j)`, and an entry with weight w is
:math:`y = p\cdot q + b + c + e`. With :math:`g = (q, 1)` the expected log-likelihood of one row is
:math:`-\frac12 x^\top A x + h^\top x - \frac12 s`, where over the entries of the row

.. math:: A = \sum_j w\,E[g g^\top],\qquad h = \sum_j w\,E[(y - c)\,g],\qquad s = \sum_j w\,E[(y - c)^2].

All rows at once are one product of the sparse matrix of weights with the upper triangles of :math:`E[g g^\top]`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from air_recsys.exceptions import NumericalError
from air_recsys.nn.pattern import SparsePattern


class Rows(NamedTuple):
    """Rows x = (p, b), as Gaussians or as exact values."""

    mean: Tensor  # (m, d) with d = r + 1
    covariance: Tensor | None = None  # (m, d, d)

    def second_moment(self) -> Tensor:
        """Return E[x x^T], (m, d, d)."""
        product = self.mean[:, :, None] * self.mean[:, None, :]
        return product if self.covariance is None else product + self.covariance


class Equations(NamedTuple):
    """A, h and s of each row."""

    precision: Tensor  # (m, d, d)
    right: Tensor  # (m, d)
    squares: Tensor  # (m,)

    def squared_errors(self, rows: Rows) -> Tensor:
        """Return the expected weighted sum of squared errors of each row, (m,)."""
        linear = (self.right * rows.mean).sum(1)
        return (self.squares - 2 * linear + (self.precision * rows.second_moment()).sum((1, 2))).clamp(min=0)


def equations(pattern: SparsePattern, side: int, weights: Tensor, values: Tensor, partner: Rows) -> Equations:
    """Return the equations of all rows (side 0) or of all columns (side 1) of a pattern (m, n).

    `weights` and `values`, (nnz,) each, are in the order of `pattern`; `partner` is the other side.

    Examples
    --------
    >>> pattern = SparsePattern(torch.tensor([0, 2]), torch.tensor([0, 1]), 2)
    >>> columns = Rows(torch.tensor([[1.0, 0.0], [2.0, 0.5]]))
    >>> system = equations(pattern, 0, torch.ones(2), torch.tensor([3.0, 1.5]), columns)
    >>> system.precision
    tensor([[[5., 3.],
             [3., 2.]]])
    >>> system.right, system.squares
    (tensor([[5., 4.]]), tensor([10.]))
    """
    add = pattern.transpose_matmul if side else pattern.matmul
    others = pattern.rows if side else pattern.columns
    width = partner.mean.shape[1]
    upper = torch.triu_indices(width, width, device=weights.device)
    biases = partner.mean[:, -1]
    inputs = torch.cat([partner.mean[:, :-1], torch.ones_like(biases)[:, None]], dim=1)  # g, (n, d)
    products = inputs[:, upper[0]] * inputs[:, upper[1]]  # (n, d (d + 1) / 2)
    rest = values - biases.index_select(0, others)  # y - c
    squared = rest.square()
    if partner.covariance is None:
        right = add(weights * rest, inputs)
    else:
        covariance = partner.covariance.clone()
        with_bias, of_bias = covariance[:, -1].clone(), covariance[:, -1, -1].clone()
        covariance[:, -1, :] = covariance[:, :, -1] = with_bias[:, -1] = 0
        products += covariance[:, upper[0], upper[1]]
        squared += of_bias.index_select(0, others)
        right = add(weights * rest, inputs) - add(weights, with_bias)
    squares = add(weights * squared, torch.ones_like(biases)[:, None])[:, 0]
    return Equations(_symmetric(add(weights, products), upper, width), right, squares)


def _symmetric(triangles: Tensor, upper: Tensor, width: int) -> Tensor:
    place = torch.empty(width, width, dtype=torch.int64, device=triangles.device)
    place[upper[0], upper[1]] = place[upper[1], upper[0]] = torch.arange(upper.shape[1], device=triangles.device)
    return triangles.index_select(1, place.flatten()).view(-1, width, width)


class Solution(NamedTuple):
    """The Gaussian of each row given its equations and its prior."""

    mean: Tensor  # (m, d)
    cholesky: Tensor  # (m, d, d), lower, of the precisions

    def covariance(self) -> Tensor:
        """Return the covariances, (m, d, d)."""
        return torch.cholesky_inverse(self.cholesky)

    def draw(self, before: Tensor, momentum: float, noise: Tensor) -> Tensor:
        """Return m - a (x - m) + (1 - a^2)^1/2 e for the state x before, e ~ N(0, covariance) from `noise` ~ N(0, 1).

        Both x and the draw have the Gaussian as their distribution; a > 0 moves past the mean (over-relaxation).
        """
        error = torch.linalg.solve_triangular(self.cholesky.mT, noise[:, :, None], upper=True)[:, :, 0]
        return self.mean - momentum * (before - self.mean) + (1 - momentum**2) ** 0.5 * error


def solve(found: Equations, scale: Tensor, prior_mean: Tensor, prior_precision: Tensor) -> Solution:
    """Return the Gaussian of rows with prior N(prior_mean, prior_precision^-1) and equations times `scale`.

    Shapes are (m,) for `scale`, (m, d) for `prior_mean` and (d, d) for `prior_precision`.

    Raises
    ------
    NumericalError
        Where the precision of the numbers is too low for the equations.
    """
    right = found.right * scale[:, None] + prior_mean @ prior_precision
    cholesky, failed = torch.linalg.cholesky_ex(found.precision * scale[:, None, None] + prior_precision)
    if failed.any():
        raise NumericalError(
            f"{int((failed > 0).sum())} rows of the posterior have no solution in {found.right.dtype}: expected "
            "positive definite equations; take dtype='float64' or smaller weights"
        )
    return Solution(torch.cholesky_solve(right[:, :, None], cholesky)[:, :, 0], cholesky)
