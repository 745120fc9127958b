"""Packed triangles and the matrices that they stand for."""

from __future__ import annotations

import pytest
import torch

from air_recsys.nn.posterior.triangles import diagonal, inner, packed, size_of, squares, symmetric, upper, width_of

widths = pytest.mark.parametrize("width", [1, 2, 5])


def matrices(width, m=4):
    roots = torch.randn(m, width, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return roots + roots.mT


@widths
def test_packing_loses_nothing(width):
    given = matrices(width)
    triangles = packed(given)
    assert triangles.shape == (4, size_of(width))
    assert width_of(size_of(width)) == width
    torch.testing.assert_close(symmetric(triangles), given, rtol=0, atol=0)
    torch.testing.assert_close(upper(triangles).triu(), given.triu(), rtol=0, atol=0)


@widths
def test_the_order_is_that_of_triu_indices(width):
    given, places = matrices(width), torch.triu_indices(width, width)
    torch.testing.assert_close(packed(given), given[:, places[0], places[1]], rtol=0, atol=0)


@widths
def test_the_diagonal_lies_where_it_is_packed(width):
    given = matrices(width)
    torch.testing.assert_close(packed(given)[:, diagonal(width, given.device)], given.diagonal(dim1=1, dim2=2))


@widths
def test_squares_and_inner_products_are_those_of_the_matrices(width):
    given, rows = matrices(width), matrices(width)[:, 0]
    torch.testing.assert_close(symmetric(squares(rows)), rows[:, :, None] * rows[:, None])
    torch.testing.assert_close(
        inner(packed(given), squares(rows)), (given * rows[:, :, None] * rows[:, None]).sum((1, 2))
    )
