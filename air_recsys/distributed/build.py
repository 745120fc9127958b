"""The share of a rank in the objective of all ratings and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.distributed.group import Cut, Group
from air_recsys.distributed.laplacian import ShardedLaplacian, normal_rows
from air_recsys.distributed.objective import ShardedFactorization, ShardedObjective
from air_recsys.nn.build import Settings, observations
from air_recsys.nn.objective import Graph
from air_recsys.storage.lazy import Tensor, torch


class Ratings(NamedTuple):
    """All ratings, and the transform from them to the values that are trained on."""

    values: sp.csr_array  # (m, n), indices sorted
    weights: sp.csr_array | None  # at the same positions
    transform: Callable[[np.ndarray], np.ndarray]
    dtype: torch.dtype

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        assert self.values.shape is not None  # SciPy types it as optional
        return self.values.shape


def build_sharded(group: Group, ratings: Ratings, settings: Settings, rng: np.random.Generator) -> ShardedObjective:
    """The own share of the objective that `air_recsys.nn.build.build_objective` makes of all ratings."""
    rng = group.of_first(rng)  # the same draws on all ranks, also where each came with draws of its own
    (m, n), dtype, width = ratings.shape, ratings.dtype, settings.width
    assert width is not None
    n_batches = min(settings.n_batches, m, n, ratings.values.nnz)
    n_neighbors = settings.n_neighbors if settings.n_neighbors is not None and any(settings.strengths) else 0
    cuts = cuts_of(ratings, n_neighbors, group.size)
    generator = torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))

    def factor(n_rows: int, rows: slice) -> Tensor:
        mean, std = settings.init
        drawn = normal_rows(n_rows, width, rows, mean=mean, std=std, generator=generator, dtype=dtype)
        return drawn.to(group.device)

    def graph(cut: Cut, strength: float) -> Graph | None:
        if strength == 0 or cut.n_rows < 2:
            return None
        k = min(n_neighbors, cut.n_rows - 1)
        shard = ShardedLaplacian(group, cut, k, generator=generator, dtype=dtype, n_parts=n_batches)
        return Graph(shard, strength)

    first = factor(m, cuts[0].of(group.rank))
    between = [factor(width, slice(0, width)) for _ in range(settings.depth - 2)]
    last = factor(n, cuts[1].of(group.rank))
    row_graph, column_graph = (graph(*pair) for pair in zip(cuts, settings.strengths, strict=True))
    return ShardedObjective(
        group,
        cuts,
        [
            observations(batch, ratings.transform, dtype, group.device, weights)
            for batch, weights in own_batches(ratings, cuts[0].of(group.rank), n_batches, rng)
        ],
        ShardedFactorization(group, [first, *between, last]),
        row_graph,
        column_graph,
        (first.new_zeros(len(first)), first.new_zeros(len(last))) if settings.biases else None,
        settings.penalties,
    )


def cuts_of(ratings: Ratings, n_neighbors: int, n_ranks: int) -> tuple[Cut, Cut]:
    """The cut of the rows, balanced by ratings and edges, and that of the columns, as even as possible."""
    edges = n_neighbors + 1  # a row without ratings has a cost as well
    return Cut.balanced(np.diff(ratings.values.indptr) + edges, n_ranks), Cut.even(ratings.shape[1], n_ranks)


def own_batches(
    ratings: Ratings, own: slice, n_batches: int, rng: np.random.Generator
) -> Iterator[tuple[sp.csr_array, sp.csr_array | None]]:
    """The own rows (n_own, n), and their weights, of each batch of `air_recsys.nn.build.random_batches`."""
    starts = ratings.values.indptr[own.start : own.stop + 1]
    positions = np.arange(starts[0], starts[-1])
    rows = np.repeat(np.arange(starts.size - 1), np.diff(starts))
    # A single batch needs no draw, as in one process.
    batch = rng.permutation(ratings.values.nnz)[positions] % n_batches if n_batches > 1 else np.zeros_like(positions)
    shape = (starts.size - 1, ratings.shape[1])
    for number in range(n_batches):
        chosen, counts = positions[batch == number], np.bincount(rows[batch == number], minlength=starts.size - 1)
        columns, ends = ratings.values.indices[chosen], np.concatenate([[0], counts.cumsum()])
        weights = None
        if ratings.weights is not None:
            weights = sp.csr_array((ratings.weights.data[chosen], columns, ends), shape=shape)
        yield sp.csr_array((ratings.values.data[chosen], columns, ends), shape=shape), weights
