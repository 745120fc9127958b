"""The figures of the paper: runs whose curves, graphs or pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from air_recsys.evaluation.results import ResultTable
from air_recsys.storage.validation import import_extra
from benchmarks.paper.cases import load_case
from benchmarks.paper.drawings import Panel, plot_curves, plot_depth_width, plot_heatmaps, plot_pictures
from benchmarks.paper.recipes import Recipe, content_of, notes_of, recipes_of
from benchmarks.paper.runs import Options, Run, all_runs, outcomes
from benchmarks.paper.systems import QUICK_TITLE, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = "fig-inpainting"
_OF_PICTURES = "The completed pictures"
_PROTOCOL = (
    "settings in benchmarks/paper/recipes/{}.toml; NMAE = mean absolute error over the hidden entries / range of the "
    "truth; 'lowest' is the lowest along the training and was not used to choose anything"
)


class Drawn(NamedTuple):
    """A figure of the paper: its numbers, its curves by panel and system, and its drawing."""

    report: ResultTable
    curves: dict[str, dict[str, dict[str, list[float]]]]
    figure: Figure


def figure_of(name: str, options: Options, *, seeds: list[int] | None = None) -> Drawn:
    """Run the recipes of a figure and draw it.

    Parameters
    ----------
    name : str
        A key of `DRAWINGS`.
    seeds : list of int, optional
        Instead of the recipes'; the drawing shows the first.
    """
    import_extra("matplotlib", "viz")  # told before hours of runs
    recipes = recipes_of_figure(name)
    results = outcomes(all_runs(recipes, seeds), options, name)
    group = "table1" if name == PICTURES else name
    title = _OF_PICTURES if name == PICTURES else content_of(name)["title"]
    title += QUICK_TITLE if options.quick else ""
    rows = [_row(run, outcome) for run, outcome in results.items()]
    table = ResultTable(title, _PROTOCOL.format(group), rows, notes_of(recipes))
    panels = [_panel(recipe, results, options) for recipe in recipes]
    curves = {panel.title: {system: own for system, own in panel.curves.items() if own} for panel in panels}
    return Drawn(table, {title: own for title, own in curves.items() if own}, DRAWINGS[name](panels))


def recipes_of_figure(name: str) -> list[Recipe]:
    """The recipes of a figure; the completed pictures are those of Table 1, of its first seed."""
    if name != PICTURES:
        return recipes_of(name)
    return [replace(recipe, seeds=recipe.seeds[:1]) for recipe in recipes_of("table1") if "completed" in recipe.keep]


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and as SVG."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    for path in paths:
        figure.savefig(path, dpi=150, bbox_inches="tight")
    return paths


def _panel(recipe: Recipe, results: dict[Run, Outcome], options: Options) -> Panel:
    first = {run.system: outcome for run, outcome in reversed(results.items()) if run.recipe is recipe}
    of_recipe = {system: first[system] for system in recipe.systems}
    case = load_case(recipe.data, options.root)
    return Panel(
        recipe.title,
        {system: outcome.curves for system, outcome in of_recipe.items()},
        {system: outcome.arrays for system, outcome in of_recipe.items()},
        {system: outcome.numbers for system, outcome in of_recipe.items()},
        truth=case.truth if "completed" in recipe.keep else None,
        groups=case.groups,
    )


def _row(run: Run, outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"panel": run.recipe.title, "system": run.system, "seed": run.seed} | outcome.numbers
    if curves := outcome.curves:
        row |= {"observed": curves["observed"][-1], "lowest": float(np.min(curves["hidden"]))}
        row |= {"lowest at": curves["epoch"][int(np.argmin(curves["hidden"]))]}
        row |= {"last energies": curves["user_energy"][-1] + curves["item_energy"][-1]}
    return row


def _without_start(panel: Panel) -> Panel:
    """Leave out the first record: energies near zero at the start would stretch the axis by six decades."""
    curves = {system: {name: values[1:] for name, values in curves.items()} for system, curves in panel.curves.items()}
    return replace(panel, curves=curves)


def _plot_energies(panels: list[Panel]) -> Figure:
    return plot_curves([_without_start(panel) for panel in panels], "user_energy", "item_energy")


DRAWINGS: dict[str, Callable[[list[Panel]], Figure]] = {
    "fig-depth": lambda panels: plot_curves(panels, "observed", "hidden"),
    "fig-heatmaps": plot_heatmaps,
    "fig-fixed-laplacian": lambda panels: plot_curves(panels, "hidden"),
    "fig-trajectories": _plot_energies,
    "fig-training-nmae": lambda panels: plot_curves(panels, "hidden"),
    PICTURES: plot_pictures,
    "fig-depth-width": plot_depth_width,
}
"""How each figure is drawn."""
