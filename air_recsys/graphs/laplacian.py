r"""Squared distances, the graph Laplacian and the Dirichlet energy, on dense torch matrices.

Rows live in a space with a metric: for X = U V^T the distance of two rows of X is

.. math:: D_{ij} = \|x_i - x_j\|^2 = (u_i - u_j)^\top G\, (u_i - u_j), \qquad G = V^\top V,

so U and U G are all that is needed and no m x n matrix is formed. At full width both are X itself. In all
functions `points` is U (or X) and `weighted` is U G (or X), shape (m, d).
"""

from __future__ import annotations

import torch
from torch import Tensor


def squared_norms(points: Tensor, weighted: Tensor) -> Tensor:
    """Return |x_i|^2 of every row, shape (m,)."""
    return torch.linalg.vecdot(points, weighted)


def squared_distances(points: Tensor, weighted: Tensor) -> Tensor:
    """Return D_ij = |x_i - x_j|^2, shape (m, m): never negative, exactly zero on the diagonal.

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
    """Return L = diag(A 1) - A, shape (m, m).

    Examples
    --------
    >>> laplacian(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
    tensor([[ 2., -2.],
            [-2.,  2.]])
    """
    return torch.diag(adjacency.sum(dim=1)) - adjacency


def laplacian_product(adjacency: Tensor, points: Tensor) -> Tensor:
    """Return L X = diag(A 1) X - A X without forming L, shape (m, d)."""
    degree = adjacency.sum(dim=1, keepdim=True)  # (m, 1)
    return (degree * points).addmm_(adjacency, points, alpha=-1)


def dirichlet_energy(adjacency: Tensor, points: Tensor) -> Tensor:
    """Return E(X; A) = tr(X^T L X) = 1/2 sum_ij A_ij |x_i - x_j|^2 for a symmetric adjacency.

    Examples
    --------
    >>> a = torch.tensor([[0.0, 2.0], [2.0, 0.0]])
    >>> float(dirichlet_energy(a, torch.tensor([[0.0], [3.0]])))
    18.0
    """
    return torch.sum(points * laplacian_product(adjacency, points))
