"""A fixed sparsity pattern: products that are sampled on it and sums over it, nothing of full size."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.nn import functional

with warnings.catch_warnings():
    # torch says once per process that its CSR layout is in beta; the two calls used here are tested.
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

    Attributes
    ----------
    rows : Tensor of int64, shape (nnz,)
        Row of each position.

    Examples
    --------
    >>> pattern = SparsePattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2)
    >>> pattern.matmul(torch.tensor([2.0, 3.0]), torch.eye(2))
    tensor([[0., 2.],
            [3., 0.]])
    """

    def __init__(self, row_starts: Tensor, columns: Tensor, n_columns: int) -> None:
        self.row_starts, self.columns = row_starts, columns
        self.shape = (row_starts.numel() - 1, n_columns)
        counts = row_starts.diff()
        self.rows = torch.repeat_interleave(torch.arange(self.shape[0], device=columns.device), counts)  # (nnz,)
        # Row-major order of the transpose: what turns column sums into row sums.
        self._transposed = torch.argsort(columns, stable=True)  # (nnz,)
        self._rows_transposed = self.rows[self._transposed]
        self._column_starts = functional.pad(torch.bincount(columns, minlength=n_columns).cumsum(0), (1, 0))
        self._ones: Tensor | None = None

    def sampled_product(self, left: Tensor, right: Tensor) -> Tensor:
        """Return left_i . right_j at every position (i, j); shape (nnz,).

        Parameters
        ----------
        left : Tensor, shape (m, d)
        right : Tensor, shape (n, d)
        """
        if self._ones is None or self._ones.dtype != left.dtype:
            self._ones = torch.ones_like(self.columns, dtype=left.dtype)
        pattern = torch.sparse_csr_tensor(
            self.row_starts, self.columns, self._ones, self.shape, check_invariants=False
        )
        return torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0).values()

    def matmul(self, values: Tensor, right: Tensor) -> Tensor:
        """Return S @ right for the matrix S with `values` on the pattern; shape (m, d)."""
        return functional.embedding_bag(
            self.columns, right, self.row_starts, mode="sum", per_sample_weights=values, include_last_offset=True
        )

    def transpose_matmul(self, values: Tensor, left: Tensor) -> Tensor:
        """Return S^T @ left; shape (n, d)."""
        return functional.embedding_bag(
            self._rows_transposed,
            left,
            self._column_starts,
            mode="sum",
            per_sample_weights=values[self._transposed],
            include_last_offset=True,
        )

    def row_sum(self, values: Tensor) -> Tensor:
        """Return S @ 1, shape (m,)."""
        return torch.segment_reduce(values, "sum", offsets=self.row_starts)

    def column_sum(self, values: Tensor) -> Tensor:
        """Return S^T @ 1, shape (n,)."""
        return torch.segment_reduce(values[self._transposed], "sum", offsets=self._column_starts)
