"""The objective of AIR as one would write it first: autograd, one optimiser a group of parameters, no tricks.

It serves as the yardstick of the step at full width and, in the tests, as an independent statement of what
the engine computes. `program_step` makes the same step in the way of the authors' program: degrees through a product
with a matrix of ones, constants made anew, both energies once more after the update, and the error recorded at every
step.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
from torch import Tensor, nn


class PlainAIR(nn.Module):
    """X = W0 W1 ... W(L-1) at full width with two row-softmin Laplacians.

    Parameters
    ----------
    strength : float
        eta of both energies.
    """

    def __init__(self, n_rows: int, n_columns: int, depth: int, strength: float, generator: torch.Generator) -> None:
        super().__init__()
        width = min(n_rows, n_columns)
        sizes = [n_rows, *[width] * (depth - 1), n_columns]
        self.layers = nn.ParameterList(
            nn.Parameter(torch.empty(rows, columns).normal_(1e-3, 1e-3, generator=generator))
            for rows, columns in itertools.pairwise(sizes)
        )
        self.row_logits = nn.Parameter(_uniform(n_rows, generator))
        self.column_logits = nn.Parameter(_uniform(n_columns, generator))
        self.strength = strength

    def completed(self) -> Tensor:
        """X, (n_rows, n_columns)."""
        return functools.reduce(torch.matmul, self.layers)

    def forward(self, targets: Tensor, mask: Tensor) -> Tensor:
        """The objective."""
        completed = self.completed()
        fit = (((completed - targets) * mask) ** 2).sum() / mask.numel()
        energy = _energy(completed, self.row_logits) + _energy(completed.T, self.column_logits)
        return fit + self.strength * energy


def plain_optimizers(model: PlainAIR, learning_rate: float) -> list[torch.optim.Optimizer]:
    """One Adam for the factors and one for each graph, as in the authors' program."""
    groups = [list(model.layers), [model.row_logits], [model.column_logits]]
    return [torch.optim.Adam(group, lr=learning_rate) for group in groups]


def plain_step(model: nn.Module, optimizers: list[torch.optim.Optimizer], *data: Any) -> Tensor:
    """Make one step of all optimisers on the objective that the model returns for its data, and return it."""
    objective = model(*data)
    for optimizer in optimizers:
        optimizer.zero_grad()
    objective.backward()
    for optimizer in optimizers:
        optimizer.step()
    return objective.detach()


def program_step(model: PlainAIR, optimizers: list[torch.optim.Optimizer], targets: Tensor, mask: Tensor) -> Tensor:
    """Make the step of `plain_step` as the authors' program composes it, and return the objective before it."""
    completed = model.completed()
    fit = (((completed - targets) * mask) ** 2).sum() / mask.numel()
    sides = (completed, model.row_logits), (completed.T, model.column_logits)
    energies = [_program_energy(rows, logits) for rows, logits in sides]
    objective = fit + model.strength * energies[0] + model.strength * energies[1]
    with torch.no_grad():
        error = ((completed - targets).abs() * (1 - mask)).sum() / (1 - mask).sum()
        _ = [value.item() for value in (fit, *energies, objective, error)]  # its records
    for optimizer in optimizers:
        optimizer.zero_grad()
    objective.backward()
    optimizers[0].step()
    completed = model.completed()
    for optimizer, rows, logits in (
        (optimizers[1], completed, model.row_logits),
        (optimizers[2], completed.T, model.column_logits),
    ):
        optimizer.step()
        _program_energy(rows, logits)
    return objective.detach()


def _program_energy(rows: Tensor, logits: Tensor) -> Tensor:
    size, device = logits.shape[0], logits.device
    ones = torch.ones(size, 1, device=device)
    identity = torch.eye(size, device=device)
    weights = torch.softmax(-logits, dim=1)
    adjacency = (weights + weights.T) / 2 * (ones @ ones.T - identity)
    laplacian = (adjacency @ (ones @ ones.T)) * identity - adjacency
    return torch.trace(rows.T @ (laplacian @ rows))


def _energy(rows: Tensor, logits: Tensor) -> Tensor:
    weights = torch.softmax(-logits, dim=1)
    adjacency = (weights + weights.T) / 2
    adjacency = adjacency - torch.diag(torch.diag(adjacency))
    laplacian = torch.diag(adjacency.sum(dim=1)) - adjacency
    return torch.trace(rows.T @ laplacian @ rows)


def _uniform(size: int, generator: torch.Generator) -> Tensor:
    bound = size**-0.5
    return torch.empty(size, size).uniform_(-bound, bound, generator=generator)
