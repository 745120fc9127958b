"""Curves over training, and errors by depth and width."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.report.plots.axes import light_grid, logarithmic, positive
from air_recsys.report.plots.panels import Panel, check_panels, colors_of, in_order, legend_below, panel_axes
from air_recsys.report.plots.theme import ink
from air_recsys.storage.validation import check_choice, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Line = tuple[np.ndarray, np.ndarray]

_ENERGY = "Dirichlet energy"
_QUANTITIES = {"observed": "NMAE", "hidden": "NMAE", "user_energy": _ENERGY, "item_energy": _ENERGY}
_LABELS = {"observed": "observed entries", "hidden": "hidden entries", "user_energy": "rows", "item_energy": "columns"}
_STYLES = {"observed": ":", "hidden": "-", "user_energy": "-", "item_energy": "--"}
_NAME = re.compile(r"depth (\d+), width (\d+|full)")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def plot_curves(panels: list[Panel], names: tuple[str, ...]) -> Figure:
    """Draw curves over training on a logarithmic scale, one axes a panel and one colour a system.

    Values that a logarithmic scale cannot show (zero, NaN, infinite) leave a gap; systems and panels without any
    other value are left out.

    Parameters
    ----------
    panels : list of Panel
    names : tuple of str
        Which curves: "observed" and "hidden", or "user_energy" and "item_energy", or one of them.

    Raises
    ------
    ParameterError
        For names of curves that are not known or share no axis.
    DataError
        For no panels, no curves of those names, or a curve that is not as long as its epochs.

    Examples
    --------
    >>> curves = {"AIR": {"epoch": [0, 100], "hidden": [0.3, 0.1]}, "KNN": {}}
    >>> figure = plot_curves([Panel("Barbara", curves, {}, {})], ("hidden",))
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['AIR']
    """
    quantity = _quantity(names)
    check_panels(panels)
    drawn = [(panel, lines) for panel in panels if (lines := _lines(panel, names))]
    if not drawn:
        raise DataError(f"expected curves named {' or '.join(names)}, found none that can be drawn")
    colors = colors_of(in_order([system for system, _ in lines] for _, lines in drawn))
    styles = {name: _STYLES[name] if len(names) > 1 else "-" for name in names}
    figure, grid = panel_axes([panel for panel, _ in drawn])
    for axes, (_, lines) in zip(grid, drawn, strict=True):
        for (system, name), line in lines.items():
            axes.plot(*line, color=colors[system], linestyle=styles[name])
        axes.locator_params(axis="x", nbins=5)
        _finish(axes, "epoch", quantity)
    handle = import_extra("matplotlib.lines", "viz").Line2D
    handles = [handle([], [], color=color, label=system) for system, color in colors.items()]
    if len(styles) > 1:
        handles += [
            handle([], [], color=ink(), alpha=0.6, linestyle=styles[name], label=_LABELS[name]) for name in names
        ]
    legend_below(figure, handles)
    return figure


def plot_depth_width(panels: list[Panel]) -> Figure:
    """Draw the error on the hidden entries by depth, one axes a panel and one line a width.

    Parameters
    ----------
    panels : list of Panel
        Their `numbers` hold systems named "depth D, width W", W an integer or "full", with "nmae".

    Raises
    ------
    DataError
        For no panels, no errors, or a system of another name.

    Examples
    --------
    >>> numbers = {"depth 2, width 5": {"nmae": 0.2}, "depth 3, width 5": {"nmae": 0.1}}
    >>> axes = plot_depth_width([Panel("Rank 5", {}, {}, numbers)]).axes[0]
    >>> axes.lines[0].get_xydata().tolist()
    [[2.0, 0.2], [3.0, 0.1]]
    """
    check_panels(panels)
    drawn = [(panel, lines) for panel in panels if (lines := _by_width(panel))]
    if not drawn:
        raise DataError("expected the nmae of systems named 'depth D, width W', found none that can be drawn")
    widths = sorted({width for _, lines in drawn for width in lines})
    colors = colors_of(widths)
    markers = {width: _MARKERS[index % len(_MARKERS)] for index, width in enumerate(widths)}
    figure, grid = panel_axes([panel for panel, _ in drawn])
    handles = {}
    for axes, (_, lines) in zip(grid, drawn, strict=True):
        for width, (depths, errors) in lines.items():
            label = f"width {width:.0f}" if np.isfinite(width) else "full width"
            style = {"color": colors[width], "marker": markers[width], "markersize": 5}
            handles[width] = axes.plot(depths, errors, label=label, **style)[0]
        axes.set_xticks(sorted({depth for depths, _ in lines.values() for depth in depths}))
        axes.margins(x=0.1)
        _finish(axes, "depth", "NMAE")
    legend_below(figure, [handles[width] for width in widths])
    return figure


def _quantity(names: tuple[str, ...]) -> str:
    """Return what the y axis of these curves measures."""
    for name in names:
        check_choice("a name of curves", name, _QUANTITIES)
    quantities = {_QUANTITIES[name] for name in names}
    if len(quantities) != 1:
        raise ParameterError(f"expected names of curves with one y axis, found {names!r}")
    return quantities.pop()


def _lines(panel: Panel, names: tuple[str, ...]) -> dict[tuple[str, str], Line]:
    """Return epochs and values by system and name, for those with something to show."""
    lines = {}
    for system, curves in panel.curves.items():
        for name in names:
            epochs, values = np.asarray(curves.get("epoch", ())), positive(curves.get(name, ()))
            if name in curves and len(values) != len(epochs):
                sizes = f"{len(epochs)} values of {name}, as many as epochs, found {len(values)}"
                raise DataError(f"{panel.title}, {system}: expected {sizes}")
            if not np.isnan(values).all():
                lines[system, name] = (epochs, values)
    return lines


def _by_width(panel: Panel) -> dict[float, Line]:
    """Return depths in ascending order and their errors, by width; full width is infinite."""
    errors: dict[float, dict[int, float]] = {}
    for system, numbers in panel.numbers.items():
        parsed = _NAME.fullmatch(system)
        if parsed is None:
            raise DataError(f"{panel.title}: expected a system named 'depth D, width W', found {system!r}")
        width = np.inf if parsed[2] == "full" else float(parsed[2])
        errors.setdefault(width, {})[int(parsed[1])] = numbers.get("nmae", np.nan)
    lines = {
        width: (np.array(sorted(by)), positive([by[depth] for depth in sorted(by)])) for width, by in errors.items()
    }
    return {width: line for width, line in sorted(lines.items()) if not np.isnan(line[1]).all()}


def _finish(axes: Axes, x: str, y: str) -> None:
    logarithmic(axes, "y", narrow=50)
    axes.set(xlabel=x, ylabel=y)
    light_grid(axes, 0.6)
