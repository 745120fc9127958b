"""The seconds that a `GraphRanker` may take."""

from __future__ import annotations

import math
import time


class TimeBudget:
    """The seconds that a fit may take.

    Parameters
    ----------
    seconds : float, optional
        None for all that it needs.
    spent : float
        Seconds before, of a fit that goes on.

    Examples
    --------
    >>> TimeBudget(100.0, spent=60.0).has(0.5)
    False
    """

    def __init__(self, seconds: float | None = None, spent: float = 0.0) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start = time.perf_counter() - spent

    def spent(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self._start

    def left(self) -> float:
        """Return the seconds that are left, below 0 where the time is over."""
        return self.seconds - self.spent()

    def has(self, share: float) -> bool:
        """Return whether a share of the seconds is left, and more."""
        return self.seconds == math.inf or self.left() > share * self.seconds
