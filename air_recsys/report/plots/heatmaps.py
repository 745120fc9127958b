"""Heatmaps of the learned graphs through training."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import new_grid
from air_recsys.report.plots.graphs import ceiling
from air_recsys.report.plots.panels import Panel, bare, check_panels, draw_weights
from air_recsys.report.plots.theme import weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Row = tuple[str, dict[int, np.ndarray], np.ndarray | None]  # label, graphs by epoch, groups

_NAME = re.compile(r"(user|item)_graph_(\d+)")
_KINDS = {"user": "rows", "item": "columns"}


def plot_heatmaps(panels: list[Panel]) -> Figure:
    r"""Draw the learned graphs of rows and of columns at every snapshot, beside the true groups where known.

    The paper shows the Laplacian :math:`L(t)`; the figure shows the adjacency, its negative off-diagonal part. Every
    image has its own scale, from 0 to the 0.99 quantile of its positive weights, which is below it. Only the first
    system of a panel that has graphs is drawn. Where groups are known, all images of that panel are sorted by them,
    and the last column is 1 where two rows (columns) are of the same group.

    Parameters
    ----------
    panels : list of Panel
        Their `arrays` hold "user_graph_E" (m, m) or "item_graph_E" (n, n) at epochs E.

    Raises
    ------
    DataError
        For no panels, no graphs, or a graph that is not square or does not fit the groups.

    Examples
    --------
    >>> graphs = {f"user_graph_{epoch}": 1 - np.eye(4) for epoch in (4000, 500)}
    >>> figure = plot_heatmaps([Panel("Syn-Netflix", {}, {"AIR": graphs}, {})])
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['epoch 500', 'epoch 4000']
    """
    check_panels(panels)
    rows = [row for panel in panels for row in _rows(panel)]
    if not rows:
        raise DataError("expected graphs named user_graph_E or item_graph_E in the panels' arrays, found none")
    has_groups = any(groups is not None for _, _, groups in rows)
    columns = max(len(graphs) for _, graphs, _ in rows) + has_groups
    figure, grid = new_grid(len(rows), columns, (2.0, 2.3))
    for axes, (label, graphs, groups) in zip(grid, rows, strict=True):
        _draw_row(axes, graphs, groups)
        axes[0].set_ylabel(textwrap.fill(label, 24))
    figure.suptitle(textwrap.fill("Learned adjacency (negative off-diagonal part of the Laplacian)", 18 * columns))
    mappable = import_extra("matplotlib.cm", "viz").ScalarMappable(cmap=weight_colors())
    bar = figure.colorbar(mappable, ax=grid, ticks=[0, 1], extend="max", shrink=0.8 / len(rows), aspect=12)
    bar.set_ticklabels(["0", "top of\nscale"])
    return figure


def _rows(panel: Panel) -> list[Row]:
    """Return one row for each kind of graph of the first system that has graphs."""
    graphs = next(filter(None, map(_graphs, panel.arrays.values())), {})
    rows = []
    for kind, group in zip(_KINDS, panel.groups or (None, None), strict=True):
        if kind in graphs:
            label = f"{panel.title}: {_KINDS[kind]}"
            groups = None if group is None else np.asarray(group)
            _check_shapes(label, graphs[kind], groups)
            rows.append((label, graphs[kind], groups))
    return rows


def _graphs(arrays: dict[str, np.ndarray]) -> dict[str, dict[int, np.ndarray]]:
    """Return graphs by kind and epoch, epochs ascending."""
    parsed = [(match, array) for name, array in arrays.items() if (match := _NAME.fullmatch(name))]
    graphs: dict[str, dict[int, np.ndarray]] = {}
    for match, array in sorted(parsed, key=lambda entry: int(entry[0][2])):
        graphs.setdefault(match[1], {})[int(match[2])] = array
    return graphs


def _check_shapes(label: str, graphs: dict[int, np.ndarray], groups: np.ndarray | None) -> None:
    for epoch, graph in graphs.items():
        size = graph.shape[0] if groups is None else groups.size
        if graph.shape != (size, size):
            raise DataError(f"{label}: expected a graph ({size}, {size}) at epoch {epoch}, found {graph.shape}")


def _draw_row(axes: np.ndarray, graphs: dict[int, np.ndarray], groups: np.ndarray | None) -> None:
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
