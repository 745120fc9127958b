"""Symmetric matrices (m, d, d), kept as their upper triangles (m, d (d + 1) / 2), row after row."""

from __future__ import annotations

import itertools
from functools import cache
from math import isqrt
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

_FEW = 64  # matrices or rows


class Span(NamedTuple):
    """One row of a triangle: its number, and where it starts and ends in the packed form."""

    row: int
    start: int
    stop: int


@cache
def spans(width: int) -> tuple[Span, ...]:
    """The rows of the triangle of a matrix of `width` rows."""
    starts = [0, *itertools.accumulate(range(width, 0, -1))]
    return tuple(Span(row, *ends) for row, ends in enumerate(itertools.pairwise(starts)))


@cache
def _corner(width: int) -> tuple[Tensor, Tensor]:
    """The rows and the columns of the entries of a triangle."""
    rows, columns = torch.triu_indices(width, width)
    return rows, columns


def _are_few(matrices: Tensor) -> bool:
    """Whether picking the entries of triangles one by one is faster than the rows of triangles."""
    return len(matrices) <= _FEW and matrices.device.type == "cpu"


def size_of(width: int) -> int:
    """The entries of a triangle, d (d + 1) / 2."""
    return width * (width + 1) // 2


def width_of(size: int) -> int:
    """The rows of a triangle of so many entries."""
    return (isqrt(8 * size + 1) - 1) // 2


@cache
def positions_in_triangle(width: int) -> np.ndarray:
    """The positions of the entries of a symmetric matrix of `width` rows in its triangle, (d, d).

    Examples
    --------
    >>> positions_in_triangle(2)
    array([[0, 1],
           [1, 2]])
    """
    positions = np.zeros((width, width), dtype=np.int64)
    positions[np.triu_indices(width)] = np.arange(size_of(width))
    return positions + np.triu(positions, 1).T


def packed(matrices: Tensor) -> Tensor:
    """The upper triangles of matrices."""
    width = matrices.shape[-1]
    if _are_few(matrices):
        return matrices[:, *_corner(width)]
    triangles = matrices.new_empty(len(matrices), size_of(width))
    for row, start, stop in spans(width):
        triangles[:, start:stop] = matrices[:, row, row:]
    return triangles


def upper(triangles: Tensor) -> Tensor:
    """Matrices with these upper triangles; what lies below the diagonals has no meaning."""
    width = width_of(triangles.shape[1])
    matrices = triangles.new_zeros(len(triangles), width, width)
    for row, start, stop in spans(width):
        matrices[:, row, row:] = triangles[:, start:stop]
    return matrices


def symmetric(triangles: Tensor) -> Tensor:
    """The symmetric matrices with these upper triangles."""
    matrices = upper(triangles)
    return matrices + matrices.triu(1).mT


def squares(rows: Tensor) -> Tensor:
    """The triangles of x x^T for rows x (m, d)."""
    width = rows.shape[1]
    if _are_few(rows):
        first, second = _corner(width)
        return rows[:, first] * rows[:, second]
    triangles = rows.new_empty(len(rows), size_of(width))
    for row, start, stop in spans(width):
        torch.mul(rows[:, row, None], rows[:, row:], out=triangles[:, start:stop])
    return triangles


def diagonal(width: int, device: torch.device) -> Tensor:
    """The positions of the diagonal of a matrix of `width` rows in its triangle, made on the device, (d,)."""
    rows = torch.arange(width, device=device)
    return rows * width - rows * (rows - 1) // 2


@cache
def _times(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """How often each entry of a triangle stands in its matrix: off the diagonal twice."""
    times = torch.full((size,), 2.0, dtype=dtype, device=device)
    return times.index_fill_(0, diagonal(width_of(size), device), 1.0)


def inner(left: Tensor, right: Tensor) -> Tensor:
    """The sums over all entries of the products of two symmetric matrices each, (m,)."""
    return (left * right) @ _times(left.shape[1], left.dtype, left.device)
