"""Lists of neighbours as graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.nn.pattern import symmetric_graph


@pytest.mark.parametrize("k", [1, 2, 4])
def test_an_edge_weighs_what_both_of_its_ends_give(k):
    others = torch.tensor([sorted({(row + step) % 5 for step in range(1, k + 1)}) for row in range(5)])
    halves = torch.rand(5, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = np.zeros((5, 5))
    for row, line in enumerate(others.tolist()):
        for place, other in enumerate(line):
            expected[row, other] += halves[row, place]
            expected[other, row] += halves[row, place]
    np.testing.assert_allclose(symmetric_graph(halves, others).toarray(), expected)
