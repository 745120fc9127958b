"""Contiguous ranges of rows, one a rank."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Cut:
    """Rank p owns rows ``starts[p]`` to ``starts[p + 1] - 1``, at least one."""

    starts: tuple[int, ...]  # ascending from 0 to the number of rows, one more entry than ranks

    @classmethod
    def balanced(cls, weights: np.ndarray, n_ranks: int) -> Self:
        """Cut n >= n_ranks rows so that the sums of their weights (n,), > 0, are as alike as contiguous ranges allow.

        Examples
        --------
        >>> Cut.balanced(np.array([4, 1, 1, 1, 1]), 2).sizes
        [1, 4]
        """
        total = np.cumsum(weights, dtype=np.float64)
        shares = np.arange(1, n_ranks) * (total[-1] / n_ranks)
        inner = np.searchsorted(total, shares - weights.min() / 2) + 1
        step = np.arange(1, n_ranks)
        # Each rank has a row, whatever the weights: the ranks before and behind a start leave room for it.
        inner = np.maximum.accumulate(np.maximum(inner, step) - step) + step
        inner = np.minimum(inner, weights.size - n_ranks + step)
        return cls((0, *inner.tolist(), weights.size))

    @classmethod
    def even(cls, n_rows: int, n_parts: int) -> Self:
        """Cut rows into ranges that differ by one row at most, the larger ones first.

        Examples
        --------
        >>> Cut.even(8, 3).sizes
        [3, 3, 2]
        """
        return cls((0, *accumulate(n_rows // n_parts + (rank < n_rows % n_parts) for rank in range(n_parts))))

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
        """Return where the ranges of this cut are in an array of some of the rows only, empty for those outside.

        Examples
        --------
        >>> Cut((0, 3, 6, 9)).within(slice(2, 5))
        [slice(0, 1, None), slice(1, 3, None), slice(3, 3, None)]
        """
        inside = [min(max(start, rows.start), rows.stop) - rows.start for start in self.starts]
        return [slice(*pair) for pair in pairwise(inside)]
