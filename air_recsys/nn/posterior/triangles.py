"""Symmetric matrices (m, d, d), kept as their upper triangles (m, d (d + 1) / 2), row after row."""

from __future__ import annotations

import itertools
from functools import cache
from math import isqrt
from typing import NamedTuple

import numpy as np

from air_recsys.storage.lazy import Tensor, torch


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
def corner(width: int, device: torch.device) -> Tensor:
    """The rows and the columns of the entries of a triangle, (2, d (d + 1) / 2)."""
    return torch.triu_indices(width, width, device=device)


@cache
def _places(width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The positions of a triangle's entries in its flat matrix, and of the matrix's entries in the triangle."""
    rows, columns = corner(width, device)
    return rows * width + columns, torch.as_tensor(positions_in_triangle(width), device=device).flatten()


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
    return matrices.flatten(1).index_select(1, _places(matrices.shape[-1], matrices.device)[0])


def symmetric(triangles: Tensor) -> Tensor:
    """The symmetric matrices with these upper triangles."""
    width = width_of(triangles.shape[1])
    return triangles.index_select(1, _places(width, triangles.device)[1]).view(-1, width, width)


def squares(rows: Tensor) -> Tensor:
    """The triangles of x x^T for rows x (m, d)."""
    first, second = corner(rows.shape[1], rows.device)
    return rows.index_select(1, first).mul_(rows.index_select(1, second))


def diagonal(width: int, device: torch.device) -> Tensor:
    """The positions of the diagonal of a matrix of `width` rows in its triangle, made on the device, (d,)."""
    rows = torch.arange(width, device=device)
    return rows * width - rows * (rows - 1) // 2


@cache
def last_of_rows(width: int, device: torch.device) -> Tensor:
    """The positions of the last column of a matrix of `width` rows in its triangle, (d,)."""
    return diagonal(width, device) + torch.arange(width - 1, -1, -1, device=device)


@cache
def _times(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """How often each entry of a triangle stands in its matrix: off the diagonal twice."""
    times = torch.full((size,), 2.0, dtype=dtype, device=device)
    return times.index_fill_(0, diagonal(width_of(size), device), 1.0)


def inner(left: Tensor, right: Tensor) -> Tensor:
    """The sums over all entries of the products of two symmetric matrices each, (m,)."""
    return (left * right) @ _times(left.shape[1], left.dtype, left.device)
