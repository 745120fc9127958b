"""The random start of a training, of which each rank keeps its own rows.

All ranks draw all numbers, a block at a time, from one seed: the start depends on neither the number of ranks nor the
cut, and no rank holds more than its own rows and a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK_ROWS = 1 << 16  # torch draws normal numbers 16 at a time, so blocks of 16 rows draw what one call would


def normal_rows(
    n_rows: int, width: int, rows: slice, *, mean: float, std: float, generator: torch.Generator, dtype: torch.dtype
) -> Tensor:
    """Return `rows` of an array (n_rows, width) of draws from N(mean, std^2).

    Examples
    --------
    >>> def draw(rows):
    ...     generator = torch.Generator().manual_seed(0)
    ...     return normal_rows(9, 2, rows, mean=0.0, std=1.0, generator=generator, dtype=torch.float32)
    >>> torch.equal(draw(slice(3, 5)), draw(slice(0, 9))[3:5])
    True
    """
    return _rows(n_rows, width, rows, dtype, lambda block: block.normal_(mean, std, generator=generator))


def uniform_rows(n_rows: int, width: int, rows: slice, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Return `rows` of an array (n_rows, width) of draws from +-1/sqrt(n_rows): the start of logits."""
    bound = 1 / math.sqrt(n_rows)
    return _rows(n_rows, width, rows, dtype, lambda block: block.uniform_(-bound, bound, generator=generator))


def _rows(n_rows: int, width: int, rows: slice, dtype: torch.dtype, fill: Callable[[Tensor], Tensor]) -> Tensor:
    own = torch.empty(rows.stop - rows.start, width, dtype=dtype)
    n_blocks = max(1, n_rows // _BLOCK_ROWS)
    for number in range(n_blocks):
        start = number * _BLOCK_ROWS
        stop = n_rows if number == n_blocks - 1 else start + _BLOCK_ROWS
        block = fill(torch.empty(stop - start, width, dtype=dtype))
        first, last = max(start, rows.start), min(stop, rows.stop)
        if first < last:
            own[first - rows.start : last - rows.start] = block[first - start : last - start]
    return own
