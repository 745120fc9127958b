"""The entries that this process solves, and its exchange with others that solve rows of the same posterior."""

from __future__ import annotations

from typing import NamedTuple, Self

from air_recsys.nn.objective import Observations
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Half
from air_recsys.nn.posterior.state import Stateful
from air_recsys.storage.lazy import Tensor


class Exchange:
    """Rows that are shared out: each process solves its own ones, and all of them hold all rows after a half sweep.

    As it stands here one process solves all rows, and asks nothing; `air_recsys.distributed` has that of several.

    Attributes
    ----------
    alone : bool
        Whether no other process takes part.
    """

    alone: bool = True

    def own(self, side: int, n_rows: int) -> slice:
        """The rows of a side (0 or 1) that this process solves."""
        return slice(0, n_rows)

    def all_rows(self, side: int, own: Tensor) -> Tensor:
        """The rows of all processes from those of each, (n_own, ...)."""
        return own

    def sum(self, *own: Tensor) -> list[Tensor]:
        """The sums over the processes of tensors of one type."""
        return list(own)

    def whole(self, side: int, half: Half) -> Half:
        """The half sweep of all rows from that of the own ones."""
        return half

    def agree(self, *parts: Stateful) -> None:
        """Give parts of the state, which all processes found from the same rows, the same last digits everywhere."""


ALONE = Exchange()


class OwnEntries(NamedTuple):
    """The entries of the own rows and columns of a matrix, (m, n), values around 0 and of the size of 1."""

    entries: tuple[Entries, Entries]  # of the own rows, and of the own columns
    degrees: tuple[Tensor, Tensor]  # (m,) and (n,), how many entries each row and each column has
    counts: tuple[Tensor, Tensor]  # (m,) and (n,), the sums of their weights
    mean_square: float  # of the values of all entries that count
    exchange: Exchange

    @classmethod
    def of(cls, observed: Observations, exchange: Exchange = ALONE) -> Self:
        """The entries of a process that is given all of them."""
        rows, columns = Entries.of(observed, 0), Entries.of(observed, 1)
        shape = observed.pattern.shape
        counted = observed.values if observed.weights is None else observed.values[observed.weights > 0]
        return cls(
            (rows.of_rows(exchange.own(0, shape[0])), columns.of_rows(exchange.own(1, shape[1]))),
            (rows.starts.diff(), columns.starts.diff()),
            (rows.counts(), columns.counts()),
            float(counted.square().mean()),
            exchange,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of all rows and of all columns, (m, n)."""
        rows, columns = self.degrees
        return len(rows), len(columns)

    @property
    def values(self) -> Tensor:
        """The values of the own rows: their type and device are those of all numbers."""
        return self.entries[0].values

    def own(self, side: int) -> slice:
        """The rows (side 0) or columns (1) that this process solves."""
        return self.exchange.own(side, self.shape[side])
