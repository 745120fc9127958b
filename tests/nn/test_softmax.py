"""The softmax over all columns: its value and its gradients are those of the formula, in pieces or whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.softmax import ColumnFactors, ColumnGraph, ColumnSample, softmax

EDGES = SparsePattern(torch.tensor([0, 2, 3, 4, 5, 6]), torch.tensor([1, 4, 0, 3, 2, 0]), 5)
GRAPH = ColumnGraph(EDGES, torch.tensor([0.7, 1.5, 0.7, 0.4, 0.4, 1.5], dtype=torch.float64))  # 2 and 3 apart
ROWS = SparsePattern(torch.tensor([0, 3, 4, 6]), torch.tensor([0, 2, 3, 1, 0, 4]), 5)


def factors(dtype: torch.dtype = torch.float64, graph: ColumnGraph | None = None) -> ColumnFactors:
    random = torch.Generator().manual_seed(0)
    sources, targets = (torch.randn(5, 3, generator=random, dtype=dtype) for _ in range(2))
    return ColumnFactors(sources, targets, torch.rand(5, generator=random, dtype=dtype), graph)


def loss_by_hand(each: ColumnFactors, temperature: float, power: float, sample: ColumnSample) -> Tensor:
    """Return the loss by the formula of the module, entry by entry."""
    total = torch.zeros((), dtype=torch.float64)
    spread = each.targets
    if each.graph is not None:
        dense = torch.sparse_csr_tensor(EDGES.row_starts, EDGES.columns, each.graph.weights, (5, 5)).to_dense()
        spread = spread + dense @ spread
    unit = spread / spread.norm(dim=1, keepdim=True)
    for row in ([0, 2, 3], [1], [0, 4]):
        u = (each.weights[row, None] * each.sources[row]).sum(dim=0)
        scores = unit @ (u / u.norm()) / temperature
        for column in row:
            total = total - scores[column]
            total = total + power * torch.logsumexp(scores[sample.columns] + sample.weights.log(), 0)
    return total / 6


ALL = ColumnSample(torch.arange(5).flip(0), torch.ones(5, dtype=torch.float64))
SOME = ColumnSample(torch.tensor([4, 1, 0]), torch.tensor([2.0, 3.0, 1.5], dtype=torch.float64))


@pytest.mark.parametrize(
    ("temperature", "power", "held", "graph", "sample"),
    [
        (0.11, 1.1, 1, None, None),
        (0.11, 1.1, 1000, GRAPH, None),
        (1.0, 1.0, 10, GRAPH, None),
        (0.5, 2.0, 1000, None, None),
        (0.5, 1.1, 1000, None, ALL),
        (0.5, 1.1, 1000, None, SOME),
    ],
)
def test_value_and_gradients_are_those_of_the_formula(
    blocks_of: Callable[[int], None],
    temperature: float,
    power: float,
    held: int,
    graph: ColumnGraph | None,
    sample: ColumnSample | None,
) -> None:
    blocks_of(held)
    found, each = softmax(factors(graph=graph), ROWS, temperature, power, sample), factors(graph=graph)
    leaves = each._replace(sources=each.sources.requires_grad_(), targets=each.targets.requires_grad_())
    by_hand = loss_by_hand(leaves, temperature, power, sample or ALL)
    by_hand.backward()
    torch.testing.assert_close(found.loss, by_hand.detach())
    torch.testing.assert_close(found.sources, each.sources.grad)
    torch.testing.assert_close(found.targets, each.targets.grad)


def test_cosines_at_a_low_temperature_stay_finite() -> None:
    assert all(each.isfinite().all() for each in softmax(factors(torch.float32), ROWS, 0.02, 1.1))


def test_only_columns_of_the_rows_have_gradients_of_their_sources() -> None:
    found = softmax(factors(), SparsePattern(torch.tensor([0, 2]), torch.tensor([1, 3]), 5), 0.5, 1.0)
    assert found.sources.abs().sum(dim=1).bool().tolist() == [False, True, False, True, False]
    assert found.targets.abs().sum(dim=1).bool().all()
