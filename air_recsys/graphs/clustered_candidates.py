"""Search for near rows in the clusters around each row, for sizes at which comparing all pairs takes too long."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from air_recsys.graphs.candidates import least
from air_recsys.graphs.laplacian import squared_norms

_CLUSTER = 256  # mean number of rows in a cluster
_BLOCK_ENTRIES = 2_000_000


def near_rows(points: Tensor, weighted: Tensor, k: int, n_probes: int = 16) -> Tensor:
    """Return k rows near every row, with the parameters and the form of `air_recsys.graphs.candidates.nearest_rows`.

    The rows are cut into about m / 256 clusters, and every row is compared with the members of the `n_probes` clusters
    whose centres are nearest to its own cluster's: about 256 n_probes m distances in place of m^2. The lists are those
    of `nearest_rows` as far as a row's neighbours lie in those clusters.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [5.0], [5.5]])
    >>> near_rows(x, x, 1).T
    tensor([[1, 0, 3, 2]])
    """
    norms = squared_norms(points, weighted)  # (m,)
    members, around = _clusters(points, weighted, norms, k, n_probes)
    neighbors = torch.empty(points.shape[0], k, dtype=torch.int64, device=points.device)
    for own, others in zip(members, around, strict=True):
        compared = torch.cat([own, *(members[other] for other in others)])
        block = max(1, _BLOCK_ENTRIES // compared.numel())
        for start in range(0, own.numel(), block):
            rows = own[start : start + block]
            distances = torch.addmm(norms[compared], points[rows], weighted[compared].T, alpha=-2)  # (b, compared)
            distances.diagonal(start).fill_(torch.inf)  # the row itself
            neighbors[rows] = compared[least(distances, k)[1]]
    return neighbors.sort(dim=1).values


def _clusters(
    points: Tensor, weighted: Tensor, norms: Tensor, k: int, n_probes: int
) -> tuple[list[Tensor], list[list[int]]]:
    """Return the rows of every cluster that has any, and for each the other clusters to search."""
    m = points.shape[0]
    n_clusters = max(1, m // _CLUSTER)
    pivots = torch.arange(n_clusters, device=points.device) * m // n_clusters  # any rows serve; these need no draw
    home = _nearest_centre(points, weighted[pivots], norms[pivots])
    # One step of Lloyd's: G is linear, so the mean of U G is the mean of U, times G.
    centres, weighted_centres, counts = _means(points, weighted, home, n_clusters)
    home = _nearest_centre(points, weighted_centres, squared_norms(centres, weighted_centres))
    home = _pieces(home, norms)
    centres, weighted_centres, counts = _means(points, weighted, home, int(home.max()) + 1)
    members = list(home.argsort(stable=True).split(counts.tolist()))
    filled = counts.nonzero().flatten()
    distances = torch.addmm(
        squared_norms(centres, weighted_centres)[filled], centres[filled], weighted_centres[filled].T, alpha=-2
    )
    order = distances.fill_diagonal_(-torch.inf).argsort(dim=1)[:, 1:]  # (c, c - 1), nearest first
    sizes = counts[filled][order]
    needed = counts[filled][:, None] + sizes.cumsum(dim=1) - sizes <= k  # the rows up to there are too few
    probes = needed.sum(dim=1).clamp(min=n_probes - 1).tolist()
    around = [row[:probe] for row, probe in zip(order.tolist(), probes, strict=True)]
    return [members[cluster] for cluster in filled.tolist()], around


def _pieces(home: Tensor, norms: Tensor) -> Tensor:
    """Cut large clusters, by the length of their rows, into pieces of at most twice the usual size."""
    order = norms.argsort(stable=True)
    order = order[home[order].argsort(stable=True)]  # by cluster, then by length
    counts = torch.bincount(home)
    starts = counts.cumsum(0) - counts
    place = torch.empty_like(home)
    place[order] = torch.arange(home.numel(), device=home.device)
    n_pieces = counts.div(2 * _CLUSTER, rounding_mode="floor") + 1  # per cluster
    within = (place - starts[home]) * n_pieces[home] // counts[home]
    return (n_pieces.cumsum(0) - n_pieces)[home] + within


def _nearest_centre(points: Tensor, weighted_centres: Tensor, norms: Tensor) -> Tensor:
    block = max(1, _BLOCK_ENTRIES // norms.numel())
    nearest = [torch.addmm(norms, rows, weighted_centres.T, alpha=-2).argmin(dim=1) for rows in points.split(block)]
    return torch.cat(nearest)  # (m,)


def _means(points: Tensor, weighted: Tensor, home: Tensor, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    counts = torch.bincount(home, minlength=n_clusters)
    sizes, starts = counts.clamp(min=1)[:, None], counts.cumsum(0) - counts
    # Row after row of a cluster: `index_add_` has no fixed order on a GPU, and a seed would not fix the graph.
    order = home.argsort(stable=True)
    both = [functional.embedding_bag(order, rows, starts, mode="sum") / sizes for rows in (points, weighted)]
    return both[0], both[1], counts
