"""The distribution of the ratings, and of their number a user or an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.report.plots.axes import COLOR_OF, GREEN, figure_and_axes, finish, light_grid, logarithmic
from air_recsys.report.plots.theme import ink
from air_recsys.storage.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FEW = 20  # distinct ratings that get a bar each
_BARS = 30
_WIDE = 20  # largest by smallest count from which on a logarithmic axis is better


def plot_ratings(data: Interactions, ax: Axes | None = None) -> Figure:
    """Draw how often each rating was given: a bar a value, or a histogram where there are more than 20 values.

    Examples
    --------
    >>> figure = plot_ratings(Interactions.from_dense([[5, 3], [5, float("nan")]]))
    >>> [int(bar.get_height()) for bar in figure.axes[0].patches]
    [1, 2]
    """
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


def plot_counts(data: Interactions, side: Literal["user", "item"] = "user", ax: Axes | None = None) -> Figure:
    """Draw how many ratings the users (or items) have, on a logarithmic axis where they differ much.

    Those without any rating are counted in the title, not in the bars.

    Raises
    ------
    ParameterError
        For another side.
    """
    check_choice("side", side, ("user", "item"))
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
    axes.locator_params(axis="y", integer=True)
    if wide:
        logarithmic(axes, "x")
    median = float(np.median(rated))
    axes.axvline(median, color=ink(), alpha=0.8, linestyle="--", linewidth=1.2, label=f"median {median:g}")
    without = size - rated.size
    title = f"Ratings per {side}" + (f" ({without:,} without)" if without else "")
    finish(axes, title, "ratings", f"{side}s")
    return figure
