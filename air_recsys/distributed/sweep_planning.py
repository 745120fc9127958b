"""The cost of shared sweeps for a rank: the arithmetic, and the table, of docs/distributed.md."""

from __future__ import annotations

from dataclasses import dataclass

from air_recsys.distributed.planning import RankCost, as_table, size_cells
from air_recsys.nn.build import Settings
from air_recsys.nn.memory import Sizes
from air_recsys.nn.posterior.memory import posterior_plan
from air_recsys.nn.posterior.triangles import size_of

_SINGLE, _DOUBLE = 4, 8  # bytes of a number
_BESIDE = 2  # features beside the singular vectors: the degree and the constant


@dataclass(frozen=True)
class SweepCost(RankCost):
    """The operations, memory and traffic of one rank in sweeps over a posterior, in single precision.

    Exchanges are counted as `air_recsys.distributed.group.Group` does, on average over the ranks.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
    n_factors : int
        r.
    n_neighbors : int
        k of both graphs.
    n_ranks : int
        P.
    n_features : int
        Singular vectors of the pattern, "auto" is 100.
    sample : bool
        Whether the sweeps draw (`Langevin`).
    user_graph, item_graph : bool
    own_parts : bool
        Whether each rank reads its own part, `air_recsys.distributed.ParquetRatings`, not all ratings.
    """

    n_users: int
    n_items: int
    n_ratings: int
    n_factors: int
    n_neighbors: int
    n_ranks: int
    n_features: int = 100
    sample: bool = False
    user_graph: bool = True
    item_graph: bool = True
    own_parts: bool = False

    @property
    def flops_per_sweep(self) -> float:
        """Floating-point operations of sums over ratings and of solving rows, shared out; of priors and graphs."""
        d, triangle, rows = self.n_factors + 1, size_of(self.n_factors + 1), self.n_users + self.n_items
        shared = 2 * self.n_ratings * (triangle + 2 * d) + rows * (d**3 + 8 * d * d)
        edges = self._graph_rows * self.n_neighbors
        everywhere = rows * (3 * triangle + 6 * self._features * d) + 6 * edges * (self._features + d)
        return shared / self.n_ranks + everywhere

    @property
    def flops_per_refresh(self) -> float:
        """Operations of the exact search for neighbours, which up to 20,000 rows is shared out."""
        return self._search_flops(self.n_features + self.n_factors)

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
        small = 2 * (self._features * d + d * d + self._features + 1 + rows) + 2 * 2  # priors, noise; a sum
        return (_SINGLE * rows * of_row + _DOUBLE * small) * (self.n_ranks - 1) / self.n_ranks

    @property
    def messages_per_sweep(self) -> int:
        """Exchanges of tensors that all ranks take part in: five a half sweep."""
        return 0 if self.n_ranks == 1 else 10

    @property
    def _features(self) -> int:
        return self.n_features + _BESIDE


def plan_sweeps(
    n_users: int,
    n_items: int,
    n_ratings: int,
    n_factors: int,
    n_neighbors: int,
    n_ranks: int,
    *,
    n_features: int = 100,
    sample: bool = False,
    user_graph: bool = True,
    item_graph: bool = True,
    own_parts: bool = False,
) -> SweepCost:
    """Return the cost of `Variational`, or with `sample` of `Langevin`, for each rank; parameters as in `SweepCost`.

    Examples
    --------
    >>> cost = plan_sweeps(162_541, 59_047, 25_000_095, n_factors=40, n_neighbors=20, n_ranks=8)
    >>> round(cost.bytes_needed / 1e9, 1), "GB"
    (5.4, 'GB')
    >>> round(cost.bytes_received_per_sweep / 1e6)  # means and covariances of users and items
    704
    """
    sizes = n_users, n_items, n_ratings, n_factors, n_neighbors, n_ranks
    return SweepCost(*sizes, n_features, sample, user_graph, item_graph, own_parts)


EXAMPLES = (
    SweepCost(6_040, 3_706, 1_000_209, 40, 20, 1),
    SweepCost(6_040, 3_706, 1_000_209, 40, 20, 2),
    SweepCost(162_541, 59_047, 25_000_095, 40, 20, 8),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16, own_parts=True),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16, sample=True, own_parts=True),
)


def table(costs: tuple[SweepCost, ...] = EXAMPLES) -> str:
    """Return costs as a Markdown table, one column each."""
    return as_table(
        size_cells(costs)
        | {
            "solver": ["Langevin" if cost.sample else "Variational" for cost in costs],
            "ranks": [f"{cost.n_ranks}" for cost in costs],
            "ratings that a rank is given": ["its part" if cost.own_parts else "all" for cost in costs],
            "needed by a rank, GB": [f"{cost.bytes_needed / 1e9:,.3g}" for cost in costs],
            "received by a rank a sweep, GB": [f"{cost.bytes_received_per_sweep / 1e9:,.3g}" for cost in costs],
            "messages a sweep": [f"{cost.messages_per_sweep}" for cost in costs],
            "flops of a rank a sweep": [f"{cost.flops_per_sweep:.2g}" for cost in costs],
        }
    )
