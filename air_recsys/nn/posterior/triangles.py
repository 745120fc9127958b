"""Symmetric matrices (m, d, d), kept as their upper triangles (m, d (d + 1) / 2), row after row."""

from __future__ import annotations

import itertools
from functools import cache
from math import isqrt
from typing import NamedTuple

import torch
from torch import Tensor


class Span(NamedTuple):
    """One row of a triangle: its number, and where it starts and ends in the packed form."""

    row: int
    start: int
    stop: int


@cache
def spans(width: int) -> tuple[Span, ...]:
    """Return the rows of the triangle of a matrix of `width` rows."""
    starts = [0, *itertools.accumulate(range(width, 0, -1))]
    return tuple(Span(row, *ends) for row, ends in enumerate(itertools.pairwise(starts)))


def size_of(width: int) -> int:
    """Return the entries of a triangle, d (d + 1) / 2."""
    return width * (width + 1) // 2


def width_of(size: int) -> int:
    """Return the rows of a triangle of so many entries."""
    return (isqrt(8 * size + 1) - 1) // 2


def packed(matrices: Tensor) -> Tensor:
    """Return the upper triangles of matrices.

    Examples
    --------
    >>> packed(torch.tensor([[[1.0, 2.0], [2.0, 3.0]]]))
    tensor([[1., 2., 3.]])
    """
    width = matrices.shape[-1]
    triangles = matrices.new_empty(len(matrices), size_of(width))
    for row, start, stop in spans(width):
        triangles[:, start:stop] = matrices[:, row, row:]
    return triangles


def upper(triangles: Tensor) -> Tensor:
    """Return matrices with these upper triangles; what lies below the diagonals has no meaning."""
    width = width_of(triangles.shape[1])
    matrices = triangles.new_zeros(len(triangles), width, width)
    for row, start, stop in spans(width):
        matrices[:, row, row:] = triangles[:, start:stop]
    return matrices


def symmetric(triangles: Tensor) -> Tensor:
    """Return the symmetric matrices with these upper triangles.

    Examples
    --------
    >>> symmetric(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[[1., 2.],
             [2., 3.]]])
    """
    matrices = upper(triangles)
    return matrices + matrices.triu(1).mT


def squares(rows: Tensor) -> Tensor:
    """Return the triangles of x x^T for rows x (m, d)."""
    width = rows.shape[1]
    triangles = rows.new_empty(len(rows), size_of(width))
    for row, start, stop in spans(width):
        torch.mul(rows[:, row, None], rows[:, row:], out=triangles[:, start:stop])
    return triangles


def diagonal(width: int, device: torch.device) -> Tensor:
    """Return where the diagonal of a matrix of `width` rows lies in its triangle, made on the device, (d,).

    Examples
    --------
    >>> diagonal(3, torch.device("cpu"))  # rows of 3, 2 and 1 entries
    tensor([0, 3, 5])
    """
    rows = torch.arange(width, device=device)
    return rows * width - rows * (rows - 1) // 2


def inner(left: Tensor, right: Tensor) -> Tensor:
    """Return the sums over all entries of the products of two symmetric matrices each, (m,).

    Examples
    --------
    >>> inner(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[1.0, 1.0, 1.0]]))
    tensor([8.])
    """
    width = width_of(left.shape[1])
    times = left.new_full((left.shape[1],), 2.0)  # off the diagonal each entry stands for two
    times.index_fill_(0, diagonal(width, left.device), 1.0)
    return (left * right) @ times
