"""The objective of AIR at factor width as one would write it first: autograd and index operations, no tricks.

The counterpart of `benchmarks.plain_autograd` where no m x n matrix can be held: a yardstick for the time
of a step on ratings and, in the tests, an independent statement of what the engine computes.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn

from air_recsys.nn.objective import Penalties
from benchmarks.plain_autograd import plain_step


class Entries(NamedTuple):
    """Observed entries of an m x n matrix."""

    rows: Tensor  # (nnz,) of int64
    columns: Tensor  # (nnz,) of int64
    values: Tensor  # (nnz,)


class PlainFactors(nn.Module):
    """X = W0 W1 ... W(L-1) with biases and two row-softmin Laplacians over given neighbours.

    Parameters
    ----------
    neighbors : tuple of Tensor of int64, shape (m, k) and (n, k)
        Of the rows and of the columns; the self-edge comes on top.
    strengths : tuple of float
        eta of the two energies.
    penalties : Penalties
        Weight decay and bias decay.
    """

    def __init__(
        self,
        neighbors: tuple[Tensor, Tensor],
        width: int,
        depth: int,
        strengths: tuple[float, float],
        penalties: Penalties,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.neighbors, self.strengths, self.penalties = neighbors, strengths, penalties
        n_rows, n_columns = (len(each) for each in neighbors)
        sizes = [n_rows, *[width] * (depth - 1), n_columns]
        self.layers = nn.ParameterList(
            nn.Parameter(torch.empty(rows, columns).normal_(0.0, 0.1, generator=generator))
            for rows, columns in itertools.pairwise(sizes)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in (n_rows, n_columns))
        self.logits = nn.ParameterList(nn.Parameter(torch.zeros(len(each), each.shape[1] + 1)) for each in neighbors)

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return U (m, r) and V (n, r) with X = U V^T."""
        *left, right = self.layers
        return functools.reduce(torch.matmul, left), right.T

    def forward(self, entries: Entries) -> Tensor:
        """Return the objective."""
        left, right = self.factors()
        scores = (left[entries.rows] * right[entries.columns]).sum(dim=1)
        scores = scores + self.biases[0][entries.rows] + self.biases[1][entries.columns]
        decayed = self.penalties.weight_decay * sum(layer.square().sum() for layer in self.layers)
        decayed = decayed + self.penalties.bias_decay * sum(bias.square().sum() for bias in self.biases)
        fit = ((scores - entries.values).square().sum() + decayed) / (len(left) * len(right))
        row_energy = _energy(left, right.T @ right, self.neighbors[0], self.logits[0])
        column_energy = _energy(right, left.T @ left, self.neighbors[1], self.logits[1])
        return fit + self.strengths[0] * row_energy + self.strengths[1] * column_energy


def plain_factors_step(model: PlainFactors, optimizer: torch.optim.Optimizer, entries: Entries) -> Tensor:
    """Make one step and return the objective before it."""
    return plain_step(model, [optimizer], entries)


def _energy(points: Tensor, gram: Tensor, neighbors: Tensor, logits: Tensor) -> Tensor:
    """Return 1/2 sum_ij P_ij |x_i - x_j|^2, where |x|^2 = u G u; the self-edge, first, adds nothing."""
    weights = torch.softmax(-logits, dim=1)[:, 1:]  # (m, k)
    differences = points[:, None, :] - points[neighbors]  # (m, k, r)
    distances = ((differences @ gram) * differences).sum(dim=2)  # (m, k)
    return (weights * distances).sum() / 2
