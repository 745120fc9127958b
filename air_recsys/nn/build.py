"""The objective of observed entries and settings, in one of its two forms by the width."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.nn.adaptive_laplacian import (
    AdaptiveLaplacian,
    DenseLaplacian,
    FixedLaplacian,
    JoinedLaplacian,
    SparseLaplacian,
)
from air_recsys.nn.factorization import DeepFactorization
from air_recsys.nn.objective import (
    FactorWidthObjective,
    FullWidthObjective,
    Graph,
    Objective,
    Observations,
    Penalties,
)
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.terms import Term, TotalVariation, Transform, TransformedEnergy
from air_recsys.storage.lazy import functional, torch


class TransformedGraph(NamedTuple):
    """A transformation of X, the strength of its energy, and the edges per row of its graph (None: all pairs)."""

    transform: Transform
    strength: float
    n_neighbors: int | None = None


Beside = tuple[sp.csr_array, float] | None
"""A graph beside a learned one, and the strength of its energy."""


@dataclass(frozen=True)
class Settings:
    """The settings of an objective, without its data."""

    width: int | None = None  # columns of the factors; None, or min(m, n), is full width
    depth: int = 3
    init: tuple[float, float] = (1e-3, 1e-3)  # mean and standard deviation of the factors' start
    strengths: tuple[float, float] = (1e-4, 1e-4)  # eta of the row graph and of the column graph; 0 leaves it out
    adjacency: str = "row_softmin"  # a key of `air_recsys.graphs.laplacian.ADJACENCIES`
    n_neighbors: int | None = None  # edges per row of sparse graphs; None for dense ones
    graph_every: int = 1  # steps between two steps of the logits of dense graphs
    biases: bool = False  # of each row and column
    penalties: Penalties = field(default_factory=Penalties)
    given: tuple[sp.csr_array | None, sp.csr_array | None] = (None, None)  # graphs in place of learned ones
    beside: tuple[Beside, Beside] = (None, None)
    transforms: tuple[TransformedGraph, ...] = ()
    tv_strength: float = 0.0  # tau of the total variation; 0 leaves it out
    # Random subsets of the observed entries, and ranges of rows of sparse graphs, that are used in turn; not more than
    # entries, rows or columns. Further terms need a single one.
    n_batches: int = 1


def observations(
    ratings: sp.csr_array,
    transform: Callable[[np.ndarray], np.ndarray],
    dtype: torch.dtype,
    device: torch.device,
    weights: sp.csr_array | None = None,
) -> Observations:
    """The stored entries of a CSR matrix as tensors, values transformed; `weights` at the same positions."""
    assert ratings.shape is not None  # SciPy types it as optional
    ratings.sort_indices()
    starts = torch.as_tensor(ratings.indptr.astype(np.int64), device=device)
    columns = torch.as_tensor(ratings.indices.astype(np.int64), device=device)
    values = torch.as_tensor(transform(ratings.data), dtype=dtype, device=device)
    confidence = None
    if weights is not None:
        weights.sort_indices()
        confidence = torch.as_tensor(weights.data, dtype=dtype, device=device)
    return Observations(SparsePattern(starts, columns, ratings.shape[1]), values, confidence)


def random_batches(observed: Observations, n_batches: int, rng: np.random.Generator) -> list[Observations]:
    """Cut observed entries at random into `n_batches` batches of equal size, up to one entry."""
    if n_batches == 1:
        return [observed]
    pattern, rows = observed.pattern, observed.pattern.rows
    batches = torch.as_tensor(rng.permutation(observed.values.numel()) % n_batches, device=rows.device)

    def batch(number: int) -> Observations:
        chosen = (batches == number).nonzero().flatten()
        counts = torch.bincount(rows.index_select(0, chosen), minlength=pattern.shape[0])
        starts = functional.pad(counts.cumsum(0), (1, 0))
        columns = pattern.columns.index_select(0, chosen)
        weights = None if observed.weights is None else observed.weights.index_select(0, chosen)
        return Observations(
            SparsePattern(starts, columns, pattern.shape[1]), observed.values.index_select(0, chosen), weights
        )

    return [batch(number) for number in range(n_batches)]


def build_objective(observed: Observations, settings: Settings, rng: np.random.Generator) -> Objective:
    """The objective of `settings` on observed entries, at a start drawn from `rng`."""
    m, n = observed.pattern.shape
    width = settings.width or min(m, n)
    n_batches = min(settings.n_batches, m, n, observed.values.numel())
    dtype, device = observed.values.dtype, observed.values.device
    generator = torch.Generator().manual_seed(int(rng.integers(2**63 - 1)))
    drawn: dict[str, Any] = {"generator": generator, "dtype": dtype, "device": device}
    mean, std = settings.init
    factorization = DeepFactorization(m, n, width, settings.depth, mean=mean, std=std, **drawn)

    def learned(size: int, n_neighbors: int | None) -> AdaptiveLaplacian:
        if size < 2:  # a graph without pairs
            return FixedLaplacian(sp.csr_array((size, size)), dtype=dtype, device=device)
        if n_neighbors is None:
            return DenseLaplacian(size, settings.adjacency, every=settings.graph_every, **drawn)
        return SparseLaplacian(size, min(n_neighbors, size - 1), n_parts=n_batches, **drawn)

    def graph(side: int) -> Graph | None:
        size, strength, given = observed.pattern.shape[side], settings.strengths[side], settings.given[side]
        beside = None if settings.beside[side] is None or size < 2 else settings.beside[side]
        if strength == 0 or size < 2:
            return beside and Graph(FixedLaplacian(beside[0], dtype=dtype, device=device), beside[1])
        if given is not None:
            return Graph(FixedLaplacian(given, dtype=dtype, device=device), strength)
        own = learned(size, settings.n_neighbors)
        if beside is None:
            return Graph(own, strength)
        fixed = FixedLaplacian(beside[0], dtype=dtype, device=device)
        return Graph(JoinedLaplacian(own, fixed, beside[1] / strength), strength)

    def further() -> Iterator[Term]:
        for transform, strength, n_neighbors in settings.transforms:
            n_points = len(transform(observed.values.new_zeros(m, n)))
            yield TransformedEnergy(transform, learned(n_points, n_neighbors), strength)
        if settings.tv_strength > 0:
            yield TotalVariation(settings.tv_strength)

    biases = (observed.values.new_zeros(m), observed.values.new_zeros(n)) if settings.biases else None
    form = FullWidthObjective if width >= min(m, n) and n_batches == 1 else FactorWidthObjective
    return form(
        random_batches(observed, n_batches, rng),
        factorization,
        graph(0),
        graph(1),
        biases,
        settings.penalties,
        list(further()),
    )
