"""The softmax over all columns: its value and its gradients are those of the formula, in pieces or whole."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from air_recsys.nn import softmax
from air_recsys.nn.softmax import ColumnFactors, Rows, softmax_loss

COLUMNS, STARTS = torch.tensor([0, 2, 3, 1, 4, 0]), torch.tensor([0, 3, 4])
ROWS = Rows(COLUMNS, STARTS)


def factors(dtype: torch.dtype = torch.float64) -> ColumnFactors:
    random = torch.Generator().manual_seed(0)
    sources, targets = (torch.randn(5, 3, generator=random, dtype=dtype).requires_grad_() for _ in range(2))
    return ColumnFactors(sources, targets, torch.rand(5, generator=random, dtype=dtype))


def loss_by_hand(each: ColumnFactors, temperature: float, power: float) -> Tensor:
    """Return the loss by the formula of the module, entry by entry."""
    total = torch.zeros((), dtype=torch.float64)
    unit = each.targets / each.targets.norm(dim=1, keepdim=True)
    for row in ([0, 2, 3], [1], [4, 0]):
        u = (each.weights[row, None] * each.sources[row]).sum(dim=0)
        scores = unit @ (u / u.norm()) / temperature
        for column in row:
            total = total - scores[column] + power * torch.logsumexp(scores, 0)
    return total / 6


@pytest.mark.parametrize(("temperature", "power"), [(0.11, 1.1), (1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("held", [1, 10, 1000])
def test_value_and_gradients_are_those_of_the_formula(
    monkeypatch: pytest.MonkeyPatch, temperature: float, power: float, held: int
) -> None:
    monkeypatch.setattr(softmax, "_CHUNK_ENTRIES", held)
    found, expected = factors(), factors()
    loss = softmax_loss(found, ROWS, temperature, power)
    by_hand = loss_by_hand(expected, temperature, power)
    torch.testing.assert_close(loss, by_hand)
    loss.backward()
    by_hand.backward()
    torch.testing.assert_close(found.sources.grad, expected.sources.grad)
    torch.testing.assert_close(found.targets.grad, expected.targets.grad)


def test_cosines_at_a_low_temperature_stay_finite() -> None:
    loss = softmax_loss(factors(torch.float32), ROWS, 0.02, 1.1)
    loss.backward()
    assert loss.isfinite()


def test_only_columns_of_the_rows_have_gradients_of_their_sources() -> None:
    each = factors()
    softmax_loss(each, Rows(torch.tensor([1, 3]), torch.tensor([0])), 0.5, 1.0).backward()
    assert each.sources.grad is not None
    assert each.sources.grad.abs().sum(dim=1).bool().tolist() == [False, True, False, True, False]
