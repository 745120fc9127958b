"""A fixed sparsity pattern, and the edges of sparse graphs as such patterns.

Products are sampled on a pattern, or are with it: nothing has full size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import scipy.sparse as sp

from air_recsys.nn.sums import row_sums
from air_recsys.storage.lazy import Tensor, functional, torch


@cache
def without_warning() -> None:
    """Let torch say unheard, once per process, that its CSR layout is in beta: the calls that are used are tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


class SparsePattern:
    """The positions (row, column) of the non-zeros of an m x n matrix, in row-major order.

    Values live outside: every method takes or returns one value per position.

    Parameters
    ----------
    row_starts : Tensor of int64, shape (m + 1,)
        Positions of row i are ``row_starts[i]:row_starts[i + 1]``.
    columns : Tensor of int64, shape (nnz,)
        Column of each position, ascending within a row.
    n_columns : int
    """

    def __init__(self, row_starts: Tensor, columns: Tensor, n_columns: int) -> None:
        without_warning()
        self.shape = (row_starts.numel() - 1, n_columns)
        # 32 bits, where they are enough, halve the memory traffic.
        index = torch.int32 if max(columns.numel(), *self.shape) < 2**31 else torch.int64
        self.row_starts, self.columns = row_starts.to(index), columns.to(index)
        # Row-major order of the transpose.
        order = torch.argsort(self.columns, stable=True)  # (nnz,)
        self._transposed = order.to(index)
        self._rows_transposed = self.rows.index_select(0, order)
        ends = torch.bincount(self.columns, minlength=n_columns).cumsum(0)
        self._column_starts = functional.pad(ends, (1, 0)).to(index)

    @property
    def rows(self) -> Tensor:
        """Row of each position, shape (nnz,)."""
        index = torch.arange(self.shape[0], device=self.columns.device, dtype=self.columns.dtype)
        return torch.repeat_interleave(index, self.row_starts.diff(), output_size=self.columns.numel())

    def side(self, side: int) -> tuple[Tensor, Tensor]:
        """The start of the positions of each row (side 0) or column (side 1), and their columns, or rows."""
        if side:
            return self._column_starts, self._rows_transposed
        return self.row_starts, self.columns

    def in_order_of(self, side: int, values: Tensor) -> Tensor:
        """Values, one per position, in the order of `side`: by rows (0) or by columns (1)."""
        return values.index_select(0, self._transposed) if side else values

    def sampled_product(self, left: Tensor, right: Tensor, minus: Tensor | None = None) -> Tensor:
        """The products left_i . right_j at all positions, less `minus` (nnz,), for left (m, d) and right (n, d)."""
        if minus is None:
            minus = torch.zeros_like(self.columns, dtype=left.dtype)
        sparse = torch.sparse_csr_tensor(self.row_starts, self.columns, minus, self.shape, check_invariants=False)
        return torch.sparse.sampled_addmm(sparse, left, right.T, beta=-1.0).values()

    def matmul(self, values: Tensor, right: Tensor) -> Tensor:
        """S @ right for the matrix S with `values` on the pattern; shape (m, d)."""
        return row_sums(self.row_starts, self.columns, right, values)

    def transpose_matmul(self, values: Tensor, left: Tensor) -> Tensor:
        """S^T @ left; shape (n, d)."""
        return row_sums(*self.side(1), left, self.in_order_of(1, values))


Carry = Callable[..., Tensor]
"""The map from the per-edge state of a `part` before a refresh to that after, (rows, k + 1), 0 for new edges."""


def edge_patterns(others: Tensor, ranges: Sequence[slice], n_nodes: int) -> list[SparsePattern]:
    """The positions of the edges of each range of rows, given the neighbours of all rows (m, k)."""
    k = others.shape[1]
    return [
        SparsePattern(torch.arange(0, chosen.numel() + 1, k, device=others.device), chosen.flatten(), n_nodes)
        for chosen in (others[rows] for rows in ranges)
    ]


def symmetric_graph(halves: Tensor, others: Tensor) -> sp.csr_array:
    """The graph (m, m) whose edges weigh the sum of both ends' `halves` (m, k), given to `others` (m, k)."""
    m, k = others.shape
    values, columns = (tensor.flatten().cpu().numpy() for tensor in (halves, others))
    half = sp.csr_array((values, columns, np.arange(0, m * k + 1, k)), shape=(m, m))
    return sp.csr_array(half + half.T)


def positions(old: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """The position of each entry of `new` in the same row of `old`, both ascending, and whether it is there."""
    places = torch.searchsorted(old.contiguous(), new.contiguous()).clamp_(max=old.shape[1] - 1)
    return places, old.gather(1, places) == new


def enter_edges(logits: Tensor, old: Tensor, new: Tensor, ranges: Sequence[slice]) -> Carry:
    """Move logits from old to new neighbours in place, and return what moves other per-edge state of a range.

    An edge that survives keeps its logit; a new one enters at its row's largest logit. Column 0 of all three, shape
    (m, k + 1), is the row itself.
    """
    places, kept = positions(old[:, 1:], new[:, 1:])  # (m, k)
    source, survives = functional.pad(places.add_(1), (1, 0)), functional.pad(kept, (1, 0), value=True)
    entry = logits.max(dim=1, keepdim=True).values  # (m, 1)
    logits.copy_(torch.where(survives, logits.gather(1, source), entry))

    def carry(state: Tensor, part: int = 0) -> Tensor:
        rows = ranges[part]
        return state.gather(1, source[rows]).mul_(survives[rows])

    return carry
