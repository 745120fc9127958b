"""The mean of many products of low rank, kept as sketches: no sample and no product is stored."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from air_recsys.nn.posterior.state import set_values, values_of

_STATE = ("_range", "_corange", "_count")


class RunningMean:
    """The mean of products ``left @ right.T`` (m x n), from two random projections of it.

    Parameters
    ----------
    m, n : int
    rank : int
        Of the factors that come out; a mean of that rank comes out exactly, up to rounding.
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

    def __init__(self, m: int, n: int, rank: int, generator: torch.Generator, like: Tensor) -> None:
        rank = min(rank, m, n)

        def normal(size: int, width: int) -> Tensor:
            return torch.randn(size, width, generator=generator, dtype=like.dtype, device=like.device)

        self._of_columns, self._of_rows = normal(n, rank), normal(m, min(2 * rank + 1, m))
        self._range = torch.zeros_like(normal(m, rank))  # sum of X times the first
        self._corange = torch.zeros(n, self._of_rows.shape[1], dtype=like.dtype, device=like.device)
        self._count = 0

    def add(self, left: Tensor, right: Tensor) -> None:
        """Take one product in: left (m, r), right (n, r)."""
        self._range += left @ (right.T @ self._of_columns)
        self._corange += right @ (left.T @ self._of_rows)
        self._count += 1

    def state(self) -> dict[str, Any]:
        """Return what `add` changes; the projections follow from the generator."""
        return values_of(self, _STATE)

    def load_state(self, state: dict[str, Any]) -> None:
        """Go back to what `state` returned."""
        set_values(self, state, _STATE, self._range.device)

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return left (m, rank) and right (n, rank), balanced, the directions of largest weight first."""
        basis = torch.linalg.qr(self._range.double() / self._count)[0]  # (m, k)
        # By QR: `lstsq` gives other last digits from call to call.
        rotation, triangle = torch.linalg.qr(self._of_rows.double().T @ basis)
        solved = torch.linalg.solve_triangular(
            triangle, rotation.T @ self._corange.double().T / self._count, upper=True
        )
        left, values, right = torch.linalg.svd(solved, full_matrices=False)  # (k, k), (k,), (k, n)
        roots = values.sqrt()
        dtype = self._range.dtype
        return (basis @ left * roots).to(dtype), (right.T * roots).to(dtype)
