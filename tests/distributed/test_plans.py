"""What sharded trainings cost: who holds, receives and computes what, and the tables of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from air_recsys.distributed import Cost, SweepCost, plan, plan_sweeps

REPORT = Path(__file__).resolve().parents[2] / "benchmarks" / "reports" / "speed.md"


def test_one_rank_receives_nothing():
    alone = plan_sweeps(10_000, 5_000, 1_000_000, n_factors=20, n_neighbors=5, n_ranks=1)
    assert plan(1000, 500, 10_000, n_factors=8, n_neighbors=5, n_ranks=1).bytes_received_per_step == 0
    assert alone.bytes_received_per_sweep == alone.messages_per_sweep == 0


def test_ranks_share_what_is_held_and_not_what_is_gathered():
    alone, shared = (plan(10_000, 5_000, 1_000_000, n_factors=8, n_neighbors=5, n_ranks=ranks) for ranks in (1, 8))
    assert shared.bytes_held == pytest.approx(alone.bytes_held / 8)
    gathered = 4 * (8 + 1) * (4 * 10_000 + 5_000)  # numbers of 4 bytes, rows of all ranks
    assert shared.bytes_passing - gathered == pytest.approx((alone.bytes_passing - gathered) / 8)
    assert shared.flops_per_refresh == alone.flops_per_refresh / 8
    assert alone.flops_per_step / 8 < shared.flops_per_step < alone.flops_per_step


def test_ranks_share_the_operations_of_sweeps_and_need_less_for_own_parts():
    sizes = {"n_users": 10_000, "n_items": 5_000, "n_ratings": 10**8, "n_factors": 20, "n_neighbors": 5}
    alone, shared = (plan_sweeps(**sizes, n_ranks=n) for n in (1, 8))
    own = plan_sweeps(**sizes, n_ranks=8, own_parts=True)
    assert alone.flops_per_sweep / 8 < shared.flops_per_sweep < alone.flops_per_sweep / 2
    assert shared.flops_per_refresh == alone.flops_per_refresh / 8
    assert own.bytes_needed < shared.bytes_needed / 4
    assert shared.bytes_needed == alone.bytes_needed


def test_users_without_a_graph_are_never_gathered():
    sizes = (100_000, 100, 1_000_000, 8, 5, 4)
    cost = Cost(*sizes, user_graph=False)
    assert cost.bytes_received_per_step == Cost(10, *sizes[1:], user_graph=False).bytes_received_per_step
    assert cost.bytes_received_per_step < Cost(*sizes).bytes_received_per_step


# -------------------------------------------------------------------- the report


def columns(row: str) -> list[dict[str, str]]:
    """The columns of the table of the report that has a row of this name."""
    (table,) = (part for part in REPORT.read_text(encoding="utf-8").split("\n\n") if f"| {row} |" in part)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    (names, *values) = zip(*(line for line in cells if line[0] != "---"), strict=True)
    return [dict(zip(names, column, strict=True)) for column in values]


def sizes(column: dict[str, str]) -> tuple[Any, ...]:
    return tuple(int(column[name].replace(",", "")) for name in ("users", "items", "ratings"))


def test_the_report_has_the_costs_of_steps():
    for column in columns("messages a step"):
        both, ranks = column["graphs"] == "both", int(column["ranks"])
        cost = Cost(*sizes(column), *map(int, column["r, k"].split(",")), ranks, user_graph=both)
        assert f"{cost.bytes_held / 1e9:,.3g}" == column["held by a rank, GB"]
        assert f"{cost.bytes_passing / 1e9:,.3g}" == column["passing through a rank, GB"]
        assert f"{cost.bytes_received_per_step / 1e9:,.3g}" == column["received by a rank a step, GB"]
        assert f"{cost.messages_per_step}" == column["messages a step"]
        assert f"{cost.flops_per_step:.2g}" == column["flops of a rank a step"]
        assert f"{cost.flops_per_refresh:.2g}" == column["flops of a rank a refresh"]


def test_the_report_has_the_costs_of_sweeps():
    for column in columns("messages a sweep"):
        own, sample = column["ratings that a rank is given"] == "its part", column["solver"] == "Langevin"
        cost = SweepCost(*sizes(column), 40, 20, int(column["ranks"]), sample=sample, own_parts=own)
        assert f"{cost.bytes_needed / 1e9:,.3g}" == column["needed by a rank, GB"]
        assert f"{cost.bytes_received_per_sweep / 1e9:,.3g}" == column["received by a rank a sweep, GB"]
        assert f"{cost.messages_per_sweep}" == column["messages a sweep"]
        assert f"{cost.flops_per_sweep:.2g}" == column["flops of a rank a sweep"]
