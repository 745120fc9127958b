"""Tables of recipes: Table 1 of the paper, our settings on the same data, and presets without any parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from air_recsys.evaluation.results import ResultTable
from air_recsys.nn.devices import resolve_device
from benchmarks.paper.recipes import Recipe, content_of, notes_of, parse_seeds, recipes_of
from benchmarks.paper.runs import Options, Run, all_runs, mean_and_deviation, outcomes
from benchmarks.paper.scarce import SCARCE_MEASURES
from benchmarks.paper.systems import QUICK_TITLE

PAPER = "AIR"
OURS = "AIR tuned"
MEASURES = ("nmae", "user_nmi", "item_nmi", "average_precision", "psnr", *SCARCE_MEASURES)
_BASELINES = ("KNN", "SVD", "PNMC", "DMF", "RDMF", "DMF+DE")
_NMAE = "NMAE = mean absolute error / range of the truth"
_UNTOUCHED = (
    "presets without any parameter but seed and device; a seed is a mask, where masks are random, and a start; "
    "random masks are drawn by NumPy's Generator for even seeds and by RandomState for odd ones; mean and "
    "standard error over seeds; NMAE = mean absolute error on the hidden entries / range of the truth; "
    "on made-scarce a seed is a data set, damped biases have the damping 5, tuned ones the best of six on a "
    "hidden fifth, and the columns 'below' say by how many percent the RMSE lies below theirs"
)
Numbers = list[dict[str, float]]


def table(
    root: Path,
    case: str,
    *,
    rows: list[str],
    systems: list[str],
    seeds: list[Any],
    quick: bool,
    out: str,
    device: str,
    validation: float = 0.0,
    settings: dict[str, Any] | None = None,
) -> list[ResultTable]:
    """The means over seeds, with published values also as the paper prints them, and the single runs.

    Parameters
    ----------
    case : str
        "table1", "ours" or "untouched".
    rows, systems, seeds : list
        Those of the recipes where empty.
    settings : dict, optional
        Parameters of the chosen systems that differ from the recipes.
    quick, out, device, validation
        As in `benchmarks.paper.runs.Options`.
    """
    options = Options(root, Path(out), quick=quick, validation=validation, device=str(resolve_device(device)))
    recipes = [_overridden(recipe, systems, settings or {}) for recipe in recipes_of(case, rows)]
    if quick:
        recipes = [replace(recipe, seeds=recipe.seeds[:1]) for recipe in recipes]
    runs = all_runs(recipes, parse_seeds(seeds) if seeds else None, systems)
    results = outcomes(runs, options, case)
    title = content_of(case)["title"]
    protocol = _UNTOUCHED if case == "untouched" else _protocol(case, options, runs, settings or {})
    single = ResultTable(f"{title}: single runs", protocol)
    single.rows = [
        {"data": run.recipe.title, "system": run.system, "seed": run.seed} | outcome.numbers
        for run, outcome in results.items()
    ]
    row_of: Callable[[Recipe, str, Numbers], dict[str, Any]] = _errors if case == "untouched" else _beside_published
    means = ResultTable(title + (QUICK_TITLE if quick else ""), protocol)
    for recipe in recipes:
        for system in recipe.systems:
            of_system = [results[run].numbers for run in results if (run.recipe, run.system) == (recipe, system)]
            if of_system:
                means.rows.append(row_of(recipe, system, of_system))
    judged = case == "table1" and not (quick or validation)
    means.notes = [*(_verdicts(recipes, means.rows) if judged else []), *notes_of(recipes)]
    printed = [] if case == "untouched" else [ResultTable(f"{means.title}, ours (published)", "", pivot(means.rows))]
    return [means, *printed, single]


def pivot(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The table as the paper prints it: a row per data set, a column per system, cells "ours (published)"."""
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        published, nmae = row.get("published"), row.get("nmae")
        printed = f" ({published:g})" if _is_number(published) and row["system"] != OURS else ""
        cells.setdefault(row["data"], {})[row["system"]] = (f"{nmae:.3g}" if _is_number(nmae) else "-") + printed
    columns = [name for name in (*_BASELINES, PAPER, OURS) if any(name in row for row in cells.values())]
    return [{"data": data} | {name: row.get(name, "-") for name in columns} for data, row in cells.items()]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and not np.isnan(value)  # JSON has null for NaN


def _overridden(recipe: Recipe, systems: Sequence[str], overrides: dict[str, Any]) -> Recipe:
    if not overrides:
        return recipe
    changed = {
        name: {**settings, **overrides} if not systems or name in systems else settings
        for name, settings in recipe.systems.items()
    }
    return replace(recipe, systems=changed)


def _protocol(group: str, options: Options, runs: list[Run], overrides: dict[str, Any]) -> str:
    asked = f"{options.validation:.0%} of the observed entries" if options.validation else "the hidden entries"
    seeds = sorted({run.seed for run in runs})
    return (
        f"seeds {seeds} (mask where it is random, and start), asked for {asked}; {_NMAE}; "
        f"settings in benchmarks/paper/recipes/{group}.toml"
        + "".join(f", {name}={value}" for name, value in overrides.items())
    )


def _beside_published(recipe: Recipe, system: str, of_system: Numbers) -> dict[str, Any]:
    """A row of means; forms of AIR stand beside the published AIR."""
    mean, deviation = mean_and_deviation([numbers["nmae"] for numbers in of_system])
    form = recipe.published.get(system.partition(" ")[0], math.nan)
    published = recipe.published.get(system, form)
    row = {"data": recipe.title, "system": system, "published": published, "nmae": mean, "deviation": deviation}
    others = sorted({name for numbers in of_system for name in numbers} - {"nmae"})
    means = {name: float(np.mean([numbers[name] for numbers in of_system])) for name in others}
    return row | {"ours / published": mean / published} | means


def _errors(recipe: Recipe, system: str, of_system: Numbers) -> dict[str, Any]:
    """A row of means with their standard errors."""
    settings = recipe.systems[system]
    words = f"AIR.for_{settings['preset']}()" if "preset" in settings else "images.model_for"
    row: dict[str, Any] = {"data": recipe.title, "model": words, "runs": len(of_system)}
    for name in MEASURES:
        if values := [numbers[name] for numbers in of_system if name in numbers]:
            mean, deviation = mean_and_deviation(values)
            row |= {name: mean, f"{name} s.e.": deviation / math.sqrt(len(values))}
    return row | {"seconds": float(np.mean([numbers["seconds"] for numbers in of_system]))}


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
