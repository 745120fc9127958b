"""Table 2 of the paper: what total variation and the learned graphs add to the time of a step."""

from __future__ import annotations

from typing import Any

from air_recsys.evaluation.results import ResultTable
from air_recsys.nn.build import Settings
from air_recsys.nn.devices import resolve_device
from benchmarks.recipes import recipe
from benchmarks.step import engine_step, median_times

_SYSTEMS: dict[str, dict[str, Any]] = {
    "DMF": {"strengths": (0.0, 0.0)},
    "RDMF": {"strengths": (0.0, 0.0), "tv_strength": 1e-3},
    "AIR": {"strengths": (1e-4, 1e-4)},
}


def table2(*, device: str = "auto", quick: bool = False) -> ResultTable:
    """Time a step of DMF, RDMF and AIR on m x m matrices, in turn.

    Ratios are what can be compared with the paper; seconds for 10,000 steps belong to the device named.

    Parameters
    ----------
    quick : bool
        Few rounds.
    """
    used = str(resolve_device(device))
    printed = recipe("table2")
    rounds, steps = (3, 5) if quick else (15, 40)
    table = ResultTable(
        "Table 2" + (" (QUICK: few rounds)" if quick else ""),
        f"m x m random matrices, 30 % missing, full width, depth L, float32, Adam, device {used}; median of {rounds} "
        f"rounds of {steps} steps, systems in turn",
    )
    for case in printed["rows"]:
        size, depth = case["size"], case["depth"]
        contenders = {name: engine_step(size, used, Settings(depth=depth, **own)) for name, own in _SYSTEMS.items()}
        seconds = median_times(contenders, rounds, steps, used, f"m={size}, L={depth}")
        row: dict[str, Any] = {"m": size, "L": depth}
        for name in ("RDMF", "AIR"):
            row[f"{name}/DMF"] = seconds[name] / seconds["DMF"]
            row[f"{name}/DMF, published"] = case[name] / case["DMF"]
        for name, value in seconds.items():
            row[f"{name}, s for 10,000 steps"] = 1e4 * value
            row[f"{name}, published"] = case[name]
        table.rows.append(row)
    smaller = sum(row["AIR/DMF"] <= row["AIR/DMF, published"] for row in table.rows)
    table.notes = [f"AIR/DMF no larger than published in {smaller} of {len(table.rows)} rows", printed["note"]]
    return table
