r"""Factors of columns, trained by a softmax over all columns in which the columns of a row should have large shares.

Column j has a source :math:`p_j` and a target :math:`q_j`. The vector of a row follows from its columns N(i),

.. math:: u_i = \sum_{j \in N(i)} w_j p_j \Big/ |\cdot|, \qquad s_{ij} = \cos(u_i, q_j) / \tau

with w_j times the value of the entry where entries have values, and the loss of a batch is the mean over its entries
(i, j), weighted by the same values, of

.. math:: -s_{ij} + \kappa \log \sum_l e^{s_{il}}

over all columns l, or over a sample that stands for them, each exponential over the chance that its column is drawn.
A row has no parameters, so that new rows need no training. Where columns have a graph, with the normalised weights
:math:`A = D^{-1/2} W D^{-1/2}`, q is the sum of own targets and those of neighbours, :math:`q = (I + \beta A) \bar q`:
columns of few rows learn from those that are like them. For :math:`\kappa > 1` columns that a row does not have
weigh more than in a likelihood.

Sources: Wu et al., BSL: Understanding and Improving Softmax Loss for Recommendation, ICDE 2024 (the loss); Liang et
al., Variational Autoencoders for Collaborative Filtering, WWW 2018 (rows made of their columns); He et al., LightGCN,
SIGIR 2020 (factors spread over a graph).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from air_recsys.nn.devices import fast_products
from air_recsys.nn.pattern import SparsePattern

_CHUNK_ENTRIES = 5_000_000  # exponentials held at a time


class ColumnGraph(NamedTuple):
    r"""Symmetric weights :math:`\beta A` of edges between columns."""

    edges: SparsePattern  # (n, n)
    weights: Tensor  # (nnz,)

    def spread(self, vectors: Tensor) -> Tensor:
        r""":math:`(I + \beta A)` times the vectors of the columns, (n, r).

        Examples
        --------
        >>> edges = SparsePattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2)
        >>> ColumnGraph(edges, torch.tensor([0.5, 0.5])).spread(torch.eye(2))
        tensor([[1.0000, 0.5000],
                [0.5000, 1.0000]])
        """
        return vectors + self.edges.matmul(self.weights, vectors)


class ColumnFactors(NamedTuple):
    """The trained sources and targets, and beside them the weights w of the sources and the graph of the columns."""

    sources: Tensor  # (n, r)
    targets: Tensor  # own ones, (n, r)
    weights: Tensor  # (n,)
    graph: ColumnGraph | None = None

    def spread(self, vectors: Tensor) -> Tensor:
        """The vectors of columns, each with those of its neighbours, (n, r)."""
        return vectors if self.graph is None else self.graph.spread(vectors)

    def units(self) -> Tensor:
        """The targets, those of neighbours in them, of length 1, (n, r)."""
        return normalize(self.spread(self.targets), dim=1)

    def row_sums(self, rows: SparsePattern, values: Tensor) -> Tensor:
        """The sums that rows are made of, u before it is brought to length 1; (b, r)."""
        return rows.matmul(self.weights[rows.columns] * values, self.sources)


class ColumnSample(NamedTuple):
    """Columns, each once, and what each stands for: one over the chance that it is drawn."""

    columns: Tensor  # (s,)
    weights: Tensor  # (s,)


class Softmax(NamedTuple):
    """The loss of some rows, and its gradients."""

    loss: Tensor
    sources: Tensor  # (n, r)
    targets: Tensor  # (n, r)


def softmax(
    factors: ColumnFactors,
    rows: SparsePattern,
    temperature: float,
    power: float,
    sample: ColumnSample | None = None,
    values: Tensor | None = None,
) -> Softmax:
    r"""The loss of some rows and its gradients by the sources and the targets.

    Cosines lie between -1 and 1: no exponential is too large for float32 at a temperature of 0.02 or more.

    Parameters
    ----------
    factors : ColumnFactors
    rows : SparsePattern
        At least one column per row; without a row all is 0.
    temperature, power : float
        :math:`\tau` and :math:`\kappa`.
    sample : ColumnSample, optional
        Columns whose exponentials are added; None: all.
    values : Tensor, shape (nnz,), optional
        How much each entry counts, in the vector of its row and in the loss; None: 1 each.
    """
    counts = torch.ones_like(factors.weights[rows.columns]) if values is None else values
    sums, spread = factors.row_sums(rows, counts), factors.spread(factors.targets)
    units, targets = normalize(sums, dim=1), normalize(spread, dim=1)
    sizes = rows.matmul(counts, counts.new_ones(len(targets), 1))[:, 0]
    if sample is None:
        log_sums, of_units, of_targets = _log_sums(units, targets, sizes, temperature)
    else:
        of_targets = torch.zeros_like(targets)
        log_sums, of_units, of_targets[sample.columns] = _log_sums(
            units, targets[sample.columns], sizes, temperature, sample.weights
        )
    own = rows.matmul(counts, targets)  # (b, r)
    scale = 1 / max(1.0, float(counts.sum(dtype=torch.float64)))
    loss = scale * (power * log_sums - (units * own).sum() / temperature)
    of_units = scale * (power * of_units - own / temperature)
    of_targets = scale * (power * of_targets - rows.transpose_matmul(counts, units) / temperature)
    of_sums = _before_length_one(of_units, units, sums)
    of_sources = factors.weights[:, None] * rows.transpose_matmul(counts, of_sums)
    return Softmax(loss, of_sources, factors.spread(_before_length_one(of_targets, targets, spread)))


def _log_sums(
    units: Tensor, targets: Tensor, sizes: Tensor, temperature: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum over the rows of size times log sum_l w_l exp(u . q_l / t), and its gradients by u and q."""
    size = max(1, min(len(units), _CHUNK_ENTRIES // len(targets)))
    scratch = units.new_empty(size, len(targets))
    of_units, of_targets, total = torch.empty_like(units), torch.zeros_like(targets), units.new_zeros(())
    with fast_products(targets):
        for start in range(0, len(units), size):
            part = slice(start, start + size)
            block = units[part]
            powers = torch.mm(block, targets.T, out=scratch[: len(block)])  # (size, n)
            powers.div_(temperature).exp_()
            if weights is not None:
                powers.mul_(weights)
            sums = powers.sum(dim=1)
            shares = (sizes[part] / (temperature * sums))[:, None]
            of_units[part] = torch.mm(powers, targets) * shares
            of_targets += torch.mm(powers.T, block * shares)
            total += sizes[part] @ sums.log()
    return total, of_units, of_targets


def _before_length_one(gradient: Tensor, unit: Tensor, vector: Tensor) -> Tensor:
    """The gradient by vectors from that by the same vectors of length 1."""
    across = gradient - unit * (gradient * unit).sum(dim=1, keepdim=True)
    return across / vector.norm(dim=1, keepdim=True).clamp_min(1e-12)
