"""Packed triangles and the matrices that they stand for."""

from __future__ import annotations

import pytest
import torch

from air_recsys.nn.posterior.triangles import (
    diagonal,
    inner,
    last_of_rows,
    packed,
    size_of,
    squares,
    symmetric,
    width_of,
)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_triangles_are_those_of_the_matrices_in_the_order_of_triu_indices(width):
    roots = torch.randn(200, width, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    given, places = roots + roots.mT, torch.triu_indices(width, width)
    triangles, rows = packed(given), given[:, 0]
    assert triangles.shape == (200, size_of(width))
    assert width_of(size_of(width)) == width
    assert torch.equal(triangles, given[:, places[0], places[1]])
    assert torch.equal(symmetric(triangles), given)
    assert torch.equal(triangles[:, diagonal(width, given.device)], given.diagonal(dim1=1, dim2=2))
    assert torch.equal(triangles[:, last_of_rows(width, given.device)], given[:, -1])
    torch.testing.assert_close(symmetric(squares(rows)), rows[:, :, None] * rows[:, None])
    torch.testing.assert_close(inner(triangles, squares(rows)), (given * rows[:, :, None] * rows[:, None]).sum((1, 2)))
    # Of few rows they are the same as of many.
    assert torch.equal(squares(rows)[:5], squares(rows[:5]))
    assert torch.equal(triangles[:5], packed(given[:5]))
    assert torch.equal(symmetric(triangles[:5]), given[:5])
