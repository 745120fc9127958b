"""What the sweeps ask of other processes that solve rows of the same posterior; one alone asks nothing."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from air_recsys.nn.posterior.half_sweep import Half
from air_recsys.nn.posterior.state import Stateful


class Exchange(Protocol):
    """Rows that are shared out: each process solves its own ones, and all of them hold all rows after a half sweep.

    Attributes
    ----------
    alone : bool
        Whether no other process takes part.
    """

    alone: bool

    def own(self, side: int, n_rows: int) -> slice:
        """Return the rows of a side (0 or 1) that this process solves."""
        ...

    def all_rows(self, side: int, own: Tensor) -> Tensor:
        """Return the rows of all processes from those of each, (n_own, ...)."""
        ...

    def sum(self, *own: Tensor) -> list[Tensor]:
        """Return the sums over the processes of tensors of one type."""
        ...

    def whole(self, side: int, half: Half) -> Half:
        """Return the half sweep of all rows from that of the own ones."""
        ...

    def agree(self, *parts: Stateful) -> None:
        """Give parts of the state, which all processes found from the same rows, the same last digits everywhere."""
        ...


class Alone(Exchange):
    """One process that solves all rows.

    Examples
    --------
    >>> Alone().own(0, 5)
    slice(0, 5, None)
    """

    alone = True

    def own(self, side: int, n_rows: int) -> slice:
        """Return all rows."""
        return slice(0, n_rows)

    def all_rows(self, side: int, own: Tensor) -> Tensor:
        """Return all rows as they are."""
        return own

    def sum(self, *own: Tensor) -> list[Tensor]:
        """Return the tensors as they are."""
        return list(own)

    def whole(self, side: int, half: Half) -> Half:
        """Return what is whole."""
        return half

    def agree(self, *parts: Stateful) -> None:
        """Do nothing."""


ALONE = Alone()
