"""The distribution of the ratings, and of their number a user or an item."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics import rmse
from air_recsys.metrics.checks import check_pairs
from air_recsys.models import Recommender
from air_recsys.report.plots.axes import (
    BLUE,
    COLOR_OF,
    GREEN,
    ORANGE,
    figure_and_axes,
    finish,
    light_grid,
    logarithmic,
    new_figure,
)
from air_recsys.report.plots.graphs import ceiling
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import check_choice, import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_FEW = 20  # distinct ratings that get a bar each
_BARS = 30
_WIDE = 20  # largest by smallest count from which on a logarithmic axis is better


def plot_ratings(data: Any, ax: Axes | None = None) -> Figure:
    """Draw how often each rating was given: a bar a value, or a histogram where there are more than 20 values.

    Limits are left out.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> figure = plot_ratings(Interactions.from_dense([[5, 3], [5, float("nan")]]))
    >>> [int(bar.get_height()) for bar in figure.axes[0].patches]
    [1, 2]
    """
    data = as_interactions(data, allow_negative=True, reads=("relation",)).measured_alone()
    values, counts = np.unique(data.ratings, return_counts=True)
    figure, axes = figure_and_axes(ax)
    if values.size > _FEW:
        axes.hist(data.ratings, bins=40, color=GREEN, alpha=0.85)
    else:
        width = 0.8 * (np.diff(values).min() if values.size > 1 else 1)
        axes.bar(values, counts, width=width, color=GREEN, alpha=0.85)
        axes.set_xticks(values)
    axes.set(title="Distribution of the ratings", xlabel="rating", ylabel="ratings")
    light_grid(axes)
    return figure


def plot_counts(data: Any, side: Literal["user", "item"] = "user", ax: Axes | None = None) -> Figure:
    """Draw how many ratings the users (or items) have, on a logarithmic axis where they differ much.

    Those without any rating are counted in the title, not in the bars.

    Raises
    ------
    ParameterError
        For another side.
    """
    check_choice("side", side, ("user", "item"))
    data = as_interactions(data, allow_negative=True, reads=("relation",))
    index, size = (data.user_index, data.n_users) if side == "user" else (data.item_index, data.n_items)
    counts = np.bincount(index, minlength=size)
    rated = counts[counts > 0]
    figure, axes = figure_and_axes(ax)
    wide = rated.max() > _WIDE * rated.min()
    low, high = int(rated.min()), int(rated.max())
    if wide:
        starts = np.unique(np.ceil(np.geomspace(low, high + 1, _BARS + 1)))
    else:
        width = -(-(high + 1 - low) // _BARS)
        starts = np.arange(low, high + width + 1, width)
    bins = [float(start) - 0.5 for start in starts]  # each bar stands for whole numbers of ratings
    axes.hist(rated, bins=bins, color=COLOR_OF[side], alpha=0.85)
    if low == high:
        axes.set_xlim(low - 3, low + 3)
    axes.locator_params(axis="y", integer=True)
    if wide:
        logarithmic(axes, "x")
    median = float(np.median(rated))
    axes.axvline(median, color=ink(), alpha=0.8, linestyle="--", linewidth=1.2, label=f"median {median:g}")
    without = size - rated.size
    title = f"Ratings per {side}" + (f" ({without:,} without)" if without else "")
    finish(axes, title, "ratings", f"{side}s")
    return figure


_LARGEST = 2_000


def plot_completion(model: Recommender) -> Figure:
    """Draw the ratings given, the ratings completed, and both graphs, all sorted by the graphs' communities.

    Parameters
    ----------
    model : Recommender
        Fitted, with both graphs and at most 2,000 users and items.

    Raises
    ------
    DataError
        For a model without graphs, or too large to be drawn as matrices.
    """
    figure, model = new_figure((11, 9)), copy.copy(model)  # the state of this moment, whatever another thread writes
    data = model.interactions_
    if model.user_graph_ is None or model.item_graph_ is None:
        raise DataError(f"expected a model with both graphs, found a {type(model).__name__} without")
    if max(data.n_users, data.n_items) > _LARGEST:
        raise DataError(f"expected at most {_LARGEST} users and items, found {data.n_users} and {data.n_items}")
    users, items = _order(model.user_graph_), _order(model.item_graph_)
    given = data.to_dense()[np.ix_(users, items)]
    pairs = np.repeat(data.user_ids[users], items.size), np.tile(data.item_ids[items], users.size)
    completed = model.predict(*pairs).reshape(given.shape)
    axes = figure.subplots(2, 2)
    style = {"cmap": "viridis", "vmin": float(data.ratings.min()), "vmax": float(data.ratings.max())}
    titles = f"Given: {data.density:.0%} of the ratings", "Completed"
    for panel, values, title in zip(axes[0], (given, completed), titles, strict=True):
        _matrix(figure, panel, values, title, ("items", "users"), **style)
    _graph(figure, axes[1, 0], model.user_graph_, users, "user")
    _graph(figure, axes[1, 1], model.item_graph_, items, "item")
    return figure


def _order(graph: SimilarityGraph) -> np.ndarray:
    return np.argsort(graph.communities().to_numpy(), kind="stable")


def _graph(figure: Figure, axes: Axes, graph: SimilarityGraph, order: np.ndarray, kind: str) -> None:
    weights = graph.to_scipy().toarray()[np.ix_(order, order)]
    title = f"Learned {kind} graph: {graph.communities().nunique()} communities"
    style = {"cmap": weight_colors(), "vmin": 0, "vmax": ceiling(weights, 0.95)}
    _matrix(figure, axes, weights, title, (f"{kind}s", f"{kind}s"), **style)


def _matrix(figure: Figure, axes: Axes, values: np.ndarray, title: str, labels: tuple[str, str], **style: Any) -> None:
    image = axes.imshow(values, interpolation="nearest", aspect="auto", **style)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
    figure.colorbar(image, ax=axes)


_FEW_VALUES = 12  # distinct true values that get a column each
_ROWS = 60
_DOTS = 3_000  # pairs; more are drawn as densities
_ARROWS, _SPREAD = 1_000, 0.15  # limits that are drawn, and how wide those of one place, of the range


def plot_predictions(
    y_true: Any, y_pred: Any, ax: Axes | None = None, *, limits: pd.DataFrame | None = None
) -> Figure:
    """Draw predicted against true ratings as densities, with the diagonal where both are equal.

    At most 12 distinct true values (stars, 0/1) get a column each: its colours are the shares of the predictions for
    that value, its mark their median. Other truths are dots, more than 3,000 hexagons in colours of their pairs.

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
    ax : Axes, optional
    limits : DataFrame, optional
        Pairs of which a limit alone is known: truth, the limit, predicted, and relation, 1 for above and -1 for below.
        They are open arrows from the limit to where the truth is, at most 1,000.

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
    if np.unique(truth).size <= _FEW_VALUES:
        _draw_columns(axes, truth, predicted)
    elif truth.size > _DOTS:
        _draw_hexagons(axes, truth, predicted)
    else:
        axes.scatter(truth, predicted, s=9, color=BLUE, alpha=0.5, linewidths=0, label="measured")
    low, high = min(truth.min(), predicted.min()), max(truth.max(), predicted.max())
    if limits is not None:
        _draw_limits(axes, limits.iloc[np.random.default_rng(0).permutation(len(limits))[:_ARROWS]], np.ptp(truth))
        low, high = max(low, axes.get_xlim()[0]), min(high, axes.get_xlim()[1])
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


def _draw_limits(axes: Axes, limits: pd.DataFrame, width: float) -> None:
    """Draw an open arrow for each limit, a little apart from the others of its place, on the side of the truth."""
    for sign, marker in ((-1, "<"), (1, ">")):
        some = limits[limits["relation"] == sign]
        apart = sign * _SPREAD * width * np.random.default_rng(0).random(len(some))
        look = {"s": 14, "facecolors": "none", "edgecolors": GREEN, "linewidths": 0.6, "alpha": 0.6}
        if len(some):
            told = f"known to be {'above' if sign > 0 else 'below'}"
            axes.scatter(some["truth"] + apart, some["predicted"], marker=marker, label=told, rasterized=True, **look)


def _draw_hexagons(axes: Axes, truth: np.ndarray, predicted: np.ndarray) -> None:
    scale = import_extra("matplotlib.colors", "viz").LogNorm()
    hexagons = axes.hexbin(truth, predicted, gridsize=50, cmap=weight_colors(), norm=scale, mincnt=1, linewidths=0.1)
    axes.figure.colorbar(hexagons, ax=axes, label="pairs")
