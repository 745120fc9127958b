"""The tables of costs in benchmarks/reports/speed.md: `python tests/distributed/cost_tables.py` prints them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from air_recsys.distributed import Cost, SweepCost

ADAM = (
    Cost(6_040, 3_706, 1_000_209, 20, 20, 2),
    Cost(162_541, 59_047, 25_000_095, 64, 20, 8),
    Cost(1_000_000, 100_000, 1_000_000_000, 64, 20, 16),
    Cost(100_000_000, 1_000_000, 10_000_000_000, 64, 20, 64),
    Cost(100_000_000, 1_000_000, 10_000_000_000, 64, 20, 64, user_graph=False),
)
SWEEPS = (
    SweepCost(6_040, 3_706, 1_000_209, 40, 20, 1),
    SweepCost(6_040, 3_706, 1_000_209, 40, 20, 2),
    SweepCost(162_541, 59_047, 25_000_095, 40, 20, 8),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16, own_parts=True),
    SweepCost(1_000_000, 100_000, 1_000_000_000, 40, 20, 16, sample=True, own_parts=True),
)
SIZES: dict[str, Callable[[Any], str]] = {
    "users": lambda cost: f"{cost.n_users:,}",
    "items": lambda cost: f"{cost.n_items:,}",
    "ratings": lambda cost: f"{cost.n_ratings:,}",
}
OF_ADAM: dict[str, Callable[[Cost], str]] = SIZES | {
    "r, k": lambda cost: f"{cost.n_factors}, {cost.n_neighbors}",
    "ranks": lambda cost: f"{cost.n_ranks}",
    "graphs": lambda cost: "both" if cost.user_graph else "items",
    "held by a rank, GB": lambda cost: f"{cost.bytes_held / 1e9:,.3g}",
    "passing through a rank, GB": lambda cost: f"{cost.bytes_passing / 1e9:,.3g}",
    "received by a rank a step, GB": lambda cost: f"{cost.bytes_received_per_step / 1e9:,.3g}",
    "messages a step": lambda cost: f"{cost.messages_per_step}",
    "flops of a rank a step": lambda cost: f"{cost.flops_per_step:.2g}",
    "flops of a rank a refresh": lambda cost: f"{cost.flops_per_refresh:.2g}",
}
OF_SWEEPS: dict[str, Callable[[SweepCost], str]] = SIZES | {
    "solver": lambda cost: "Langevin" if cost.sample else "Variational",
    "ranks": lambda cost: f"{cost.n_ranks}",
    "ratings that a rank is given": lambda cost: "its part" if cost.own_parts else "all",
    "needed by a rank, GB": lambda cost: f"{cost.bytes_needed / 1e9:,.3g}",
    "received by a rank a sweep, GB": lambda cost: f"{cost.bytes_received_per_sweep / 1e9:,.3g}",
    "messages a sweep": lambda cost: f"{cost.messages_per_sweep}",
    "flops of a rank a sweep": lambda cost: f"{cost.flops_per_sweep:.2g}",
}


def table(costs: Sequence[Any], rows: dict[str, Callable[[Any], str]]) -> str:
    """Costs as a Markdown table, one column each, the first row as its head."""
    lines = [f"| {name} | {' | '.join(map(cell, costs))} |" for name, cell in rows.items()]
    return "\n".join([lines[0], "|---" * (len(costs) + 1) + "|", *lines[1:]])


if __name__ == "__main__":
    print(table(ADAM, OF_ADAM), table(SWEEPS, OF_SWEEPS), sep="\n\n")  # noqa: T201
