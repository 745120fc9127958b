"""The objective of AIR at factor width as one would write it first: autograd and index operations, no tricks.

An independent statement of what the engine computes, and the yardstick for the time of a step on ratings.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn

from air_recsys.nn.objective import Penalties


class Entries(NamedTuple):
    """Observed entries of an m x n matrix."""

    rows: Tensor  # (nnz,) of int64
    columns: Tensor  # (nnz,) of int64
    values: Tensor  # (nnz,)


class PlainFactors(nn.Module):
    """X = W0 W1 ... W(L-1) with biases and two row-softmin Laplacians over given neighbours, as one writes it first.

    Parameters
    ----------
    neighbors : tuple of Tensor of int64, shape (m, k) and (n, k)
        Of the rows and of the columns; the self-edge comes on top.
    strengths : tuple of float
        eta of the two energies.
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

    def forward(self, entries: Entries) -> Tensor:
        """The objective."""
        *first, last = self.layers
        left, right = functools.reduce(torch.matmul, first), last.T  # (m, r), (n, r)
        scores = (left[entries.rows] * right[entries.columns]).sum(dim=1)
        scores = scores + self.biases[0][entries.rows] + self.biases[1][entries.columns]
        decayed = self.penalties.weight_decay * sum(layer.square().sum() for layer in self.layers)
        decayed = decayed + self.penalties.bias_decay * sum(bias.square().sum() for bias in self.biases)
        fit = ((scores - entries.values).square().sum() + decayed) / (len(left) * len(right))
        row_energy = _energy(left, right.T @ right, self.neighbors[0], self.logits[0])
        column_energy = _energy(right, left.T @ left, self.neighbors[1], self.logits[1])
        return fit + self.strengths[0] * row_energy + self.strengths[1] * column_energy


def _energy(points: Tensor, gram: Tensor, neighbors: Tensor, logits: Tensor) -> Tensor:
    """1/2 sum_ij P_ij |x_i - x_j|^2, where |x|^2 = u G u; the self-edge, first, adds nothing."""
    weights = torch.softmax(-logits, dim=1)[:, 1:]  # (m, k)
    differences = points[:, None, :] - points[neighbors]  # (m, k, r)
    distances = ((differences @ gram) * differences).sum(dim=2)  # (m, k)
    return (weights * distances).sum() / 2
