"""Search for the nearest rows, so that no m x m matrix is held: exact and tile by tile, or in clusters.

Choosing the k least of m distances costs more than computing them where rows are short. So a tile of distances is cut
into groups, one pass takes the least of every group, and only the k groups whose least is smallest are searched: each
of the k nearest is the least of its group, or has its group's least before it, so it is in one of them.

`points` is U and `weighted` is U G, shape (m, d), see `air_recsys.graphs.laplacian`; 1 <= k <= m - 1.

Where comparing all pairs takes too long, `near_rows` compares each row with those of the clusters around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from air_recsys.graphs.laplacian import squared_norms
from air_recsys.storage.lazy import Tensor, functional, torch
from air_recsys.storage.threads import in_workers

Search = Callable[[Tensor, Tensor, int], Tensor]
"""Returns the k nearest other rows of every row, as `nearest_rows` does."""
_BLOCK_ENTRIES = 1_300_000  # 5 MB: a tile of distances stays in the cache between its passes
_GPU_ENTRIES = 4_000_000  # 16 MB, or 32: with what is chosen from a tile within the memory plan's share of the search
_GPU_ENTRIES_A_ROW = 64  # of many rows, whose neighbours take more
_TILE_COLUMNS = 20_000
_MIN_GROUP = 3  # smaller groups save nothing
COMPARED_BY_PAIRS = 20_000  # rows; beyond, comparing all pairs takes longer than a training
_CLUSTER = 256  # mean number of rows in a cluster
_COMPARED_ENTRIES = 2_000_000


def nearest_rows(points: Tensor, weighted: Tensor, k: int) -> Tensor:
    """The k nearest other rows of every row in ascending index order; int64, shape (m, k).

    Any of the rows at the same distance may be chosen, and every call chooses the same ones.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [5.0], [5.5]])
    >>> nearest_rows(x, x, 1).T
    tensor([[1, 0, 3, 2]])
    """
    return nearest_among(points, weighted, squared_norms(points, weighted), 0, k)


def nearest_among(own: Tensor, others: Tensor, norms: Tensor, first: int, k: int) -> Tensor:
    """The k nearest other rows of n of the rows in ascending index order; int64, shape (n, k).

    `own` (n, d) are the rows from number `first` on and `others` (m, d) all rows, one of both in U and the other in
    U G; `norms` (m,) are |x_i|^2.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [5.0], [5.5]])
    >>> nearest_among(x[1:3], x, x[:, 0] ** 2, 1, 1).T
    tensor([[0, 3]])
    """
    n, m = own.shape[0], others.shape[0]
    neighbors = torch.empty(n, k, dtype=torch.int64, device=own.device)
    n_tiles = math.ceil(m / max(_TILE_COLUMNS, 4 * k))
    width = math.ceil(m / n_tiles)
    block = min(n, max(1, (_GPU_ENTRIES if own.is_cuda else _BLOCK_ENTRIES) // width))

    def search(start: int) -> None:
        rows, tile = own[start : start + block], own.new_empty(block * width)
        nearest = [
            _nearest_in_tile(
                rows, others[left : left + width], norms[left : left + width], k, first + start - left, tile
            )
            for left in range(0, m, width)
        ]
        distances = torch.cat([values for values, _ in nearest], dim=1)
        columns = torch.cat([place + i * width for i, (_, place) in enumerate(nearest)], dim=1)
        neighbors[start : start + block] = columns.gather(1, _chosen(distances, k))

    in_workers(search, range(0, n, block), work=0 if own.is_cuda else n * m)
    return neighbors.sort(dim=1).values


def _nearest_in_tile(
    rows: Tensor, others: Tensor, norms: Tensor, k: int, own: int, tile: Tensor
) -> tuple[Tensor, Tensor]:
    """Distances, short of |x_i|^2, and columns of the rows that are nearest in one tile, (b, min(k, w)) each.

    `own` is the column of the first of `rows`, where it is in this tile. |x_i|^2 is the same along a row, so it cannot
    change who is nearest.
    """
    shape = rows.shape[0], others.shape[0]
    distances = tile[: shape[0] * shape[1]].view(shape)  # (b, w)
    torch.addmm(norms, rows, others.T, alpha=-2, out=distances)
    if -shape[0] < own < shape[1]:
        distances.diagonal(own).fill_(torch.inf)
    return least(distances, min(k, shape[1]))


def search_for(m: int) -> Search:
    """The search that m rows take: all pairs of few, the clusters around them of many."""
    return nearest_rows if m <= COMPARED_BY_PAIRS else near_rows


def least(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k least values of every row of (b, w) and their columns, (b, k) each, in no order.

    This is `torch.topk`, but faster; 1 <= k <= w, and columns are int64.

    Examples
    --------
    >>> least(torch.tensor([[3.0, 1.0, 2.0, 5.0]]), 1)
    (tensor([[1.]]), tensor([[1]]))
    """
    width = values.shape[1]
    size = math.isqrt(width // k)  # w / size minima and k size members: least together at this size
    if size < _MIN_GROUP:
        columns = _chosen(values, k)
        return values.gather(1, columns), columns
    n_groups = width // size  # group g has the columns g, g + n_groups, g + 2 n_groups, ...
    grouped = n_groups * size
    minima = values[:, :grouped].unflatten(1, (size, n_groups)).amin(dim=1)  # (b, n_groups)
    steps = torch.arange(0, grouped, n_groups, device=values.device)  # (size,)
    members = (_chosen(minima, k)[:, None, :] + steps[:, None]).flatten(1)  # (b, size * k)
    remainder = torch.arange(grouped, width, device=values.device).expand(values.shape[0], -1)
    members = torch.cat([members, remainder], dim=1)
    candidates = values.gather(1, members)
    positions = _chosen(candidates, k)
    return candidates.gather(1, positions), members.gather(1, positions)


def _chosen(values: Tensor, k: int) -> Tensor:
    """The columns of the k least values of every row, (b, k)."""
    if values.is_cuda:
        return values.topk(k, dim=1, largest=False, sorted=False).indices
    # NumPy's selection is vectorised: of short rows, as here, two to three times as fast as torch's.
    return torch.from_numpy(np.argpartition(values.numpy(), k - 1)[:, :k])


def near_rows(points: Tensor, weighted: Tensor, k: int, n_probes: int = 16) -> Tensor:
    """The k rows near every row, with the parameters and the form of `air_recsys.graphs.candidates.nearest_rows`.

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
    if points.is_cuda:
        return _near_in_batches(points, weighted, norms, k, members, around).sort(dim=1).values
    neighbors = torch.empty(points.shape[0], k, dtype=torch.int64, device=points.device)

    def search(cluster: int) -> None:
        own, others = members[cluster], around[cluster]
        compared = torch.cat([own, *(members[other] for other in others)])
        block = max(1, _COMPARED_ENTRIES // compared.numel())
        for start in range(0, own.numel(), block):
            rows = own[start : start + block]
            distances = torch.addmm(norms[compared], points[rows], weighted[compared].T, alpha=-2)  # (b, compared)
            distances.diagonal(start).fill_(torch.inf)  # the row itself
            neighbors[rows] = compared[least(distances, k)[1]]

    in_workers(search, range(len(members)), work=0 if points.is_cuda else points.numel() * _CLUSTER)
    return neighbors.sort(dim=1).values


def _near_in_batches(
    points: Tensor, weighted: Tensor, norms: Tensor, k: int, members: list[Tensor], around: list[list[int]]
) -> Tensor:
    """The near rows of every row, of many clusters at a time, which a GPU finds by few operators."""
    m, device = len(points), points.device
    sizes = [len(own) for own in members]
    owns = np.split(torch.cat(members).cpu().numpy(), np.cumsum(sizes)[:-1])
    reached = [sum(sizes[other] for other in (row, *others)) for row, others in enumerate(around)]
    neighbors = torch.empty(m + 1, k, dtype=torch.int64, device=device)  # the last row is that of padding
    for batch in _alike(sizes, reached, max(_GPU_ENTRIES, _GPU_ENTRIES_A_ROW * m)):
        compared = [np.concatenate([owns[other] for other in (row, *around[row])]) for row in batch]
        own, others = (_padded(rows, m).to(device) for rows in ([owns[row] for row in batch], compared))
        offsets = functional.pad(norms, (0, 1), value=torch.inf)[others]  # (c, compared)
        distances = torch.baddbmm(
            offsets[:, None], points[own.clamp(max=m - 1)], weighted[others.clamp(max=m - 1)].mT, alpha=-2
        )  # (c, own, compared)
        distances.diagonal(dim1=1, dim2=2).fill_(torch.inf)  # the row itself
        columns = least(distances.flatten(0, 1), k)[1].view(len(batch), -1)
        neighbors[own.flatten()] = others.gather(1, columns).view(-1, k)
    return neighbors[:m]


def _alike(sizes: list[int], reached: list[int], most: int) -> list[list[int]]:
    """The clusters in batches of about the same sizes, each of at most so many distances, or of one cluster."""
    batches: list[list[int]] = []
    widest = tallest = 0
    for row in sorted(range(len(sizes)), key=lambda row: reached[row]):
        widest, tallest = reached[row], max(tallest, sizes[row])
        if not batches or widest * tallest * (len(batches[-1]) + 1) > most:
            batches.append([])
            tallest = sizes[row]
        batches[-1].append(row)
    return batches


def _padded(rows: list[np.ndarray], padding: int) -> Tensor:
    """Index arrays as the rows of a table."""
    table = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for row, own in zip(table, rows, strict=True):
        row[: len(own)] = own
    return torch.from_numpy(table)


def _clusters(
    points: Tensor, weighted: Tensor, norms: Tensor, k: int, n_probes: int
) -> tuple[list[Tensor], list[list[int]]]:
    """The rows of every cluster that has any, and for each the other clusters to search."""
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
    block = max(1, _COMPARED_ENTRIES // norms.numel())

    def nearest(rows: Tensor) -> Tensor:
        return torch.addmm(norms, rows, weighted_centres.T, alpha=-2).argmin(dim=1)

    return torch.cat(in_workers(nearest, points.split(block), work=0 if points.is_cuda else math.inf))  # (m,)


def _means(points: Tensor, weighted: Tensor, home: Tensor, n_clusters: int) -> tuple[Tensor, Tensor, Tensor]:
    counts = torch.bincount(home, minlength=n_clusters)
    sizes, starts = counts.clamp(min=1)[:, None], counts.cumsum(0) - counts
    # Row after row of a cluster: `index_add_` has no fixed order on a GPU, and a seed would not fix the graph.
    order = home.argsort(stable=True)
    both = [functional.embedding_bag(order, rows, starts, mode="sum") / sizes for rows in (points, weighted)]
    return both[0], both[1], counts
