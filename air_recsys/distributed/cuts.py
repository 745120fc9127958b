"""Contiguous ranges of rows, one a rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Cut:
    """Rank p owns rows ``starts[p]`` to ``starts[p + 1] - 1``, at least one.

    Parameters
    ----------
    starts : tuple of int
        Ascending from 0 to the number of rows, one more entry than ranks.
    """

    starts: tuple[int, ...]

    @classmethod
    def balanced(cls, weights: np.ndarray, n_ranks: int) -> Self:
        """Cut rows so that the sums of their weights are as alike as contiguous ranges allow.

        Parameters
        ----------
        weights : ndarray, shape (n,)
            What each row costs, > 0.
        n_ranks : int
            At most n.

        Examples
        --------
        >>> Cut.balanced(np.array([4, 1, 1, 1, 1]), 2).sizes
        [1, 4]
        """
        total = np.cumsum(weights, dtype=np.float64)
        shares = np.arange(1, n_ranks) * (total[-1] / n_ranks)
        inner = np.searchsorted(total, shares - weights.min() / 2) + 1
        step = np.arange(1, n_ranks)
        # One row each, whatever the weights: room is left before a start and behind it.
        inner = np.maximum.accumulate(np.maximum(inner, step) - step) + step
        inner = np.minimum(inner, weights.size - n_ranks + step)
        return cls((0, *inner.tolist(), weights.size))

    @classmethod
    def even(cls, n_rows: int, n_parts: int) -> Self:
        """Cut rows into parts that differ by one row at most, the larger ones first.

        Examples
        --------
        >>> Cut.even(8, 3).sizes
        [3, 3, 2]
        """
        return cls((0, *accumulate(n_rows // n_parts + (part < n_rows % n_parts) for part in range(n_parts))))

    @property
    def n_rows(self) -> int:
        """Rows of all ranks."""
        return self.starts[-1]

    @property
    def sizes(self) -> list[int]:
        """Rows of each rank."""
        return [stop - start for start, stop in pairwise(self.starts)]

    def of(self, rank: int) -> slice:
        """Return the rows of a rank."""
        return slice(self.starts[rank], self.starts[rank + 1])

    def within(self, rows: slice) -> list[slice]:
        """Return where the parts of this cut lie in an array of some of the rows only; empty where they do not.

        Examples
        --------
        >>> Cut((0, 3, 6, 9)).within(slice(2, 5))
        [slice(0, 1, None), slice(1, 3, None), slice(3, 3, None)]
        """
        inside = [min(max(start, rows.start), rows.stop) - rows.start for start in self.starts]
        return [slice(*pair) for pair in pairwise(inside)]
