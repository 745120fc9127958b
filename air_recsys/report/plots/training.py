"""The course of training: fit or noise, energies and validation error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError
from air_recsys.models import Recommender
from air_recsys.report.plots.axes import (
    BLUE,
    COLOR_OF,
    GREEN,
    figure_and_axes,
    finish,
    has_swept,
    history_of,
    logarithmic,
    mark_kept,
    positive_line,
    side_by_side,
)
from air_recsys.report.plots.theme import INKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Source = Recommender | pd.DataFrame
    Styles = dict[str, tuple[str, str, str]]  # column to label, colour and line style

_FIT: Styles = {"objective": ("objective F", INKS["auto"], "--"), "fit": ("fit", BLUE, "-")}
_NOISE: Styles = {"noise": ("noise", BLUE, "-")}
_ENERGIES: Styles = {
    "user_energy": ("user graph", COLOR_OF["user"], "-"),
    "item_energy": ("item graph", COLOR_OF["item"], "--"),
}
_VALIDATION: Styles = {"validation_rmse": ("validation", GREEN, "-")}


def plot_fit(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the data term :math:`|P_\Omega(X - Y)|^2 / (mn)` and the whole objective over the epochs.

    Both are in units of squared ratings after the model's scaling; the axis is logarithmic.

    Parameters
    ----------
    source : Recommender or DataFrame
        A fitted model, or its `history_`.
    ax : Axes, optional

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    DataError
        Without a course of training, and where it lacks what is drawn.
    """
    return _draw(source, ax, _FIT, "Fit to the ratings", "mean over all pairs")[0]


def plot_noise(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the noise of a posterior over its sweeps: the standard deviation that users and items have in common.

    It is in the unit of the ratings: what ratings vary beside the scores. Parameters and errors are those of
    `plot_fit`; only a posterior has a noise.
    """
    return _draw(source, ax, _NOISE, "Noise", "standard deviation of a rating")[0]


def plot_energy(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    r"""Draw the Dirichlet energies :math:`\mathrm{tr}(X^\top L X)` of both graphs over the epochs.

    Energies are drawn without their strengths in the objective; the axis is logarithmic and leaves out what is below
    half of the lowest value after the first record, since factors that start near 0 have almost no energy. A graph
    that is left out has none. Parameters and errors are those of `plot_fit`.
    """
    figure, axes = _draw(source, ax, _ENERGIES, "Energy of the learned graphs", "Dirichlet energy")
    later = [line[1][1:] for name in _ENERGIES if (line := positive_line(history_of(source), name))]
    if any(np.isfinite(values).any() for values in later):
        axes.set_ylim(bottom=0.5 * np.nanmin(np.concatenate(later)))
    return figure


def plot_validation(source: Recommender | pd.DataFrame, ax: Axes | None = None) -> Figure:
    """Draw the error on the validation part over the epochs, in the unit of the ratings, and the lowest one.

    Parameters and errors are those of `plot_fit`.
    """
    figure, axes = _draw(source, ax, _VALIDATION, "Validation error", "RMSE (unit of the ratings)")
    history = history_of(source)
    best = history.iloc[int(history["validation_rmse"].argmin())]  # the first of equals is the one that is kept
    lowest = float(best["validation_rmse"])
    axes.plot([float(best["epoch"])], [lowest], "o", color=GREEN, label=f"lowest: {lowest:.4g}")
    axes.legend(frameon=False, fontsize="small")
    return figure


def plot_training(source: Recommender | pd.DataFrame) -> Figure:
    """Draw the whole course of training side by side: fit (noise of a posterior), energies, validation error.

    Parameters and errors are those of `plot_fit`.

    Examples
    --------
    >>> history = pd.DataFrame({"epoch": [0, 50], "fit": [0.5, 0.1], "user_energy": [3.0, 1.0]})
    >>> [axes.get_title() for axes in plot_training(history).axes]
    ['Fit to the ratings', 'Energy of the learned graphs']
    """
    history = history_of(source)
    panels = ((_FIT, plot_fit), (_NOISE, plot_noise), (_ENERGIES, plot_energy), (_VALIDATION, plot_validation))
    plots = [plot for columns, plot in panels if any(positive_line(history, name) for name in columns)]
    if not plots:
        raise DataError(f"expected a column such as fit or user_energy, found {list(history.columns)}")
    return side_by_side(source, plots)


def _draw(source: Source, ax: Axes | None, styles: Styles, title: str, quantity: str) -> tuple[Figure, Axes]:
    history = history_of(source)
    lines = {name: line for name in styles if (line := positive_line(history, name)) is not None}
    if not lines:
        raise DataError(f"expected values > 0 of {' or '.join(styles)} in the course of training, found none")
    figure, axes = figure_and_axes(ax)
    for name, line in lines.items():
        label, color, style = styles[name]
        marker = "o" if len(line[0]) == 1 else None  # a line needs two points
        axes.plot(*line, color=color, linestyle=style, marker=marker, label=label)
    logarithmic(axes, "y")
    mark_kept(axes, source)
    finish(axes, title, "sweep" if has_swept(history) else "epoch", quantity)
    return figure, axes
