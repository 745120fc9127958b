"""The mean of many products of low rank, kept as sketches, without the products."""

from __future__ import annotations

import torch
from torch import Tensor

from air_recsys.nn.posterior.state import Stateful


class RunningMean(Stateful):
    """The mean of products ``left @ right.T`` (m x n), from two random projections of it.

    Parameters
    ----------
    m, n : int
    rank : int
        Of the factors returned, which are exact, up to rounding, for a mean of that rank.
    generator : torch.Generator
    like : Tensor
        Of the type and on the device wanted.

    Source: Tropp, Yurtsever, Udell, Cevher, Practical sketching algorithms for low-rank matrix approximation, SIAM J.
    Matrix Analysis 38(4), 2017.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> mean = RunningMean(4, 3, 1, generator, torch.zeros(1, dtype=torch.float64))
    >>> mean.add(torch.ones(4, 1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64))
    >>> mean.add(torch.zeros(4, 1, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64))
    >>> left, right = mean.factors()
    >>> bool(torch.allclose(left @ right.T, torch.full((4, 3), 0.5, dtype=torch.float64)))
    True
    """

    _STATE = ("_range", "_corange", "_count")  # the projections follow from the generator

    def __init__(self, m: int, n: int, rank: int, generator: torch.Generator, like: Tensor) -> None:
        rank = min(rank, m, n)

        def normal(size: int, width: int) -> Tensor:
            return torch.randn(size, width, generator=generator, dtype=like.dtype, device=like.device)

        self._of_columns, self._of_rows = normal(n, rank), normal(m, min(2 * rank + 1, m))
        self._range = torch.zeros_like(normal(m, rank))  # sum of X times the first
        self._corange = torch.zeros(n, self._of_rows.shape[1], dtype=like.dtype, device=like.device)
        self._count = 0

    def add(self, left: Tensor, right: Tensor) -> None:
        """Add the product of left (m, r) and right (n, r)."""
        # Not in place, so that a state that was returned does not change.
        self._range = self._range + left @ (right.T @ self._of_columns)
        self._corange = self._corange + right @ (left.T @ self._of_rows)
        self._count += 1

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return left (m, rank) and right (n, rank), balanced, the directions of largest weight first."""
        basis = torch.linalg.qr(self._range.double() / self._count)[0]  # (m, k)
        # By QR, as the last digits of `lstsq` differ from call to call.
        rotation, triangle = torch.linalg.qr(self._of_rows.double().T @ basis)
        solved = torch.linalg.solve_triangular(
            triangle, rotation.T @ self._corange.double().T / self._count, upper=True
        )
        left, values, right = torch.linalg.svd(solved, full_matrices=False)  # (k, k), (k,), (k, n)
        roots = values.sqrt()
        dtype = self._range.dtype
        return (basis @ left * roots).to(dtype), (right.T * roots).to(dtype)
