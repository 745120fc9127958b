"""The figures of the paper: runs whose curves, graphs or pictures are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.evaluation.results import ResultTable, write_json
from air_recsys.nn.devices import resolve_device
from air_recsys.storage.validation import import_extra
from benchmarks.paper.cases import load_case
from benchmarks.paper.drawings import Panel, plot_curves, plot_depth_width, plot_heatmaps
from benchmarks.paper.recipes import Recipe, content_of, notes_of, parse_seeds, recipes_of
from benchmarks.paper.runs import Options, Run, all_runs, outcomes
from benchmarks.paper.systems import QUICK_TITLE, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROTOCOL = (
    "settings in benchmarks/paper/recipes/{}.toml; NMAE = mean absolute error over the hidden entries / range of the "
    "truth; 'lowest' is the lowest along the training and was not used to choose anything"
)


def figure(root: Path, case: str, *, seeds: list[Any], quick: bool, out: str, device: str) -> list[ResultTable]:
    """The table of a figure, whose drawing (PNG and SVG) and curves (JSON) are written to the folder `out`.

    `seeds` take the place of the recipes' where there are some; the drawing shows the first.
    """
    import_extra("matplotlib", "viz")  # told before hours of runs
    options = Options(root, Path(out), quick=quick, device=str(resolve_device(device)))
    recipes = recipes_of(case)
    results = outcomes(all_runs(recipes, parse_seeds(seeds) if seeds else None), options, case)
    panels = [_panel(recipe, results, options) for recipe in recipes]
    drawn = DRAWINGS[case](panels)
    for suffix in ("png", "svg"):
        drawn.savefig(options.folder / f"{case}.{suffix}", dpi=150, bbox_inches="tight")
    curves = {panel.title: {system: own for system, own in panel.curves.items() if own} for panel in panels}
    write_json(options.folder / f"{case}-curves.json", {title: own for title, own in curves.items() if own})
    title = content_of(case)["title"] + (QUICK_TITLE if quick else "")
    rows = [_row(run, outcome) for run, outcome in results.items()]
    return [ResultTable(title, _PROTOCOL.format(case), rows, notes_of(recipes))]


def _panel(recipe: Recipe, results: dict[Run, Outcome], options: Options) -> Panel:
    first = {run.system: outcome for run, outcome in reversed(results.items()) if run.recipe is recipe}
    of_recipe = {system: first[system] for system in recipe.systems}
    return Panel(
        recipe.title,
        {system: outcome.curves for system, outcome in of_recipe.items()},
        {system: outcome.arrays for system, outcome in of_recipe.items()},
        {system: outcome.numbers for system, outcome in of_recipe.items()},
        groups=load_case(recipe.data, options.root).groups,
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
    "fig-depth-width": plot_depth_width,
}
"""How each figure is drawn."""
