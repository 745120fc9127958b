"""The observed entries of the rows of one side, and the sums over them of what their partners bring."""

from __future__ import annotations

import itertools
from typing import NamedTuple, Self

import torch
from torch import Tensor

from air_recsys.nn.objective import Observations
from air_recsys.nn.sums import row_sums


class Entries(NamedTuple):
    """The entries of all rows of one side, those of row i at ``starts[i]:starts[i + 1]``."""

    starts: Tensor  # (m + 1,)
    partners: Tensor  # (nnz,), the row of the other side
    values: Tensor  # (nnz,)
    weights: Tensor | None  # (nnz,); all 1 where None

    @classmethod
    def of(cls, observed: Observations, side: int) -> Self:
        """The entries by rows (side 0) or by columns (side 1)."""
        pattern, values, weights = observed
        ordered = None if weights is None else pattern.in_order_of(side, weights)
        return cls(*pattern.side(side), pattern.in_order_of(side, values), ordered)

    def cut(self, size: int | None = None) -> list[Block]:
        """The entries in blocks of `size` rows, of all rows where None; the host waits for their ends."""
        m = len(self.starts) - 1
        if size is None or size >= m:
            return [Block(slice(0, m), self)]
        firsts = torch.arange(0, m, size)
        ends = self.starts.index_select(0, torch.cat([firsts, torch.tensor([m])]).to(self.starts.device)).tolist()
        rows = [slice(first, min(first + size, m)) for first in firsts.tolist()]
        return [
            Block(own, self._part(own, slice(*pair))) for own, pair in zip(rows, itertools.pairwise(ends), strict=True)
        ]

    def of_rows(self, rows: slice) -> Self:
        """The entries of some rows, which keep no others in memory."""
        if rows == slice(0, len(self.starts) - 1):
            return self
        positions = slice(int(self.starts[rows.start]), int(self.starts[rows.stop]))
        return self._make(None if part is None else part.clone() for part in self._part(rows, positions))

    def _part(self, rows: slice, positions: slice) -> Self:
        """The entries of some rows, which stand at these positions."""
        weights = None if self.weights is None else self.weights[positions]
        starts = self.starts[rows.start : rows.stop + 1]
        return self._replace(
            starts=starts - starts[0],
            partners=self.partners[positions],
            values=self.values[positions],
            weights=weights,
        )

    def sum(self, table: Tensor, power: int = 0) -> Tensor:
        r""":math:`\sum_j w_{ij} y_{ij}^p t_j` over the entries of each row, for a table t (n, k) of partners."""
        factors = self.weights
        for _ in range(power):
            factors = self.values if factors is None else factors * self.values
        return row_sums(self.starts, self.partners, table, factors)

    def counts(self) -> Tensor:
        """The sums of weights of each row, (m,)."""
        if self.weights is None:
            return self.starts.diff().to(self.values.dtype)
        return torch.segment_reduce(self.weights, "sum", offsets=self.starts.long(), initial=0.0)


class Block(NamedTuple):
    """Some rows, and their entries."""

    rows: slice
    entries: Entries
