"""Exact search for the nearest rows, in blocks, so that no m x m matrix is ever held."""

from __future__ import annotations

import torch
from torch import Tensor

from air_recsys.graphs.laplacian import squared_norms

_BLOCK_ENTRIES = 4_000_000


def nearest_rows(points: Tensor, weighted: Tensor, k: int) -> Tensor:
    """Return the k nearest other rows of every row, each row's list in ascending index order.

    Parameters
    ----------
    points, weighted : Tensor, shape (m, d)
        U and U G (see `air_recsys.graphs.laplacian`).
    k : int
        Neighbours per row, 1 <= k <= m - 1.

    Returns
    -------
    Tensor of int64, shape (m, k)

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [5.0], [5.5]])
    >>> nearest_rows(x, x, 1).T
    tensor([[1, 0, 3, 2]])
    """
    m = points.shape[0]
    norms = squared_norms(points, weighted)  # (m,)
    neighbors = torch.empty(m, k, dtype=torch.int64, device=points.device)
    block = max(1, _BLOCK_ENTRIES // m)
    for start in range(0, m, block):
        rows = slice(start, min(start + block, m))
        # |x_i|^2 is the same along a row, so it cannot change who is nearest.
        distances = torch.addmm(norms, points[rows], weighted.T, alpha=-2)  # (block, m)
        distances[:, rows].fill_diagonal_(torch.inf)
        neighbors[rows] = distances.topk(k, dim=1, largest=False, sorted=False).indices
    return neighbors.sort(dim=1).values
