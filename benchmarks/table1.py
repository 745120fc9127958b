"""Table 1 of the paper: NMAE of every system on pictures, Syn-Netflix and drug-target data, published beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import pandas as pd

from air_recsys.evaluation.results import ResultTable
from air_recsys.exceptions import ParameterError
from benchmarks.recipes import Recipe, notes_of, recipes_of
from benchmarks.runs import Options, Run, all_runs, mean_and_deviation, outcomes
from benchmarks.systems import QUICK_TITLE, Outcome

PAPER = "AIR"
OURS = "AIR tuned"
_BASELINES = ("KNN", "SVD", "PNMC", "DMF", "RDMF", "DMF+DE")


def table1(
    options: Options,
    *,
    rows: Sequence[str] = (),
    systems: Sequence[str] = (),
    seeds: int | None = None,
    first_seed: int = 0,
    overrides: dict[str, Any] | None = None,
) -> tuple[ResultTable, ResultTable]:
    """Run the recipes of Table 1 and return the means over seeds and the single runs.

    Parameters
    ----------
    rows : sequence of str
        Names of recipes without their folder, such as "ic"; all where empty.
    systems : sequence of str
        All where empty.
    seeds, first_seed : int
        Run this many seeds from `first_seed` on instead of the recipes'.
    overrides : dict, optional
        Parameters of the chosen systems that differ from the recipes.
    """
    recipes = [_overridden(recipe, systems, overrides or {}) for recipe in _chosen(rows)]
    runs = all_runs(recipes, 1 if options.quick and seeds is None else seeds, first_seed, systems)
    results = outcomes(runs, options, "table 1")
    single = ResultTable("Table 1: single runs", _protocol(options, runs, overrides or {}))
    single.rows = [
        {"data": run.recipe.title, "system": run.system, "seed": run.seed} | outcome.numbers
        for run, outcome in results.items()
    ]
    rows_of_means = [row for recipe in recipes for row in _rows_of(recipe, results)]
    verdicts = [] if options.quick or options.validation else _verdicts(recipes, rows_of_means)
    title = "Table 1" + (QUICK_TITLE if options.quick else "")
    return ResultTable(title, single.protocol, rows_of_means, [*verdicts, *notes_of(recipes)]), single


def pivot(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the table as the paper prints it: a row per data set, a column per system, cells "ours (published)"."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        published, nmae = row.get("published"), row.get("nmae")
        printed = f" ({published:g})" if _is_number(published) and row["system"] != OURS else ""
        cells.setdefault(row["data"], {})[row["system"]] = (f"{nmae:.3g}" if _is_number(nmae) else "-") + printed
    columns = [name for name in (*_BASELINES, PAPER, OURS) if any(name in row for row in cells.values())]
    return pd.DataFrame(cells).T.reindex(columns=columns)


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and not np.isnan(value)  # JSON has null for NaN


def _chosen(rows: Sequence[str]) -> list[Recipe]:
    recipes = {recipe.row: recipe for recipe in recipes_of("table1")}
    if unknown := [row for row in rows if row not in recipes]:
        raise ParameterError(f"rows must be of {list(recipes)}, found {unknown[0]!r}")
    return [recipe for name, recipe in recipes.items() if not rows or name in rows]


def _overridden(recipe: Recipe, systems: Sequence[str], overrides: dict[str, Any]) -> Recipe:
    if not overrides:
        return recipe
    changed = {
        name: {**settings, **overrides} if not systems or name in systems else settings
        for name, settings in recipe.systems.items()
    }
    return replace(recipe, systems=changed)


def _rows_of(recipe: Recipe, results: dict[Run, Outcome]) -> list[dict[str, Any]]:
    rows = []
    for system in recipe.systems:
        runs = [run for run in results if (run.recipe, run.system) == (recipe, system)]
        of_system = [results[run].numbers for run in runs]
        if not of_system:
            continue
        mean, deviation = mean_and_deviation([numbers["nmae"] for numbers in of_system])
        published = recipe.published.get(system, recipe.published[PAPER] if system == OURS else float("nan"))
        row = {
            "data": recipe.title,
            "system": system,
            "published": published,
            "nmae": mean,
            "deviation": deviation,
            "ours / published": mean / published,
        }
        others = sorted({name for numbers in of_system for name in numbers} - {"nmae"})
        rows.append(row | {name: float(np.mean([numbers[name] for numbers in of_system])) for name in others})
    return rows


def _verdicts(recipes: list[Recipe], rows: list[dict[str, Any]]) -> list[str]:
    table = {(row["data"], row["system"]): row for row in rows}
    full = [recipe for recipe in recipes if all((recipe.title, system) in table for system in recipe.systems)]
    if not full:
        return []
    verdicts = [verdict for system in (PAPER, OURS) for verdict in _compared(system, full, table)]
    better = sum(table[recipe.title, OURS]["ours / published"] <= 0.9 for recipe in full)
    verdicts.append(f"{OURS} at least 10 % below the published AIR in {better} of {len(full)} rows")
    far = [
        f"{recipe.title}: {system}"
        for recipe in full
        for system in _BASELINES
        if system in recipe.systems and table[recipe.title, system]["ours / published"] > 1.2
    ]
    return [*verdicts, f"baselines more than 20 % above the published value: {', '.join(far) or 'none'}"]


def _compared(system: str, recipes: list[Recipe], table: dict[tuple[str, str], dict[str, Any]]) -> list[str]:
    rows = {recipe: table[recipe.title, system] for recipe in recipes}
    matched = sum(row["ours / published"] <= 1 for row in rows.values())
    measured, printed = (
        sum(row["nmae"] < min(_baselines(recipe, table, column)) for recipe, row in rows.items())
        for column in ("nmae", "published")
    )
    n = len(recipes)
    return [
        f"{system} at or below the published AIR in {matched} of {n} rows",
        f"{system} lower than every baseline as measured here in {measured} of {n} rows, as published in {printed}",
    ]


def _baselines(recipe: Recipe, table: dict[tuple[str, str], dict[str, Any]], column: str) -> list[float]:
    return [table[recipe.title, name][column] for name in _BASELINES if name in recipe.systems]


def _protocol(options: Options, runs: list[Run], overrides: dict[str, Any]) -> str:
    asked = f"{options.validation:.0%} of the observed entries" if options.validation else "the hidden entries"
    seeds = sorted({run.seed for run in runs})
    return (
        f"seeds {seeds} (mask where it is random, and start), asked for {asked}; NMAE = mean absolute error / range "
        "of the truth; settings in benchmarks/recipes/table1"
        + "".join(f", {name}={value}" for name, value in overrides.items())
    )
