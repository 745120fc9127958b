"""Predicted against true ratings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.metrics import rmse
from air_recsys.metrics.checks import check_pairs
from air_recsys.report.plots.axes import ORANGE, figure_and_axes
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 12  # distinct true values that get a column each
_ROWS = 60


def plot_predictions(y_true: Any, y_pred: Any, ax: Axes | None = None) -> Figure:
    """Draw predicted against true ratings as densities, with the diagonal where both are equal.

    At most 12 distinct true values (stars, 0/1) get a column each: its colours are the shares of the predictions for
    that value, its mark their median. Other truths are drawn as hexagons, coloured by the number of pairs.

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
    ax : Axes, optional

    Raises
    ------
    DataError
        If the two differ in length, are empty, or hold NaN.

    Examples
    --------
    >>> figure = plot_predictions([1, 1, 5], [1.5, 0.5, 4.0])
    >>> figure.axes[0].get_title()
    'Predicted against true: 3 ratings, RMSE 0.707'
    """
    truth, predicted = check_pairs(y_true, y_pred)
    figure, axes = figure_and_axes(ax, (5.4, 4.4))
    if np.unique(truth).size <= _FEW:
        _draw_columns(axes, truth, predicted)
    else:
        _draw_hexagons(axes, truth, predicted)
    low, high = min(truth.min(), predicted.min()), max(truth.max(), predicted.max())
    axes.plot([low, high], [low, high], color=ORANGE, linestyle="--", linewidth=1, label="predicted = true")
    error = rmse(truth, predicted)
    axes.set_title(f"Predicted against true: {truth.size:,} ratings, RMSE {error:.3g}", fontsize="medium")
    axes.set(xlabel="true rating", ylabel="predicted rating")
    axes.legend(loc="upper left", fontsize="small", frameon=False)
    return figure


def _draw_columns(axes: Axes, truth: np.ndarray, predicted: np.ndarray) -> None:
    levels, column = np.unique(truth, return_inverse=True)
    low, high = float(predicted.min()), float(predicted.max())
    if high == low:
        low, high = low - 0.5, high + 0.5
    half = 0.4 * (np.diff(levels).min() if levels.size > 1 else 1.0)
    columns = [predicted[column == index] for index in range(levels.size)]
    shares = np.stack([np.histogram(values, bins=_ROWS, range=(low, high))[0] / values.size for values in columns])
    edges = np.linspace(low, high, _ROWS + 1)
    meshes = [
        axes.pcolormesh(
            [level - half, level + half],
            edges,
            np.ma.masked_equal(share[:, None], 0),
            cmap=weight_colors(),
            vmin=0,
            vmax=shares.max(),
            rasterized=True,  # drawn as vectors, white lines would show between the cells
        )
        for level, share in zip(levels.tolist(), shares, strict=True)
    ]
    ticks = import_extra("matplotlib.ticker", "viz").MaxNLocator(5)  # the same ones while the layout is sought
    axes.figure.colorbar(meshes[0], ax=axes, ticks=ticks, label="share of its pairs")
    medians = [float(np.median(values)) for values in columns]
    axes.plot(levels, medians, "o", color=ink(), markersize=5, label="median")
    axes.set_xticks(levels)


def _draw_hexagons(axes: Axes, truth: np.ndarray, predicted: np.ndarray) -> None:
    scale = import_extra("matplotlib.colors", "viz").LogNorm()
    hexagons = axes.hexbin(truth, predicted, gridsize=50, cmap=weight_colors(), norm=scale, mincnt=1, linewidths=0.1)
    axes.figure.colorbar(hexagons, ax=axes, label="pairs")
