"""The observed entries of the rows of one side, and the sums over them of what their partners bring."""

from __future__ import annotations

import itertools
from typing import NamedTuple, Self

from air_recsys.nn.objective import Observations
from air_recsys.nn.sums import row_sums
from air_recsys.storage.lazy import Tensor, torch

_PART = 2**17  # entries and rows, which are summed within a millisecond


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
        return self._cut_at([*range(0, m, size), m])

    def parts(self) -> list[Block]:
        """The entries in parts of about as much work, by rows; all of them on a GPU, where a part gains nothing."""
        m = len(self.starts) - 1
        if self.starts.device.type != "cpu" or len(self.partners) + m < 2 * _PART:
            return [Block(slice(0, m), self)]
        costs = self.starts + torch.arange(m + 1, dtype=self.starts.dtype)  # to write a row is as much as an entry
        edges = torch.searchsorted(costs, torch.arange(0, int(costs[-1]), _PART, dtype=costs.dtype)).clamp(max=m - 1)
        return self._cut_at([*edges.unique().tolist(), m])

    def _cut_at(self, edges: list[int]) -> list[Block]:
        """The entries in blocks of successive rows."""
        ends = self.starts.index_select(0, torch.tensor(edges, device=self.starts.device)).tolist()
        rows, places = (itertools.starmap(slice, itertools.pairwise(each)) for each in (edges, ends))
        return [Block(own, self._part(own, place)) for own, place in zip(rows, places, strict=True)]

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
