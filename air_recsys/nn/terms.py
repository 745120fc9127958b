"""Further terms of the objective at full width: energies of other transformations of X, and total variation.

The paper's regularizer is a sum over transformations T_i, R(X) = sum_i eta_i tr(T_i(X)^T L_i T_i(X)). The rows
(T(X) = X) and the columns (T(X) = X^T) are two of them; this module has the others.

Source: the adaptive regularizer of the paper; for total variation Li, Xu, Luo, Wang, IET Image Processing 16, 2022
(RDMF).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from air_recsys.nn.adaptive_laplacian import AdaptiveLaplacian
from air_recsys.storage.lazy import Tensor, torch

Transform = Callable[[Tensor], Tensor]
"""The map from X (m, n) to the rows (p, d) whose graph is learned; differentiable by torch."""


class Quadratic(NamedTuple):
    """A quadratic form of X: its product with a matrix (m, n), and its diagonal (m, n)."""

    product: Callable[[Tensor], Tensor]
    diagonal: Tensor


class TransformedEnergy:
    """eta E(T(X); A): the energy of the rows of T(X) on a graph with as many nodes; eta is `strength`."""

    def __init__(self, transform: Transform, laplacian: AdaptiveLaplacian, strength: float) -> None:
        self._transform, self.laplacian, self._strength = transform, laplacian, strength

    def rows(self, completed: Tensor) -> Tensor:
        """T(X), (p, d), whose graph is learned."""
        return self._transform(completed)

    def add(self, completed: Tensor, gradient: Tensor) -> Tensor:
        """Eta E(T(X); A); adds its gradient, 2 eta T'(X)^T L T(X)."""
        points, pull_back, *_ = torch.func.vjp(self._transform, completed)  # (p, d)
        energy, smoothed = self.laplacian.apply(points, points, self._strength)
        gradient.add_(pull_back(smoothed)[0], alpha=2 * self._strength)
        return self._strength * energy


class TotalVariation:
    """tau / (m n) times the sum of |x_(i+1)j - x_ij| + |x_i(j+1) - x_ij|, for pictures.

    tau is `strength`, in the unit of the mean squared error.
    """

    def __init__(self, strength: float) -> None:
        self._strength = strength

    def add(self, completed: Tensor, gradient: Tensor) -> Tensor:
        """The total variation at X (m, n); adds a subgradient (0 where neighbours are equal) to `gradient` (m, n)."""
        scale = self._strength / completed.numel()
        total = completed.new_zeros(())
        for axis in (0, 1):
            steps = completed.diff(dim=axis)
            total = total + steps.abs().sum()
            slope = steps.sign_().mul_(scale)
            _add_at_ends(gradient, slope, axis, sign=-1)
        return scale * total

    def near(self, completed: Tensor) -> Quadratic:
        """Half of m n times the quadratic form that touches the total variation at X; steps below 0.1 count less."""
        scales = []
        diagonal = torch.zeros_like(completed)
        for axis in (0, 1):
            scale = (self._strength / 2) * completed.diff(dim=axis).square().add_(_SMALL_STEP**2).rsqrt_()
            _add_at_ends(diagonal, scale, axis, sign=1)
            scales.append(scale)

        def product(matrix: Tensor) -> Tensor:
            total = torch.zeros_like(matrix)
            for axis, scale in enumerate(scales):
                _add_at_ends(total, matrix.diff(dim=axis).mul_(scale), axis, sign=-1)
            return total

        return Quadratic(product, diagonal)


_SMALL_STEP = 0.1
Term = TransformedEnergy | TotalVariation
"""A term of the objective that sees X itself."""


def _add_at_ends(total: Tensor, steps: Tensor, axis: int, sign: int) -> None:
    """Add what belongs to each step between neighbours to the later one and, by a sign, to the earlier one."""
    length = steps.shape[axis]
    total.narrow(axis, 1, length).add_(steps)
    total.narrow(axis, 0, length).add_(steps, alpha=sign)


def blocks(height: int, width: int, stride: int) -> Transform:
    """T that cuts X into blocks, one a row: (n_blocks, height * width).

    Blocks start every `stride` entries, at most a block apart; the last ones end where X ends, so every entry is in a
    block.

    Examples
    --------
    >>> blocks(1, 2, 2)(torch.arange(10.0).view(2, 5))
    tensor([[0., 1.],
            [2., 3.],
            [3., 4.],
            [5., 6.],
            [7., 8.],
            [8., 9.]])
    """

    def transform(completed: Tensor) -> Tensor:
        rows, columns = (
            _covering(size, side, min(stride, side), completed.device)
            for size, side in zip(completed.shape, (height, width), strict=True)
        )
        cut = completed.index_select(0, rows.flatten()).index_select(1, columns.flatten())
        cut = cut.view(len(rows), height, len(columns), width)
        return cut.transpose(1, 2).reshape(len(rows) * len(columns), height * width)

    return transform


def _covering(size: int, side: int, stride: int, device: torch.device) -> Tensor:
    """The entries of each block along one axis, (n_blocks, side)."""
    starts = sorted({*range(0, size - side + 1, stride), size - side})
    return torch.tensor(starts, device=device)[:, None] + torch.arange(side, device=device)
