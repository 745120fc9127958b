"""The figures of the paper: runs whose curves, graphs or pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.evaluation.results import ResultTable
from air_recsys.storage.validation import import_extra
from benchmarks.cases import load_case
from benchmarks.figure_titles import FIGURE_TITLES
from benchmarks.plots.reproduction import (
    Panel,
    plot_curves,
    plot_depth_width,
    plot_heatmaps,
    plot_pictures,
)
from benchmarks.recipes import Recipe, notes_of, recipes_of
from benchmarks.runs import Options, Run, all_runs, outcomes
from benchmarks.systems import QUICK_TITLE, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Drawn(NamedTuple):
    """A figure of the paper: its numbers, its curves by panel and system, and its drawing."""

    report: ResultTable
    curves: dict[str, dict[str, dict[str, list[float]]]]
    figure: Figure


def reproduce_figure(name: str, options: Options, *, seeds: int | None = None) -> Drawn:
    """Run the recipes of a figure and draw it.

    Parameters
    ----------
    name : str
        A key of `FIGURE_TITLES`.
    seeds : int, optional
        Run the seeds 0 .. seeds - 1 instead of the recipes'; the drawing shows the first.
    """
    title, draw = FIGURE_TITLES[name], DRAWINGS[name]
    import_extra("matplotlib", "viz")  # told before hours of runs
    folder = "table1" if name == "fig-inpainting" else name  # which takes the pictures of the table
    recipes = [each for each in recipes_of(folder) if folder == name or each.data in ("barbara", "baboon")]
    runs = all_runs(recipes, 1 if folder == "table1" and seeds is None else seeds)
    results = outcomes(runs, options, name)
    title += QUICK_TITLE if options.quick else ""
    rows = [_row(run, outcome) for run, outcome in results.items()]
    protocol = (
        f"settings in benchmarks/recipes/{folder}; NMAE = mean absolute error over the hidden entries / "
        "range of the truth; 'lowest' is the lowest along the training and was not used to choose anything"
    )
    table = ResultTable(title, protocol, rows, notes_of(recipes))
    panels = [_panel(recipe, results, options) for recipe in recipes]
    curves = {panel.title: {system: own for system, own in panel.curves.items() if own} for panel in panels}
    return Drawn(table, {title: own for title, own in curves.items() if own}, draw(panels))


def _panel(recipe: Recipe, results: dict[Run, Outcome], options: Options) -> Panel:
    first = {run.system: outcome for run, outcome in reversed(results.items()) if run.recipe is recipe}
    of_recipe = {system: first[system] for system in recipe.systems if system in first}
    case = load_case(recipe.data, options.root)
    return Panel(
        recipe.title,
        {system: outcome.curves for system, outcome in of_recipe.items()},
        {system: outcome.arrays for system, outcome in of_recipe.items()},
        {system: outcome.numbers for system, outcome in of_recipe.items()},
        truth=case.truth if "completed" in recipe.keep else None,
        groups=case.groups,
    )


def _without_start(panel: Panel) -> Panel:
    """Leave out the first record: energies near zero at the start would stretch the axis by six decades."""
    curves = {system: {name: values[1:] for name, values in curves.items()} for system, curves in panel.curves.items()}
    return replace(panel, curves=curves)


def _row(run: Run, outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"panel": run.recipe.title, "system": run.system, "seed": run.seed} | outcome.numbers
    if curves := outcome.curves:
        row |= {"observed": curves["observed"][-1], "lowest": float(np.min(curves["hidden"]))}
        row |= {"lowest at": curves["epoch"][int(np.argmin(curves["hidden"]))]}
        row |= {"last energies": curves["user_energy"][-1] + curves["item_energy"][-1]}
    return row


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and as SVG."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    return paths


DRAWINGS: dict[str, Callable[[list[Panel]], Figure]] = {
    "fig-depth": lambda panels: plot_curves(panels, ("observed", "hidden")),
    "fig-heatmaps": plot_heatmaps,
    "fig-fixed-laplacian": lambda panels: plot_curves(panels, ("hidden",)),
    "fig-trajectories": lambda panels: plot_curves(
        [_without_start(panel) for panel in panels], ("user_energy", "item_energy")
    ),
    "fig-training-nmae": lambda panels: plot_curves(panels, ("hidden",)),
    "fig-inpainting": plot_pictures,
    "fig-depth-width": plot_depth_width,
}
"""How each of `FIGURE_TITLES` is drawn."""
