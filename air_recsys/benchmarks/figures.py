"""The figures of the paper: runs whose curves, graphs or pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.benchmarks.cases import load_case
from air_recsys.benchmarks.figure_titles import FIGURE_TITLES
from air_recsys.benchmarks.recipes import Recipe, notes_of, recipes_of
from air_recsys.benchmarks.runs import Options, Run, all_runs, outcomes
from air_recsys.benchmarks.systems import QUICK_TITLE, Outcome
from air_recsys.plotting.reproduction import (
    Panel,
    plot_curves,
    plot_depth_width,
    plot_heatmaps,
    plot_pictures,
)
from air_recsys.results import ResultTable
from air_recsys.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PICTURES = ("barbara-random", "barbara-patch", "barbara-texture", "baboon-random", "baboon-patch", "baboon-texture")


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
    options : Options
    seeds : int, optional
        Run the seeds 0 .. seeds - 1 instead of the recipes'; the drawing shows the first.
    """
    title, draw = FIGURE_TITLES[name], DRAWINGS[name]
    import_extra("matplotlib", "viz")  # told before hours of runs
    recipes = _pictures() if name == "fig-inpainting" else recipes_of(name)
    runs = all_runs(recipes, 1 if name == "fig-inpainting" and seeds is None else seeds)
    found = outcomes(runs, options, name)
    report = ResultTable(title + (QUICK_TITLE if options.quick else ""), _protocol(name))
    report.rows = [_row(run, outcome) for run, outcome in found.items()]
    report.notes = notes_of(recipes)
    panels = [_panel(recipe, found, options) for recipe in recipes]
    curves = {panel.title: {system: own for system, own in panel.curves.items() if own} for panel in panels}
    return Drawn(report, {title: own for title, own in curves.items() if own}, draw(panels))


def _pictures() -> list[Recipe]:
    known = {recipe.row: recipe for recipe in recipes_of("table1")}
    return [known[name] for name in _PICTURES]


def _panel(recipe: Recipe, found: dict[Run, Outcome], options: Options) -> Panel:
    first = {run.system: outcome for run, outcome in reversed(found.items()) if run.recipe is recipe}
    of_recipe = {system: first[system] for system in recipe.systems if system in first}
    case = load_case(recipe.data, options.root)
    truth = case.truth if "completed" in recipe.keep else None
    return Panel(
        recipe.title,
        {system: outcome.curves for system, outcome in of_recipe.items()},
        {system: outcome.arrays for system, outcome in of_recipe.items()},
        {system: outcome.numbers for system, outcome in of_recipe.items()},
        truth=truth,
        groups=case.groups,
    )


def _without_start(panel: Panel) -> Panel:
    """Leave out the first record: at a start near zero all energies are, and six decades hide the rest."""
    curves = {system: {name: values[1:] for name, values in curves.items()} for system, curves in panel.curves.items()}
    return replace(panel, curves=curves)


def _row(run: Run, outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"panel": run.recipe.title, "system": run.system, "seed": run.seed}
    row |= outcome.numbers
    if outcome.curves:
        hidden = outcome.curves["hidden"]
        row |= {"observed": outcome.curves["observed"][-1], "lowest": float(np.min(hidden))}
        row |= {"lowest at": outcome.curves["epoch"][int(np.argmin(hidden))]}
        row |= {"last energies": outcome.curves["user_energy"][-1] + outcome.curves["item_energy"][-1]}
    return row


def _protocol(name: str) -> str:
    folder = "table1" if name == "fig-inpainting" else name
    return (
        f"settings in air_recsys/benchmarks/recipes/{folder}; NMAE = mean absolute error over the hidden entries / "
        "range of the truth; 'lowest' is the lowest along the training and was not used to choose anything"
    )


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
