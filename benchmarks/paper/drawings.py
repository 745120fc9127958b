"""The drawings of the paper's figures, from panels of what was measured."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.report.plots.axes import bare, draw_weights, light_grid, logarithmic, new_grid, positive
from air_recsys.report.plots.graphs import ceiling
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart, without the yellow that is faint on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B")
_LETTER = 0.085  # inches, of the default font
_LABELS = {"observed": "observed entries", "hidden": "hidden entries", "user_energy": "rows", "item_energy": "columns"}
_STYLES = {"observed": ":", "hidden": "-", "user_energy": "-", "item_energy": "--"}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_WIDTH = re.compile(r"depth (\d+), width (\d+|full)")


@dataclass(frozen=True, eq=False)
class Panel:
    """What was measured on one matrix, by system.

    Attributes
    ----------
    title : str
    curves : dict of str to dict
        "epoch", "observed" and "hidden" (NMAE), "user_energy" and "item_energy" of each system, lists of one length;
        {} where a system has none.
    arrays : dict of str to dict
        "user_graph_E" (m, m) and "item_graph_E" (n, n) at epoch E.
    numbers : dict of str to dict
        "nmae".
    groups : tuple of ndarray, shapes (m,) and (n,), optional
        True groups of rows and of columns.
    """

    title: str
    curves: dict[str, dict[str, list[float]]]
    arrays: dict[str, dict[str, np.ndarray]]
    numbers: dict[str, dict[str, float]]
    groups: tuple[np.ndarray, np.ndarray] | None = None


def plot_curves(panels: list[Panel], *names: str) -> Figure:
    """Curves over training on a logarithmic scale, one axes a panel and one colour a system.

    Values that a logarithmic scale cannot show (zero, NaN, infinite) leave a gap.
    """
    systems = _in_order([system for system, curves in panel.curves.items() if curves] for panel in panels)
    colors = dict(zip(systems, _COLORS, strict=False))
    styles = {name: _STYLES[name] if len(names) > 1 else "-" for name in names}
    figure, grid = _panel_axes(panels)
    for axes, panel in zip(grid, panels, strict=True):
        for system, curves in panel.curves.items():
            for name in names if curves else ():
                axes.plot(curves["epoch"], positive(curves[name]), color=colors[system], linestyle=styles[name])
        axes.locator_params(axis="x", nbins=5)
        _finish(axes, "epoch", "NMAE" if "hidden" in names else "Dirichlet energy")
    handle = import_extra("matplotlib.lines", "viz").Line2D
    handles = [handle([], [], color=color, label=system) for system, color in colors.items()]
    if len(names) > 1:
        of_names = [(_LABELS[name], styles[name]) for name in names]
        handles += [handle([], [], color=ink(), alpha=0.6, linestyle=style, label=label) for label, style in of_names]
    _legend_below(figure, handles)
    return figure


def plot_depth_width(panels: list[Panel]) -> Figure:
    """The error on the hidden entries by depth, one axes a panel and one line a width.

    The systems of the panels have names such as "depth 3, width full".
    """
    drawn = [_by_width(panel) for panel in panels]
    widths = sorted({width for lines in drawn for width in lines})
    colors, markers = (dict(zip(widths, looks, strict=False)) for looks in (_COLORS, _MARKERS))
    figure, grid = _panel_axes(panels)
    handles: dict[float, Artist] = {}
    for axes, lines in zip(grid, drawn, strict=True):
        for width, errors in lines.items():
            label = f"width {width:.0f}" if np.isfinite(width) else "full width"
            style: dict[str, Any] = {"color": colors[width], "marker": markers[width], "markersize": 5}
            handles[width] = axes.plot(list(errors), positive(list(errors.values())), label=label, **style)[0]
        axes.set_xticks(sorted({depth for errors in lines.values() for depth in errors}))
        axes.margins(x=0.1)
        _finish(axes, "depth", "NMAE")
    _legend_below(figure, [handles[width] for width in widths])
    return figure


def plot_heatmaps(panels: list[Panel]) -> Figure:
    r"""The learned graphs of rows and of columns at every snapshot, beside the true groups where known.

    The paper shows the Laplacian :math:`L(t)`; the figure shows the adjacency, its negative off-diagonal part. Every
    image has its own scale, from 0 to the 0.99 quantile of its positive weights, which is below it. Only the first
    system of a panel is drawn. Where groups are known, all images of that panel are sorted by them, and the last
    column is 1 where two rows (columns) are of the same group.
    """
    rows = [row for panel in panels for row in _graph_rows(panel)]
    has_groups = any(groups is not None for _, _, groups in rows)
    columns = max(len(graphs) for _, graphs, _ in rows) + has_groups
    figure, grid = new_grid(len(rows), columns, (2.0, 2.3))
    for axes, (label, graphs, groups) in zip(grid, rows, strict=True):
        _draw_graphs(axes, graphs, groups)
        axes[0].set_ylabel(textwrap.fill(label, 24))
    figure.suptitle(textwrap.fill("Learned adjacency (negative off-diagonal part of the Laplacian)", 18 * columns))
    mappable = import_extra("matplotlib.cm", "viz").ScalarMappable(cmap=weight_colors())
    bar = figure.colorbar(mappable, ax=grid, ticks=[0, 1], extend="max", shrink=0.8 / len(rows), aspect=12)
    bar.set_ticklabels(["0", "top of\nscale"])
    return figure


def _in_order(lists: Iterable[Iterable[str]]) -> list[str]:
    """All distinct names of some lists: those of the longest list first, the others behind."""
    longest_first = sorted((list(dict.fromkeys(names)) for names in lists), key=len, reverse=True)
    return list(dict.fromkeys(name for names in longest_first for name in names))


def _panel_axes(panels: list[Panel]) -> tuple[Figure, list[Axes]]:
    """A figure and one titled axes a panel, at most three side by side."""
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    figure, grid = new_grid(-(-len(panels) // columns), columns, (3.6, 3.0) if len(panels) > 1 else (4.8, 3.6))
    axes = list(grid.flat)
    for unused in axes[len(panels) :]:
        unused.remove()
    for one, panel in zip(axes, panels, strict=False):
        one.set_title(textwrap.fill(panel.title, 36))
    return figure, axes[: len(panels)]


def _legend_below(figure: Figure, handles: list[Artist]) -> None:
    """Put one legend below all axes, in as many columns as the width has room for, and make room in height."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    room = max(1, int(figure.get_figwidth() / (_LETTER * longest + 0.7)))
    rows = -(-len(handles) // room)
    figure.set_figheight(figure.get_figheight() + 0.22 * rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=-(-len(handles) // rows), frameon=False)


def _finish(axes: Axes, x: str, y: str) -> None:
    logarithmic(axes, "y", narrow=50)
    axes.set(xlabel=x, ylabel=y)
    light_grid(axes, 0.6)


def _by_width(panel: Panel) -> dict[float, dict[int, float]]:
    """Errors by width and depth, both ascending; full width is infinite."""
    errors: dict[float, dict[int, float]] = {}
    for system, numbers in panel.numbers.items():
        depth, width = _WIDTH.fullmatch(system).groups()  # pyright: ignore[reportOptionalMemberAccess]
        errors.setdefault(np.inf if width == "full" else float(width), {})[int(depth)] = numbers["nmae"]
    return {width: dict(sorted(of_width.items())) for width, of_width in sorted(errors.items())}


def _graph_rows(panel: Panel) -> list[tuple[str, dict[int, np.ndarray], np.ndarray | None]]:
    """One row for each side: its label, its graphs by epoch, and its groups."""
    arrays = next(iter(panel.arrays.values()))
    rows = []
    for side, words, groups in zip(("user", "item"), ("rows", "columns"), panel.groups or (None, None), strict=True):
        epochs = sorted(int(name.rpartition("_")[2]) for name in arrays if name.startswith(side))
        graphs = {epoch: arrays[f"{side}_graph_{epoch}"] for epoch in epochs}
        rows.append((f"{panel.title}: {words}", graphs, groups))
    return rows


def _draw_graphs(axes: np.ndarray, graphs: dict[int, np.ndarray], groups: np.ndarray | None) -> None:
    for one in axes:
        bare(one)
    order = slice(None) if groups is None else np.argsort(groups, kind="stable")
    for one, (epoch, graph) in zip(axes, graphs.items(), strict=False):
        weights = graph[order][:, order]
        largest = ceiling(weights)
        draw_weights(one, weights, f"epoch {epoch}", vmin=0, vmax=largest)
        one.set_xlabel(f"scale 0 to {largest:.2g}", fontsize="small")
    if groups is not None:
        ordered = groups[order]
        draw_weights(axes[-1], ordered[:, None] == ordered, "same group", vmin=0, vmax=1.0)  # (m, m)
