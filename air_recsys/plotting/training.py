"""The course of training: fit or noise, energies and validation error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.models import Recommender
from air_recsys.plotting.axes import (
    BLUE,
    COLOR_OF,
    GREEN,
    figure_and_axes,
    has_swept,
    history_of,
    light_grid,
    logarithmic,
    mark_kept,
    positive_line,
    side_by_side,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FIT = {"objective": ("objective F", "0.35", "--"), "fit": ("fit", BLUE, "-")}
_NOISE = {"noise": ("noise", BLUE, "-")}
_ENERGIES = {
    "user_energy": ("user graph", COLOR_OF["user"], "-"),
    "item_energy": ("item graph", COLOR_OF["item"], "--"),
}
_VALIDATION = {"validation_rmse": ("validation", GREEN, "-")}


def plot_fit(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the data term :math:`|P_\Omega(X - Y)|^2 / (mn)` and the whole objective over the epochs.

    Both are in units of squared ratings after the model's scaling; the axis is logarithmic.

    Parameters
    ----------
    source : Recommender or DataFrame
        A fitted model, or its `history_`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Without a course of training.
    """
    return _draw(source, ax, _FIT, "Fit to the ratings", "mean over all pairs")


def plot_noise(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the noise of a posterior over its sweeps: the standard deviation that users and items have in common.

    It is in the unit of the ratings: what ratings vary beside the scores.

    Parameters
    ----------
    source : Recommender or DataFrame
    ax : Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Without a course of training, and without a posterior.
    """
    return _draw(source, ax, _NOISE, "Noise", "standard deviation of a rating")


def plot_energy(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the Dirichlet energies :math:`\mathrm{tr}(X^\top L X)` of both graphs over the epochs.

    Energies stand as they are, without their strengths in the objective; the axis is logarithmic and leaves out
    what is below half of the lowest value after the first record, since factors that start near 0 have almost no
    energy. A graph that is left out has none.

    Parameters
    ----------
    source : Recommender or DataFrame
    ax : Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Without a course of training, and where no graph was learned.
    """
    figure = _draw(source, ax, _ENERGIES, "Energy of the learned graphs", "Dirichlet energy")
    axes = ax if ax is not None else figure.axes[0]
    later = [line[1][1:] for name in _ENERGIES if (line := positive_line(history_of(source), name))]
    if any(np.isfinite(values).any() for values in later):
        axes.set_ylim(bottom=0.5 * np.nanmin(np.concatenate(later)))
    return figure


def plot_validation(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the error on the validation part over the epochs, in the unit of the ratings, and the lowest one.

    Parameters
    ----------
    source : Recommender or DataFrame
    ax : Axes, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Without a course of training, and where there was no validation part.
    """
    figure = _draw(source, ax, _VALIDATION, "Validation error", "RMSE (unit of the ratings)")
    axes = ax if ax is not None else figure.axes[0]
    best = (
        history_of(source).sort_values("validation_rmse", kind="stable").iloc[0]
    )  # the first of equals is the one that is kept
    lowest = float(best["validation_rmse"])
    axes.plot([float(best["epoch"])], [lowest], "o", color=GREEN, label=f"lowest: {lowest:.4g}")
    axes.legend(frameon=False, fontsize="small")
    return figure


def plot_training(source: Recommender | pd.DataFrame) -> Figure:
    """Draw all that is known of a training side by side: fit (noise of a posterior), energies, validation error.

    Parameters
    ----------
    source : Recommender or DataFrame

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DataError
        Without a course of training.

    Examples
    --------
    >>> history = pd.DataFrame({"epoch": [0, 50], "fit": [0.5, 0.1], "user_energy": [3.0, 1.0]})
    >>> [axes.get_title() for axes in plot_training(history).axes]
    ['Fit to the ratings', 'Energy of the learned graphs']
    """
    history = history_of(source)
    panels = ((_FIT, plot_fit), (_NOISE, plot_noise), (_ENERGIES, plot_energy), (_VALIDATION, plot_validation))
    shown = [plot for columns, plot in panels if any(positive_line(history, name) for name in columns)]
    if not shown:
        raise DataError(f"expected a column such as fit or user_energy, found {list(history.columns)}")
    figure, grid = side_by_side(len(shown))
    for axes, plot in zip(grid, shown, strict=True):
        plot(source, axes)
    return figure


def _draw(
    source: Recommender | pd.DataFrame,
    ax: Axes | None,
    columns: dict[str, tuple[str, str, str]],
    title: str,
    quantity: str,
) -> Figure:
    history = history_of(source)
    lines = {name: line for name in columns if (line := positive_line(history, name)) is not None}
    if not lines:
        raise DataError(f"expected values > 0 of {' or '.join(columns)} in the course of training, found none")
    figure, axes = figure_and_axes(ax)
    for name, line in lines.items():
        label, color, style = columns[name]
        marker = "o" if len(line[0]) == 1 else None  # a line needs two points
        axes.plot(*line, color=color, linestyle=style, marker=marker, label=label)
    logarithmic(axes, "y")
    axes.set(title=title, xlabel="sweep" if has_swept(history) else "epoch", ylabel=quantity)
    mark_kept(axes, source)
    light_grid(axes)
    axes.legend(frameon=False, fontsize="small")
    return figure
