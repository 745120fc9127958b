r"""The graph of rows whose residuals agree: who is near by factors, shares columns, and errs alike there.

A model leaves residuals :math:`r_{iu}` at the observed pairs of rows i and columns u. Two rows belong together where
one's residual tells the other's:

.. math::
    A_{ij} = \exp\Big(-\frac{|q_i - q_j|^2}{h\,m}\Big)\, J_{ij}\,
             \Big(\beta + \Big[\frac{\sum_u r_{iu} r_{ju}}{(n_{ij} + n_0)\,\overline{r^2}}\Big]_+\Big),

with factors q, m the median squared distance of two rows, J the Jaccard index of their columns, n_ij the number of
shared columns. Each row keeps its k largest among the nearest by factors. The last factor is the agreement; a blind
graph is without it. benchmarks/reports/graph-residuals.md says how the form was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs.candidates import near_rows, nearest_among, search_for
from air_recsys.graphs.laplacian import squared_norms
from air_recsys.metrics.checks import Csr
from air_recsys.storage.lazy import Tensor, functional, torch
from air_recsys.storage.threads import in_workers

N_EDGES, N_CANDIDATES = 20, 60
FEW_CANDIDATES = 30  # of many rows, whose graph is no better by more; see benchmarks/reports/graph-residuals.md
_WIDTH = 0.25  # h
_SHRUNK = 50.0  # n_0, shared columns that count against an agreement
_FLOOR = 0.1  # beta
_SAMPLED = 1500  # rows whose distances give the median
_BLOCK = 500_000  # entries of pairs gone through at a time, by each thread: more take longer
_GPU_BLOCK = 2_000_000
_NO_RESIDUAL = 1e-150  # in place of 0
_MIXED = 64  # passes over all pairs, so that long rows come to all who share them
Shared = Callable[[Callable[[slice], np.ndarray], int], np.ndarray]
"""Returns what a function finds of n rows, (n, ...), perhaps by several processes that have a range of them each."""


def _alone(work: Callable[[slice], np.ndarray], n: int) -> np.ndarray:
    return work(slice(0, n))


class Agreement(NamedTuple):
    """Two graphs of rows, symmetric with empty diagonals, (m, m) of float64."""

    graph: Csr
    blind: Csr  # without the agreement of residuals, so chosen without a look at them


def agreement_graphs(
    points: np.ndarray,
    residuals: Csr,
    n_edges: int = N_EDGES,
    n_candidates: int = N_CANDIDATES,
    shared: Shared = _alone,
    device: torch.device | str = "cpu",
) -> Agreement:
    """The graph of rows whose residuals agree, and the blind one.

    Parameters
    ----------
    points : ndarray, shape (m, r)
        Factors q of the rows.
    residuals : csr_array, shape (m, n)
        Stored entries are residuals, zeros included.
    n_edges : int
        Edges that each row chooses; rows without factors have none.
    n_candidates : int
        The nearest rows by factors, among which it chooses.
    shared : callable
        Where the work on rows and pairs is done.
    device : device
        Where pairs of rows are compared.

    Examples
    --------
    >>> points = np.array([[0.0], [0.1], [1.0]])
    >>> left = sp.csr_array(np.array([[1.0, -1.0], [1.0, -1.0], [1.0, 1.0]]))
    >>> graph = agreement_graphs(points, left, n_edges=1).graph
    >>> bool(graph[0, 1] > graph[1, 2])
    True
    """
    if len(points) < 2 or not points.shape[1]:
        return Agreement(sp.csr_array((len(points),) * 2), sp.csr_array((len(points),) * 2))
    n_candidates = max(n_candidates, n_edges)
    graphs = _strongest(points, residuals, slice(0, len(points)), len(points), n_edges, n_candidates, shared, device)
    return Agreement(*(sp.csr_array(edges.maximum(edges.T)) for edges in graphs))


def agreement_with_known(points: np.ndarray, residuals: Csr, n_known: int, n_edges: int = N_EDGES) -> sp.csr_array:
    """The edges of new rows, those after the first `n_known`, to the known ones, (m - n_known, n_known) of float64.

    Parameters
    ----------
    points, residuals, n_edges
        As in `agreement_graphs`.

    Examples
    --------
    >>> left = sp.csr_array(np.array([[1.0, -1.0], [1.0, 1.0], [1.0, -1.0]]))
    >>> agreement_with_known(np.array([[0.0], [1.0], [0.1]]), left, 2, n_edges=1).toarray().argmax(axis=1)
    array([0])
    """
    n_new = len(points) - n_known
    if not n_new or n_known < 2:
        return sp.csr_array((n_new, n_known))
    found = _strongest(points, residuals, slice(n_known, len(points)), n_known, n_edges, N_CANDIDATES)
    return sp.csr_array(found.graph[n_known:, :n_known])


def _strongest(
    points: np.ndarray,
    residuals: Csr,
    rows: slice,
    n_others: int,
    n_edges: int,
    n_candidates: int,
    shared: Shared = _alone,
    device: torch.device | str = "cpu",
) -> Agreement:
    """The strongest edges of some rows to the first `n_others`, each row for itself, (m, m)."""
    m, own, compared_on = len(points), np.arange(rows.start, rows.stop), torch.device(device)
    near = _nearest(points, rows, n_others, n_candidates, shared, compared_on)
    ends = np.repeat(own, near.shape[1])
    smaller, larger = np.minimum(ends, near.ravel()), np.maximum(ends, near.ravel())
    pairs, place = np.unique(smaller * np.int64(m) + larger, return_inverse=True)
    unit, residuals = _WIDTH * _median_distance(points[:n_others]), _in_their_unit(residuals)
    mixed = np.concatenate([np.arange(first, pairs.size, _MIXED) for first in range(_MIXED)])

    def weights_of(some: slice) -> np.ndarray:
        own = pairs[mixed[some]]
        return _weights(points, residuals, own // m, own % m, unit, compared_on)

    weights_of_pairs = np.empty((pairs.size, 2))
    weights_of_pairs[mixed] = shared(weights_of, pairs.size)
    blind, agreed = weights_of_pairs.T

    def chosen(of_pairs: np.ndarray) -> sp.csr_array:
        weights = of_pairs[place].reshape(near.shape)
        best = np.argsort(-weights, axis=1, kind="stable")[:, :n_edges]
        kept, values = np.take_along_axis(near, best, axis=1), np.take_along_axis(weights, best, axis=1)
        edges = sp.csr_array((values.ravel(), (np.repeat(own, best.shape[1]), kept.ravel())), shape=(m, m))
        edges.eliminate_zeros()
        return edges

    return Agreement(chosen(blind * agreed), chosen(blind))


def _nearest(
    points: np.ndarray, rows: slice, n_others: int, n_candidates: int, shared: Shared, device: torch.device
) -> np.ndarray:
    """The nearest of the first `n_others` of each of some rows, (b, k)."""
    centre, k = points[:n_others].mean(axis=0, dtype=np.float64), min(n_candidates, n_others - 1)
    of_rows, of_others = ((points[each] - centre).astype(np.float32) for each in (rows, slice(n_others)))
    own, others = (torch.as_tensor(each, device=device) for each in (of_rows, of_others))
    if n_others == len(points) and search_for(n_others) is near_rows:
        return near_rows(others, others, k).cpu().numpy()
    norms = squared_norms(others, others)

    def nearest(some: slice) -> np.ndarray:
        return nearest_among(own[some], others, norms, rows.start + some.start, k).cpu().numpy()

    return shared(nearest, len(own))


def _weights(
    points: np.ndarray, residuals: Csr, first: np.ndarray, second: np.ndarray, unit: float, device: torch.device
) -> np.ndarray:
    """A of pairs of rows but for the agreement, with squared distances in some unit, and the agreement, (p, 2)."""
    counts = np.diff(residuals.indptr).astype(np.float64)
    shared, agreed = _in_common(residuals, first, second, device)
    jaccard = shared / np.maximum(counts[first] + counts[second] - shared, 1.0)
    agreement = agreed / (shared + _SHRUNK)
    near = np.exp(-_distances(points, first, second) / unit) if unit else np.ones(first.size)
    return np.stack([near * jaccard, _FLOOR + agreement.clip(min=0)], axis=1)


def _distances(points: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The squared distances of pairs of rows, (p,)."""
    found, step = np.empty(first.size), max(1, _BLOCK // points.shape[1])

    def measure(start: int) -> None:
        pairs = slice(start, start + step)
        found[pairs] = np.square(points[first[pairs]].astype(np.float64) - points[second[pairs]]).sum(axis=1)

    in_workers(measure, range(0, first.size, step))
    return found


def _median_distance(points: np.ndarray) -> float:
    """The median squared distance of two rows, of some of them."""
    some = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    if len(points) > _SAMPLED:
        some = some[np.random.default_rng(0).choice(len(points), _SAMPLED, replace=False)]
    norms = np.square(some).sum(axis=1)
    products, distances = 2 * some @ some.T, norms[:, None] + norms
    distances -= products
    return float(np.median(distances.clip(min=0, out=distances), overwrite_input=True))


def _in_their_unit(residuals: Csr) -> Csr:
    """Residuals in the unit of their root mean square, none of them 0."""
    root = float(np.sqrt(np.square(residuals.data).mean())) if residuals.nnz else 0.0
    stored = residuals.data / (root or 1.0)
    stored[stored == 0] = _NO_RESIDUAL  # a product of 0 would not be stored, and not be counted
    return sp.csr_array((stored, residuals.indices, residuals.indptr), shape=residuals.shape)


def _in_common(
    residuals: Csr, first: np.ndarray, second: np.ndarray, device: torch.device
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of shared columns of pairs of rows, and the sums of the products of their residuals there, (p,)."""
    if device.type != "cpu" and residuals.has_sorted_indices:
        return _shared_there(residuals, torch.as_tensor(residuals.data, device=device), first, second)
    counts = np.diff(residuals.indptr).astype(np.int64)
    blocks = np.cumsum(counts[first] + counts[second]) // _BLOCK
    shared, agreed = np.zeros(first.size), np.zeros(first.size)

    def multiply(pairs: np.ndarray) -> None:
        products = residuals[first[pairs]].multiply(residuals[second[pairs]])  # (b, n)
        shared[pairs], agreed[pairs] = np.diff(products.indptr), products.sum(axis=1)

    in_workers(multiply, np.split(np.arange(first.size), np.flatnonzero(np.diff(blocks)) + 1))
    return shared, agreed


def _shared_there(
    pattern: Csr, values: Tensor, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same on the device of the values: the entries of a pair's shorter row are looked for in its longer one."""
    counts, device = np.diff(pattern.indptr).astype(np.int64), values.device
    is_longer = counts[first] > counts[second]
    short, long = np.where(is_longer, second, first), np.where(is_longer, first, second)
    ends = np.cumsum(counts[short])
    starts, columns = (
        torch.as_tensor(part.astype(np.int64), device=device) for part in (pattern.indptr, pattern.indices)
    )
    rows = torch.arange(len(counts), device=device).repeat_interleave(starts.diff(), output_size=len(columns))
    keys = rows * pattern.shape[1] + columns  # ascending
    found = []
    for pairs in np.split(np.arange(first.size), np.flatnonzero(np.diff(ends // _GPU_BLOCK)) + 1):
        own, other, lengths = (torch.as_tensor(part[pairs], device=device) for part in (short, long, counts[short]))
        total = int(counts[short[pairs]].sum())
        pair = torch.arange(len(pairs), device=device).repeat_interleave(lengths, output_size=total)
        offsets = functional.pad(lengths.cumsum(0), (1, 0))
        place = torch.arange(total, device=device) + (starts[own] - offsets[:-1])[pair]
        wanted = (other * pattern.shape[1])[pair] + columns[place]
        there = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        shared = (keys[there] == wanted).to(values.dtype)
        both = torch.stack([shared, shared * values[place] * values[there]], dim=1)
        found.append(torch.segment_reduce(both, "sum", offsets=offsets, initial=0.0))
    shared, agreed = torch.cat(found).T.cpu().numpy()
    return shared, agreed
