r"""Factors of columns, trained so that the columns of a row have large shares of a softmax over all columns.

Column j has a source :math:`p_j` and a target :math:`q_j`. A row is what its columns N(i) make it,

.. math:: u_i = \sum_{j \in N(i)} w_j p_j \Big/ |\cdot|, \qquad s_{ij} = \cos(u_i, q_j) / \tau

and the loss of a batch is the mean over its entries (i, j) of

.. math:: -s_{ij} + \kappa \log \sum_l e^{s_{il}}

over all columns l, without sampling. A row has no parameters, so that new rows need no training. For
:math:`\kappa > 1` columns that a row does not have weigh more than a likelihood would let them.

Sources: Wu et al., BSL: Understanding and Improving Softmax Loss for Recommendation, ICDE 2024 (the loss); Liang et
al., Variational Autoencoders for Collaborative Filtering, WWW 2018 (rows made of their columns).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, normalize

_CHUNK_ENTRIES = 5_000_000  # exponentials held at a time


class Rows(NamedTuple):
    """Some rows by their columns, at least one each, row by row."""

    columns: Tensor  # (e,)
    starts: Tensor  # (b,): where each row begins

    @property
    def sizes(self) -> Tensor:
        """Numbers of columns, (b,)."""
        return torch.diff(self.starts, append=self.starts.new_tensor([self.columns.numel()]))


class ColumnFactors(NamedTuple):
    """What is trained, and the weights w of the sources, which are not."""

    sources: Tensor  # (n, r)
    targets: Tensor  # (n, r)
    weights: Tensor  # (n,)

    def row_factors(self, rows: Rows) -> Tensor:
        """Return u, of length 1 each, (b, r).

        Examples
        --------
        >>> factors = ColumnFactors(torch.eye(2), torch.eye(2), torch.tensor([3.0, 4.0]))
        >>> factors.row_factors(Rows(torch.tensor([0, 1, 1]), torch.tensor([0, 2])))
        tensor([[0.6000, 0.8000],
                [0.0000, 1.0000]])
        """
        weights = self.weights[rows.columns]
        sums = embedding_bag(rows.columns, self.sources, rows.starts, mode="sum", per_sample_weights=weights)
        return normalize(sums, dim=1)


def softmax_loss(factors: ColumnFactors, rows: Rows, temperature: float, power: float) -> Tensor:
    r"""Return the loss of some rows, differentiable by the sources and the targets.

    Parameters
    ----------
    factors : ColumnFactors
    rows : Rows
    temperature, power : float
        :math:`\tau` and :math:`\kappa`.

    Examples
    --------
    >>> factors = ColumnFactors(torch.eye(2), torch.eye(2), torch.ones(2))
    >>> softmax_loss(factors, Rows(torch.tensor([0]), torch.tensor([0])), 1.0, 1.0)  # log(1 + 1/e)
    tensor(0.3133)
    """
    row_factors, targets = factors.row_factors(rows), normalize(factors.targets, dim=1)
    own = embedding_bag(rows.columns, targets, rows.starts, mode="sum")  # (b, r)
    sizes = rows.sizes.to(targets.dtype)
    partition: Any = _LogPartition.apply(row_factors, targets, sizes, temperature)
    return (power * partition - (row_factors * own).sum() / temperature) / rows.columns.numel()


class _LogPartition(torch.autograd.Function):
    """The sum over the rows of weight log sum_l exp(u . q_l / t), and its gradients at once, by pieces of the rows.

    Cosines lie between -1 and 1: no exponential is too large for float32 at a temperature of 0.02 or more.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, columns: Tensor, weights: Tensor, temperature: float) -> Tensor:
        n_columns = len(columns)
        size = max(1, min(len(rows), _CHUNK_ENTRIES // n_columns))
        scratch = rows.new_empty(size, n_columns)
        row_gradient, column_gradient = torch.empty_like(rows), torch.zeros_like(columns)
        total = rows.new_zeros(())
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            block = rows[part]
            powers = scratch[: len(block)]
            torch.mm(block, columns.T, out=powers)
            powers.div_(temperature).exp_()
            sums = powers.sum(dim=1)
            shares = (weights[part] / (temperature * sums))[:, None]
            row_gradient[part] = torch.mm(powers, columns) * shares
            column_gradient.addmm_(powers.T, block * shares)
            total += weights[part] @ sums.log()
        ctx.save_for_backward(row_gradient, column_gradient)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor, None, None]:
        row_gradient, column_gradient = ctx.saved_tensors
        return gradients[0] * row_gradient, gradients[0] * column_gradient, None, None
