r"""Squared distances, the graph Laplacian, the Dirichlet energy, and the three adjacencies that AIR learns.

Rows live in a space with a metric: for X = U V^T the distance of two rows of X is

.. math:: D_{ij} = \|x_i - x_j\|^2 = (u_i - u_j)^\top G\, (u_i - u_j), \qquad G = V^\top V,

so U and U G are all that is needed and no m x n matrix is formed. At full width both are X itself. In all
functions `points` is U (or X) and `weighted` is U G (or X), shape (m, d).

An adjacency :math:`A(W)` is made of free logits :math:`W`, and gives the energy

.. math:: E(X; A) = \mathrm{tr}(X^\top L X) = \tfrac12 \sum_{ij} A_{ij} D_{ij}, \qquad L = \mathrm{diag}(A 1) - A,

whose gradient in :math:`X` is :math:`2 L X`. What differs is how logits become weights:

==============  ============================================================  ==================================
name            adjacency                                                     dE/dW
==============  ============================================================  ==================================
row_softmin     ``P = softmax`` of each row of ``-W``; ``A = (P + P^T) / 2``  ``-(P*D - P * rowsum(P*D)) / 2``
global_sum      ``A' = exp(W) / sum(exp(W))``; ``A = A' + A'^T``              ``A' * (D - sum(A'*D))``
global_product  ``A = exp(W + W^T) / sum(exp(W))``                            ``A*D - E * exp(W) / sum(exp(W))``
==============  ============================================================  ==================================

The softmin runs over all j, i itself included, and the diagonal of A is cleared after it: the regularizer can vanish
row by row because weight flows to the self-edge (D_ii = 0).

Source: Li, Sun, Wang, Wang, SIAM J. Imaging Sciences 15(4), 2022: equation 4 (global_product), Proposition 1 and
Theorem 2 (global_sum), and the program behind its tables (row_softmin).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from air_recsys.storage.lazy import Tensor, torch


def squared_norms(points: Tensor, weighted: Tensor) -> Tensor:
    """|x_i|^2 of every row, shape (m,)."""
    return torch.linalg.vecdot(points, weighted)


def squared_distances(points: Tensor, weighted: Tensor) -> Tensor:
    """D_ij = |x_i - x_j|^2, shape (m, m): never negative, exactly zero on the diagonal.

    Examples
    --------
    >>> x = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> squared_distances(x, x)
    tensor([[ 0., 25.],
            [25.,  0.]])
    """
    products = points @ weighted.T  # (m, m)
    norms = products.diagonal()  # from the same products, so that D_ii is exactly zero
    return (norms[:, None] + norms).sub_(products, alpha=2).clamp_(min=0)


def laplacian(adjacency: Tensor) -> Tensor:
    """L = diag(A 1) - A, shape (m, m).

    Examples
    --------
    >>> laplacian(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([[ 2., -2.],
            [-2.,  2.]])
    """
    return torch.diag(adjacency.sum(dim=1)) - adjacency


def laplacian_product(adjacency: Tensor, points: Tensor) -> Tensor:
    """L X = diag(A 1) X - A X without forming L, shape (m, d)."""
    degree = adjacency.sum(dim=1, keepdim=True)  # (m, 1)
    return (degree * points).addmm_(adjacency, points, alpha=-1)


def dirichlet_energy(adjacency: Tensor, points: Tensor) -> Tensor:
    """E(X; A) = tr(X^T L X) = 1/2 sum_ij A_ij |x_i - x_j|^2 for a symmetric adjacency.

    Examples
    --------
    >>> a = torch.tensor([[0.0, 2.0], [2.0, 0.0]])
    >>> float(dirichlet_energy(a, torch.tensor([[0.0], [3.0]])))
    18.0
    """
    return torch.sum(points * laplacian_product(adjacency, points))


class GraphTerm(NamedTuple):
    """A graph seen from one set of distances."""

    energy: Tensor  # () Dirichlet energy
    adjacency: Tensor  # (m, m) symmetric, zero diagonal
    gradient: Tensor  # (m, m) dE/dW


def softmin_rows(logits: Tensor, distances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The row softmin P of `logits`, each row's share of the energy, and dE/dW.

    Parameters
    ----------
    logits, distances : Tensor, shape (m, k)
        Of the edges of each row, the self-edge (distance 0) among them.

    Returns
    -------
    weights : Tensor, shape (m, k)
        P, rows summing to 1.
    row_energy : Tensor, shape (m, 1)
        rowsum(P*D); the energy is half its sum.
    gradient : Tensor, shape (m, k)
        -1/2 (P*D - P * rowsum(P*D)).
    """
    weights = torch.softmax(-logits, dim=1)  # (m, k)
    weighted = weights * distances  # (m, k)
    row_energy = weighted.sum(dim=1, keepdim=True)  # (m, 1)
    gradient = weighted.addcmul_(weights, row_energy, value=-1).mul_(-0.5)
    return weights, row_energy, gradient


def row_softmin(logits: Tensor, distances: Tensor) -> GraphTerm:
    """The graph of P = softmax over each row of -W: A = (P + P^T)/2 with a zero diagonal."""
    weights, row_energy, gradient = softmin_rows(logits, distances)
    adjacency = torch.lerp(weights, weights.T, 0.5).fill_diagonal_(0)
    return GraphTerm(row_energy.sum() / 2, adjacency, gradient)


def global_sum(logits: Tensor, distances: Tensor) -> GraphTerm:
    """The graph of A' = exp(W) / sum(exp(W)): A = A' + A'^T with a zero diagonal."""
    weights = _softmax_of_all(logits)  # A', (m, m)
    gradient = weights * distances
    energy = gradient.sum()
    gradient.addcmul_(weights, energy, value=-1)
    return GraphTerm(energy, weights.add(weights.T).fill_diagonal_(0), gradient)


def global_product(logits: Tensor, distances: Tensor) -> GraphTerm:
    """The graph of A = exp(W + W^T) / sum(exp(W)) with a zero diagonal."""
    weights = _softmax_of_all(logits)  # exp(W) / sum(exp(W)), (m, m)
    # One exponential of the difference: exp(W + W^T) may overflow where A does not. The diagonal is cleared before,
    # as infinity times D_ii = 0 is NaN.
    exponents = (logits + logits.T).sub_(torch.logsumexp(logits.flatten(), dim=0)).fill_diagonal_(-torch.inf)
    adjacency = exponents.exp_()
    gradient = adjacency * distances
    energy = gradient.sum() / 2
    gradient.addcmul_(weights, energy, value=-1)
    return GraphTerm(energy, adjacency, gradient)


def _softmax_of_all(logits: Tensor) -> Tensor:
    return torch.softmax(logits.flatten(), dim=0).view_as(logits)


ADJACENCIES: dict[str, Callable[[Tensor, Tensor], GraphTerm]] = {
    "row_softmin": row_softmin,
    "global_sum": global_sum,
    "global_product": global_product,
}
