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

import functools
from typing import NamedTuple

from air_recsys.nn.devices import fast_products
from air_recsys.nn.pattern import SparsePattern
from air_recsys.storage.lazy import Tensor, functional, torch
from air_recsys.storage.threads import in_workers, torch_threads

_CHUNK_ENTRIES = 10_000_000  # exponentials held at a time
_COLUMNS = 1024  # of a block, on a CPU


class ColumnGraph(NamedTuple):
    r"""Symmetric weights :math:`\beta A` of edges between columns."""

    edges: SparsePattern  # (n, n)
    weights: Tensor  # (nnz,)

    def spread(self, vectors: Tensor) -> Tensor:
        r""":math:`(I + \beta A)` times the vectors of the columns, (n, r)."""
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
        return functional.normalize(self.spread(self.targets), dim=1)

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
    weights = factors.weights[rows.columns]
    counts = torch.ones_like(weights) if values is None else values
    scale = 1 / max(1.0, float(counts.sum(dtype=torch.float64)))
    units, row_lengths = _of_length_one(factors.row_sums(rows, counts))
    targets, lengths = _of_length_one(factors.spread(factors.targets))
    sizes = scale * power * rows.matmul(counts, counts.new_ones(len(targets), 1))[:, 0]
    if sample is None:
        log_sums, of_units, of_targets = _log_sums(units, targets, sizes, temperature)
    else:
        of_targets = torch.zeros_like(targets)
        log_sums, of_units, of_targets[sample.columns] = _log_sums(
            units, targets[sample.columns], sizes, temperature, sample.weights
        )
    pulls = counts * (scale / temperature)
    own = rows.matmul(pulls, targets)  # (b, r)
    loss = log_sums - (units * own).sum(dim=1).sum()  # the sum of all at once would follow the threads
    of_sums = _before_length_one(of_units.sub_(own), units, row_lengths)
    of_targets = _before_length_one(of_targets.sub_(rows.transpose_matmul(pulls, units)), targets, lengths)
    return Softmax(loss, rows.transpose_matmul(counts * weights, of_sums), factors.spread(of_targets))


class _Columns(NamedTuple):
    """Some columns, which a thread has."""

    targets: Tensor  # (c, r)
    gradient: Tensor  # (c, r)
    weights: Tensor | None  # (c,)
    powers: Tensor  # (rows at a time, c)

    def exponentials(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The sums of the exponentials of rows over the temperature, (b,), and of these times the targets, (b, r)."""
        powers = torch.mm(rows, self.targets.T, out=self.powers[: len(rows)]).exp_()
        if self.weights is not None:
            powers.mul_(self.weights)
        return powers.sum(dim=1), torch.mm(powers, self.targets)

    def pull(self, rows: Tensor) -> None:
        """Add the exponentials of the last rows times these."""
        self.gradient.addmm_(self.powers[: len(rows)].T, rows)


def _log_sums(
    units: Tensor, targets: Tensor, sizes: Tensor, temperature: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The sum over the rows of size times log sum_l w_l exp(u . q_l / t), and its gradients by u and q.

    Blocks of columns go to threads. Their sums are added up in one order, so that threads change no bit.
    """
    size, on_cpu = max(1, min(len(units), _CHUNK_ENTRIES // len(targets))), targets.device.type == "cpu"
    of_units, of_targets, total = torch.empty_like(units), torch.zeros_like(targets), units.new_zeros(())
    width = _COLUMNS if on_cpu else len(targets)
    starts = range(0, len(targets), width)
    spans = [slice(start, start + width) for start in starts]
    blocks = [
        _Columns(
            own := targets[span],
            of_targets[span],
            None if weights is None else weights[span],
            own.new_empty(size, len(own)),
        )
        for span in spans
    ]
    with fast_products(targets), torch_threads(1 if on_cpu and len(blocks) == 1 else 0):
        for start in range(0, len(units), size):
            rows = units[start : start + size]
            scaled = rows / temperature
            found = in_workers(lambda block, rows=scaled: block.exponentials(rows), blocks)
            sums, products = (functools.reduce(torch.add, parts) for parts in zip(*found, strict=True))
            own = sizes[start : start + size]
            shares = (own / (temperature * sums))[:, None]
            torch.mul(products, shares, out=of_units[start : start + size])
            in_workers(lambda block, rows=rows * shares: block.pull(rows), blocks)
            total += own @ sums.log()
    return total, of_units, of_targets


def _of_length_one(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors divided by their lengths, and these, (b, 1)."""
    lengths = vectors.norm(dim=1, keepdim=True).clamp_min(1e-12)
    return vectors / lengths, lengths


def _before_length_one(gradient: Tensor, units: Tensor, lengths: Tensor) -> Tensor:
    """The gradient by vectors from that by the same vectors of length 1, in its place."""
    along = (gradient * units).sum(dim=1, keepdim=True)
    return gradient.addcmul_(units, along, value=-1).div_(lengths)
