"""Figures of speed: how time grows with size, and error against time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import (
    BLUE,
    GREEN,
    ORANGE,
    figure_and_axes,
    finish,
    logarithmic,
    new_grid,
    positive,
)
from air_recsys.report.plots.panels import colors_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TIMES = {
    "epoch_seconds": ("an epoch", BLUE),
    "sweep_seconds": ("a sweep", BLUE),
    "refresh_seconds": ("choosing edges", ORANGE),
    "first_seconds": ("the start", GREEN),
}
_SIZES = {
    "n_ratings": "ratings",
    "n_users": "users",
    "n_items": "items",
    "n_factors": "width of the factors",
    "graph_neighbors": "neighbours in the graphs",
}


def plot_growth(rows: Iterable[Mapping[str, Any]], exponents: Iterable[Mapping[str, Any]]) -> Figure:
    """Draw seconds against size on logarithmic scales, one axes a sweep, each line with its exponent.

    Parameters
    ----------
    rows : iterable of dict
        The first report of `benchmarks.scale.bench_growth`: "sweep", the sizes, and seconds:
        "epoch_seconds", "refresh_seconds" or "sweep_seconds", and "first_seconds". Those that are zero or NaN leave a
        gap.
    exponents : iterable of dict
        The second one: the exponents under the same names, by "sweep".

    Raises
    ------
    DataError
        If there is nothing to draw.

    Examples
    --------
    >>> rows = [{"sweep": "n_ratings", "n_ratings": n, "epoch_seconds": n / 1e6} for n in (10**6, 10**7)]
    >>> figure = plot_growth(rows, [{"sweep": "n_ratings", "epoch_seconds": 1.0}])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['an epoch, exponent 1.00']
    """
    groups = _table(rows, "sweep").groupby("sweep", sort=False)
    sweeps = {name: table.sort_values(str(name)) for name, table in groups}
    slopes = {row["sweep"]: row for row in exponents}
    figure, grid = new_grid(1, len(sweeps))
    for axes, (name, table) in zip(grid[0], sweeps.items(), strict=True):
        _draw_growth(axes, str(name), table, slopes.get(name, {}))
    grid[0, 0].set_ylabel("seconds")
    return figure


def plot_error_over_time(
    rows: Iterable[Mapping[str, Any]], curves: Iterable[Mapping[str, Any]], ax: Axes | None = None
) -> Figure:
    """Draw the test RMSE against the seconds of training: a line along the training, a point at its end.

    Parameters
    ----------
    rows, curves : iterable of dict
        The two reports of `benchmarks.speed.bench_ratings`: "model", "seconds", "rmse". Models without an
        RMSE are left out.
    ax : Axes, optional

    Raises
    ------
    DataError
        If no model has an RMSE.

    Examples
    --------
    >>> ends = [{"model": "AIR", "seconds": 9.0, "rmse": 0.85}, {"model": "ALS", "seconds": 2.0, "rmse": None}]
    >>> axes = plot_error_over_time(ends, [{"model": "AIR", "seconds": 1.0, "rmse": 0.9}]).axes[0]
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['AIR']
    """
    ends = _table(rows, "model").dropna(subset=["rmse"])
    if ends.empty:
        raise DataError("expected models with an RMSE, found none")
    figure, axes = figure_and_axes(ax)
    along = pd.DataFrame(list(curves), columns=["model", "seconds", "rmse"])
    for name, color in colors_of(ends["model"].tolist()).items():
        end = ends[ends["model"] == name]
        axes.plot(end["seconds"], end["rmse"], "o", color=color, label=name)
        course = along[along["model"] == name]
        axes.plot([*course["seconds"], *end["seconds"]], [*course["rmse"], *end["rmse"]], color=color)
    # A start far above all ends would flatten the differences between them.
    low, high = float(np.min(ends["rmse"])), float(np.max(ends["rmse"]))
    margin = max(0.25 * (high - low), 0.005)
    axes.set_ylim(low - margin, high + 4 * margin)
    logarithmic(axes, "x")
    finish(axes, "Error over time", "seconds of training", "test RMSE", loc="lower left")
    return figure


def _table(rows: Iterable[Mapping[str, Any]], key: str) -> pd.DataFrame:
    table = pd.DataFrame([dict(row) for row in rows])
    if table.empty or key not in table:
        raise DataError(f"expected rows with {key!r}, found {'none' if table.empty else list(table.columns)}")
    return table


def _draw_growth(axes: Axes, name: str, table: pd.DataFrame, slopes: Mapping[str, Any]) -> None:
    for time, (label, color) in _TIMES.items():
        seconds = positive(table.get(time, ()))
        if np.isnan(seconds).all():
            continue
        slope = slopes.get(time)
        exponent = f", exponent {slope:.2f}" if slope is not None and np.isfinite(slope) else ""
        axes.plot(table[name], seconds, "o-", color=color, label=label + exponent)
    if not axes.lines:
        raise DataError(f"expected seconds > 0 of the sweep {name!r}, found none")
    logarithmic(axes, "x")
    logarithmic(axes, "y")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high * (high / low) ** 0.5)  # room for the legend
    size = _SIZES.get(name, name)
    finish(axes, f"Growth with {size}", size, "", loc="upper left")
