"""Presets untouched: what `AIR.for_...()` gives without any parameter, on masks that nothing was chosen on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from air_recsys.evaluation.results import ResultTable
from air_recsys.exceptions import ParameterError
from benchmarks.recipes import Recipe, recipes_of
from benchmarks.runs import Options, Run, all_runs, mean_and_deviation, outcomes
from benchmarks.scarce import SCARCE_MEASURES
from benchmarks.systems import QUICK_TITLE, Outcome

MEASURES = ("nmae", "user_nmi", "item_nmi", "average_precision", "psnr", *SCARCE_MEASURES)


def untouched(
    options: Options, *, rows: Sequence[str] = (), seeds: int | None = None, first_seed: int = 20
) -> tuple[ResultTable, ResultTable]:
    """Train the untouched presets and return means with their standard errors over seeds, and the single runs.

    Parameters
    ----------
    options : Options
    rows : sequence of str
        Names of recipes without their folder, such as "ic"; all where empty.
    seeds, first_seed : int
        Run this many seeds from `first_seed` on instead of the recipes'.
    """
    recipes = _chosen(rows)
    runs = all_runs(recipes, 1 if options.quick and seeds is None else seeds, first_seed)
    results = outcomes(runs, options, "untouched presets")
    protocol = (
        "presets without any parameter but seed and device; a seed is a mask, where masks are random, and a start; "
        "random masks are drawn by NumPy's Generator for even seeds and by RandomState for odd ones; mean and "
        "standard error over seeds; NMAE = mean absolute error on the hidden entries / range of the truth; "
        "on made-scarce a seed is a data set, damped biases have the damping 5, tuned ones the best of six on a "
        "hidden fifth, and the columns 'below' say by how many percent the RMSE lies below theirs"
    )
    single = ResultTable("Untouched presets: single runs", protocol)
    single.rows = [
        {"data": run.recipe.title, "system": run.system, "seed": run.seed} | outcome.numbers
        for run, outcome in results.items()
    ]
    title = "Untouched presets" + (QUICK_TITLE if options.quick else "")
    systems = [(recipe, system) for recipe in recipes for system in recipe.systems]
    return ResultTable(title, protocol, [_row(*system, results) for system in systems]), single


def _chosen(rows: Sequence[str]) -> list[Recipe]:
    recipes = {recipe.row: recipe for recipe in recipes_of("untouched")}
    if unknown := [row for row in rows if row not in recipes]:
        raise ParameterError(f"rows must be of {list(recipes)}, found {unknown[0]!r}")
    return [recipe for name, recipe in recipes.items() if not rows or name in rows]


def _row(recipe: Recipe, system: str, results: dict[Run, Outcome]) -> dict[str, Any]:
    of_system = [results[run].numbers for run in results if (run.recipe, run.system) == (recipe, system)]
    row: dict[str, Any] = {"data": recipe.title, "model": _words(recipe, system), "runs": len(of_system)}
    for name in MEASURES:
        if values := [numbers[name] for numbers in of_system if name in numbers]:
            mean, deviation = mean_and_deviation(values)
            row |= {name: mean, f"{name} s.e.": deviation / math.sqrt(len(values))}
    return row | {"seconds": float(np.mean([numbers["seconds"] for numbers in of_system]))}


def _words(recipe: Recipe, system: str) -> str:
    settings = recipe.systems[system]
    return f"AIR.for_{settings['preset']}()" if "preset" in settings else "images.model_for"
