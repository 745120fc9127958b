"""The sums of `air_recsys.nn.sums` by a Triton kernel: one program for each piece of a row and 256 columns.

A row of a popular item has thousands of times the entries of others, and would let all of them wait. So long rows are
cut into pieces, whose sums are rows of a table that the same kernel sums. No order depends on the order of programs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

PIECE = 1024  # entries; `air_recsys.nn.memory` counts with them
_TILE = 256  # numbers that a program loads at a time
_cuts: Any = WeakTensorKeyDictionary()  # of the starts of rows, which are the same in all sweeps


class Pieces(NamedTuple):
    """Stretches of entries, and the row that each is the sum of."""

    starts: Tensor
    stops: Tensor
    targets: Tensor


@triton.jit(do_not_specialize=["size"])
def _sum_pieces(
    starts,
    stops,
    targets,
    partners,
    table,
    weights,
    out,
    size,
    WEIGHTED: tl.constexpr,
    ENTRIES: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    piece = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < size
    entries = tl.arange(0, ENTRIES)
    stop = tl.load(stops + piece)
    total = tl.zeros((ENTRIES, COLUMNS), table.dtype.element_ty)
    for place in range(tl.load(starts + piece), stop, ENTRIES):
        here = place + entries < stop
        partner = tl.load(partners + place + entries, mask=here, other=0).to(tl.int64)
        summands = tl.load(
            table + partner[:, None] * size + columns[None, :], mask=here[:, None] & inside[None, :], other=0.0
        )
        if WEIGHTED:
            summands *= tl.load(weights + place + entries, mask=here, other=0.0)[:, None]
        total += summands
    target = tl.load(targets + piece).to(tl.int64)
    tl.store(out + target * size + columns, tl.sum(total, 0), mask=inside)


def sums_by_kernel(starts: Tensor, partners: Tensor, table: Tensor, weights: Tensor | None) -> Tensor:
    """The sums of `air_recsys.nn.sums.row_sums`, on a GPU."""
    cut = _cuts.get(starts)
    if cut is None:
        cut = _cuts[starts] = pieces_of(starts)
    short, pieces, long = cut
    table = table.contiguous()
    out = table.new_empty(len(starts) - 1, table.shape[1])
    parts = table.new_empty(len(pieces.targets), table.shape[1])
    with torch.cuda.device_of(table):
        _launch(pieces, partners, table, weights, parts)
        _launch(long, pieces.targets, parts, None, out)
        _launch(short, partners, table, weights, out)
    return out


def pieces_of(starts: Tensor) -> tuple[Pieces, Pieces, Pieces]:
    """The rows of up to 1,024 entries, the pieces of longer ones, and these rows as stretches of pieces."""
    lengths = starts.diff()
    short, long = (chosen.nonzero()[:, 0] for chosen in (lengths <= PIECE, lengths > PIECE))
    counts = (lengths[long] + (PIECE - 1)) // PIECE
    ends = counts.cumsum(0)
    row = torch.repeat_interleave(counts)  # of each piece, among the long ones
    number = torch.arange(len(row), device=starts.device)
    first = starts[long][row] + PIECE * (number - (ends - counts)[row])
    found = (
        Pieces(starts[short], starts[short + 1], short),
        Pieces(first, torch.minimum(first + PIECE, starts[long + 1][row]), number),
        Pieces(ends - counts, ends, long),
    )
    short, pieces, long = (Pieces(*(part.to(starts.dtype) for part in each)) for each in found)
    return short, pieces, long


def _launch(pieces: Pieces, partners: Tensor, table: Tensor, weights: Tensor | None, out: Tensor) -> None:
    size = table.shape[1]
    if not len(pieces.targets) or not size:
        return
    columns = min(triton.next_power_of_2(size), _TILE)
    grid = len(pieces.targets), triton.cdiv(size, columns)
    _sum_pieces[grid](  # pyright: ignore[reportIndexIssue]
        *pieces,
        partners,
        table,
        table if weights is None else weights,
        out,
        size,
        WEIGHTED=weights is not None,
        ENTRIES=_TILE // columns,
        COLUMNS=columns,
        num_warps=2,
    )
