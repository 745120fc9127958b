"""Plots of accuracy, of the reliability of intervals, and of errors by groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import BLUE, ORANGE, figure_and_axes, light_grid
from air_recsys.report.plots.theme import INKS, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_BAR: dict[str, Any] = {"fmt": "o", "markersize": 6, "capsize": 3, "linewidth": 1.5}


def plot_accuracy(rows: Sequence[Mapping[str, Any]], measure: str, label: str = "", ax: Axes | None = None) -> Figure:
    """Draw one measure of several models as points with their 95 % intervals, the first model above.

    Parameters
    ----------
    rows : sequence of mapping
        "model", the measure, and the ends of its interval if there is one, as in "rmse low" and "rmse high".
    measure : str
    label : str
        Label of the axis; by default the measure.
    ax : Axes, optional

    Raises
    ------
    DataError
        Without rows, or if one lacks the measure.

    Examples
    --------
    >>> rows = [{"model": "AIR", "rmse": 0.87, "rmse low": 0.85, "rmse high": 0.89}, {"model": "mean", "rmse": 1.12}]
    >>> [text.get_text() for text in plot_accuracy(rows, "rmse").axes[0].get_yticklabels()]
    ['AIR', 'mean']
    """
    if not rows or any(measure not in row for row in rows):
        raise DataError(f"expected at least one model, and {measure!r} of each, found {[dict(row) for row in rows]}")
    figure, axes = figure_and_axes(ax, (5.2, 0.9 + 0.5 * len(rows)))
    for place, row in enumerate(rows):
        value = row[measure]
        ends = [row.get(f"{measure} {end}", value) for end in ("low", "high")]
        bars = np.abs(np.array(ends)[:, None] - value)
        axes.errorbar(value, place, xerr=bars, color=ORANGE if place == 0 else INKS["auto"], **_BAR)
    axes.set_yticks(range(len(rows)), [str(row["model"]) for row in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=label or measure)
    light_grid(axes)
    return figure


def plot_reliability(table: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the observed share against the stated share; a calibrated model is on the diagonal.

    Parameters
    ----------
    table : DataFrame
        Columns meant (stated), held (observed), low and high (an interval of held), all in [0, 1]: the share of
        ratings in intervals, or the share of interacting pairs for probabilities.
    ax : Axes, optional

    Raises
    ------
    DataError
        For another table.

    Examples
    --------
    >>> table = pd.DataFrame({"meant": [0.5, 0.9], "held": [0.48, 0.9], "low": [0.4, 0.88], "high": [0.5, 0.92]})
    >>> plot_reliability(table).axes[0].get_ylabel()
    'observed share'
    """
    _check(table, ("meant", "held", "low", "high"))
    figure, axes = figure_and_axes(ax, (4.2, 3.8))
    axes.axline((0, 0), slope=1, color=ink(), alpha=0.6, linestyle="--", linewidth=1)
    axes.errorbar(table["meant"], table["held"], yerr=_bars(table, "held"), color=BLUE, **_BAR)
    low = min(table["meant"].min(), table["low"].min())
    high = max(table["meant"].max(), table["high"].max())
    margin = 0.06 * (high - low) + 0.01
    axes.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
    axes.set(xlabel="stated share", ylabel="observed share")
    light_grid(axes)
    return figure


def plot_errors(table: pd.DataFrame, quantity: str, ax: Axes | None = None) -> Figure:
    """Draw the RMSE of groups of pairs with its 95 % interval.

    Parameters
    ----------
    table : DataFrame
        Columns lowest and highest (ends of the groups), rmse, low and high (its interval).
    quantity : str
        Name of the quantity that defines the groups.
    ax : Axes, optional

    Raises
    ------
    DataError
        For another table.

    Examples
    --------
    >>> table = pd.DataFrame({"lowest": [1, 9], "highest": [8, 9], "rmse": [1.0, 0.9], "low": 0.8, "high": 1.2})
    >>> [text.get_text() for text in plot_errors(table, "ratings of the user").axes[0].get_xticklabels()]
    ['1 to 8', '9']
    """
    _check(table, ("lowest", "highest", "rmse", "low", "high"))
    figure, axes = figure_and_axes(ax)
    places = np.arange(len(table))
    axes.errorbar(places, table["rmse"], yerr=_bars(table, "rmse"), color=BLUE, **_BAR)
    many = len(table) > 4
    names = [range_text(*ends, many) for ends in zip(table["lowest"], table["highest"], strict=True)]
    axes.set_xticks(places, names, fontsize="small")
    axes.set(xlabel=quantity, ylabel="RMSE", ylim=(0, 1.08 * max(table["high"])))
    light_grid(axes)
    return figure


def range_text(low: float, high: float, short: bool = False) -> str:
    """Return two ends as people write them, one number where they are equal.

    Examples
    --------
    >>> range_text(1, 2000), range_text(3, 3), range_text(1, 8, short=True)
    ('1 to 2,000', '3', '1–8')
    """
    if low == high:
        return f"{low:,g}"
    return f"{low:,g}–{high:,g}" if short else f"{low:,g} to {high:,g}"


def _bars(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return the lengths of the bars below and above, (2, n)."""
    values = table[name].to_numpy()
    return np.maximum([values - table["low"].to_numpy(), table["high"].to_numpy() - values], 0)


def _check(table: pd.DataFrame, names: Sequence[str]) -> None:
    lacking = [name for name in names if name not in table]
    if lacking or table.empty:
        found = f"one without {lacking[0]}" if lacking else "one without rows"
        raise DataError(f"expected a table with the columns {', '.join(names)}, found {found}")


def plot_enrichment(curve: pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the share of interactions in the top of a list, and the share of all interactions there, by its size.

    Parameters
    ----------
    curve : DataFrame
        Of `air_recsys.dti.enrichment_curve`.
    ax : Axes, optional

    Raises
    ------
    DataError
        For another table.
    MissingExtraError

    Examples
    --------
    >>> from air_recsys.dti import enrichment_curve
    >>> plot_enrichment(enrichment_curve([1, 0, 1, 0], [0.9, 0.5, 0.4, 0.1])).axes[0].get_xlabel()
    'pairs at the top of the list'
    """
    _check(curve, ("n_top", "hit_rate", "found"))
    figure, axes = figure_and_axes(ax)
    for name, marker, color, label in (
        ("hit_rate", "o-", BLUE, "hit rate in the top"),
        ("found", "s-", ORANGE, "share of all found"),
    ):
        axes.plot(curve["n_top"], curve[name], marker, color=color, markersize=4, label=label)
    axes.axhline(curve["hit_rate"].iloc[-1], color=ink(), alpha=0.6, linestyle=":", label="hit rate at random")
    axes.set(xscale="log", ylim=(0, 1.02), xlabel="pairs at the top of the list", ylabel="share")
    axes.legend(frameon=False, fontsize="small")
    return figure
