"""The cost of training by `Adam`, or by sweeps, for a rank: the arithmetic of benchmarks/reports/speed.md."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from air_recsys.nn.build import Settings
from air_recsys.nn.memory import Sizes, posterior_plan
from air_recsys.nn.posterior.triangles import size_of

_NUMBER = 4  # bytes of a float32, and of an index where 32 bits are enough
_DOUBLE = 8  # bytes of a float64
_BESIDE = 2  # features beside the singular vectors: the degree and the constant
_NEIGHBOR = 8  # bytes of an index that is kept in 64 bits
_COPIES = 5  # value, gradient, Adam's two moments, and the state to go back to
_PATTERN = 3 * _NUMBER  # bytes a stored position: column, place and row in the transpose


@dataclass(frozen=True)
class RankCost:
    """The sizes of a training, which the costs of both kinds have in common.

    Exchanges are counted as `air_recsys.distributed.group.Group` does: a sum over P ranks receives 2 (P - 1) / P times
    its bytes. Rows are taken as evenly shared.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
    n_factors : int
        r.
    n_neighbors : int
        k of both graphs.
    n_ranks : int
        P.
    user_graph, item_graph : bool
        The graphs that the model has.
    """

    n_users: int
    n_items: int
    n_ratings: int
    n_factors: int
    n_neighbors: int
    n_ranks: int
    user_graph: bool = field(default=True, kw_only=True)
    item_graph: bool = field(default=True, kw_only=True)

    @property
    def _graph_rows(self) -> int:
        return self.n_users * self.user_graph + self.n_items * self.item_graph


@dataclass(frozen=True)
class Cost(RankCost):
    """The operations, memory and traffic of one rank in training by `Adam`, with biases and in single precision.

    Parameters
    ----------
    n_users, n_items, n_ratings, n_factors, n_neighbors, n_ranks, user_graph, item_graph
        As in `RankCost`.
    depth : int
    n_batches : int
        Steps an epoch.

    Examples
    --------
    >>> cost = Cost(1_000_000, 50_000, 100_000_000, n_factors=64, n_neighbors=20, n_ranks=8)
    >>> round((cost.bytes_held + cost.bytes_passing) / 1e9, 1), "GB"
    (1.9, 'GB')
    >>> round(cost.bytes_received_per_step / 1e6)  # U, V and the terms of their gradients
    489
    """

    depth: int = field(default=2, kw_only=True)
    n_batches: int = field(default=1, kw_only=True)

    @property
    def flops_per_step(self) -> float:
        """Floating-point operations: products on ratings and edges, products with (r, r) matrices, Adam."""
        r, batch = self.n_factors, self.n_batches * self.n_ranks
        sampled = 6 * (r + 2) * (self.n_ratings + self._graph_rows * self.n_neighbors) / batch
        square = 2 * r * r * (5 * self._graph_rows + (3 * self.depth - 5) * self.n_users) / self.n_ranks
        redundant = 2 * r * r * self.n_items  # V^T V of all columns, on every rank
        return sampled + square + redundant + 12 * self._trained / self.n_ranks

    @property
    def flops_per_refresh(self) -> float:
        """Operations of the exact search for neighbours, 2 m^2 r for m rows, shared out."""
        graphs = (self.user_graph, self.n_users), (self.item_graph, self.n_items)
        return sum(2.0 * size * size * self.n_factors for present, size in graphs if present) / self.n_ranks

    @property
    def bytes_held(self) -> float:
        """Memory for the whole training: ratings, and all trained tensors with gradient, moments and a copy."""
        edges = self._graph_rows * self.n_neighbors
        stored = self.n_ratings * (_NUMBER + _PATTERN) + edges * _PATTERN
        neighbors = 2 * _NEIGHBOR * self._graph_rows * (self.n_neighbors + 1)
        return (stored + neighbors + _COPIES * _NUMBER * self._trained) / self.n_ranks

    @property
    def bytes_passing(self) -> float:
        """Memory of a step at its peak: rows of all ranks, the terms of their gradients, and errors of ratings.

        The larger side counts: U of all ranks twice, the own terms of A U, and those received; beside them V of all
        ranks.
        """
        r = self.n_factors + 1
        sides = [4 * self.n_users] if self.user_graph else []
        sides += [4 * self.n_items if self.item_graph else 3 * self.n_items]
        rows = r * (max(sides) + self.n_items)
        entries = 5 * (self.n_ratings + self._graph_rows * self.n_neighbors) / (self.n_ranks * self.n_batches)
        return _NUMBER * (rows + entries)

    @property
    def bytes_received_per_step(self) -> float:
        """Bytes over the wire, into one rank."""
        return _NUMBER * self._exchanged[0] * (self.n_ranks - 1) / self.n_ranks

    @property
    def messages_per_step(self) -> int:
        """Exchanges that all ranks take part in."""
        return self._exchanged[1]

    @property
    def _trained(self) -> int:
        factors = (self.n_users + self.n_items) * (self.n_factors + 1)
        return factors + self._graph_rows * (self.n_neighbors + 1)

    @cached_property
    def _exchanged(self) -> tuple[float, int]:
        """Numbers and messages of a step, before the share (P - 1) / P."""
        r, n_graphs = self.n_factors, self.user_graph + self.item_graph
        # V, c and their gradients; U where it is needed; norms and L @ points of each graph.
        numbers = 2.0 * self.n_items * (r + 1) + self.n_users * self.user_graph * r + self._graph_rows * (r + 2)
        summed = 2 * r * r * (n_graphs > 0) + n_graphs * r * r + 3 + 1 + (self.depth - 2) * r * r
        messages = 4 + self.user_graph + 2 * n_graphs + (n_graphs > 0) + 2 + (self.depth > 2)
        return numbers + 2 * summed, messages


@dataclass(frozen=True)
class SweepCost(RankCost):
    """The operations, memory and traffic of one rank in sweeps of `Variational` or `Langevin`, in single precision.

    Parameters
    ----------
    n_users, n_items, n_ratings, n_factors, n_neighbors, n_ranks, user_graph, item_graph
        As in `RankCost`.
    n_features : int
        Singular vectors of the pattern, "auto" is 100.
    sample : bool
        Whether the sweeps draw (`Langevin`).
    own_parts : bool
        Whether each rank reads its own part, `air_recsys.distributed.ParquetRatings`, not all ratings.

    Examples
    --------
    >>> cost = SweepCost(162_541, 59_047, 25_000_095, n_factors=40, n_neighbors=20, n_ranks=8)
    >>> round(cost.bytes_needed / 1e9, 1), "GB"
    (6.9, 'GB')
    >>> round(cost.bytes_received_per_sweep / 1e6)  # means and covariances of users and items
    704
    """

    n_features: int = field(default=100, kw_only=True)
    sample: bool = field(default=False, kw_only=True)
    own_parts: bool = field(default=False, kw_only=True)

    @property
    def flops_per_sweep(self) -> float:
        """Floating-point operations of sums over ratings, of solving rows and of priors, shared out; of moments."""
        d, triangle, rows = self.n_factors + 1, size_of(self.n_factors + 1), self.n_users + self.n_items
        shared = 2 * self.n_ratings * (triangle + 2 * d) + rows * (
            d**3 + 8 * d * d + triangle + 6 * self._features * d
        )
        everywhere = rows * 2 * triangle
        return shared / self.n_ranks + everywhere

    @property
    def bytes_needed(self) -> int:
        """Memory at the peak: every rank holds the means and covariances of all rows, and all ratings or its part."""
        strengths = float(self.user_graph), float(self.item_graph)
        settings = Settings(
            width=self.n_factors, depth=2, strengths=strengths, n_neighbors=self.n_neighbors, biases=True
        )
        held = -(-self.n_ratings // self.n_ranks) if self.own_parts else self.n_ratings
        sizes = Sizes(self.n_users, self.n_items, held)
        return posterior_plan(sizes, settings, self.n_features, sample=self.sample).total

    @property
    def bytes_received_per_sweep(self) -> float:
        """Bytes over the wire, into one rank: means, errors, covariances or draws; priors and noise."""
        d, rows = self.n_factors + 1, self.n_users + self.n_items
        of_row = d + 1 + (d if self.sample else size_of(d))
        small = 2 * (self._features * d + d * d + self._features + 1 + rows)  # priors, noise
        small += 4 * (self._features * d + d * d * (1 if self.sample else 2) + 1)  # sums, which count twice
        return (_NUMBER * rows * of_row + _DOUBLE * small) * (self.n_ranks - 1) / self.n_ranks

    @property
    def messages_per_sweep(self) -> int:
        """Exchanges of tensors that all ranks take part in: six a half sweep."""
        return 0 if self.n_ranks == 1 else 12

    @property
    def _features(self) -> int:
        return self.n_features + _BESIDE


plan, plan_sweeps = Cost, SweepCost
"""The costs of both kinds of training, asked for by what they are for."""
