"""Figures, axes and the course of training that the drawings of this package share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.models import Recommender
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito: colour-blind readers tell them apart
COLOR_OF = {"user": BLUE, "item": ORANGE}


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure of a width and height in inches, which a notebook shows by itself."""
    import_extra("matplotlib.figure", "viz")
    from air_recsys.report.plots.notebook import NotebookFigure

    return NotebookFigure(figsize=size, layout="constrained")


def figure_and_axes(ax: Axes | None, size: tuple[float, float] = (5.2, 3.6)) -> tuple[Figure, Axes]:
    """Return the axes given and their figure, or a new figure of a size in inches with one axes."""
    if ax is not None:
        figure: Any = ax.figure
        return figure, ax
    figure = new_figure(size)
    return figure, figure.subplots()


def new_grid(rows: int, columns: int, cell: tuple[float, float] = (3.9, 3.2)) -> tuple[Figure, np.ndarray]:
    """Return a figure of equal cells, of width and height in inches, and its axes (rows, columns)."""
    figure = new_figure((cell[0] * columns, cell[1] * rows))
    return figure, figure.subplots(rows, columns, squeeze=False)


def side_by_side(source: Any, plots: Sequence[Callable[..., Figure]]) -> Figure:
    """Draw several plots of one source in a row of axes."""
    figure, grid = new_grid(1, len(plots))
    for axes, plot in zip(grid[0], plots, strict=True):
        plot(source, ax=axes)
    return figure


def history_of(source: Recommender | pd.DataFrame) -> pd.DataFrame:
    """Return the course of training of a model, or the table given."""
    if isinstance(source, pd.DataFrame):
        history, name = source, "this table"
    elif hasattr(source, "history_"):
        history, name = source.history_, f"this {type(source).__name__}"
    else:
        raise NotFittedError(f"this {type(source).__name__} is not fitted yet: call fit first")
    if history.empty or "epoch" not in history:
        raise DataError(f"expected a course of training with the column epoch, found none in {name}")
    return history


def positive(values: object) -> np.ndarray:
    """Return the values, with NaN where a logarithmic axis has no place for them."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(numbers) & (numbers > 0), numbers, np.nan)


def positive_line(history: pd.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the epochs and the `positive` values of a column; None without any value."""
    values = positive(history.get(name, ()))
    return None if np.isnan(values).all() else (history["epoch"].to_numpy(), values)


def has_swept(history: pd.DataFrame) -> bool:
    """Return whether the epochs of a course of training are sweeps of a posterior."""
    return positive_line(history, "noise") is not None


def mark_kept(ax: Axes, source: Recommender | pd.DataFrame) -> None:
    """Draw a line at the epoch whose state the model kept, where it is not simply the last one."""
    kept = getattr(source, "n_iter_", None)
    if kept is not None and kept < history_of(source)["epoch"].iloc[-1]:
        ax.axvline(kept, color=ink(), alpha=0.7, linestyle=":", linewidth=1.2, label=f"kept: epoch {kept}")


def logarithmic(ax: Axes, side: Literal["x", "y"], narrow: float = 200, very_narrow: float = 6) -> None:
    """Make one axis logarithmic, with readable ticks where it spans less than some powers of ten.

    The ticks are powers of ten where highest / lowest value is at least `narrow`, their multiples by 1, 2 and 5 where
    it is larger than `very_narrow`, and else those by 1 to 9.

    Examples
    --------
    >>> _, axes = figure_and_axes(None)
    >>> axes.set_xlim(2, 30), logarithmic(axes, "x")
    ((2.0, 30.0), None)
    >>> axes.figure.canvas.draw()
    >>> [text.get_text() for text in axes.get_xticklabels()]
    ['1', '2', '5', '10', '20', '50']
    """
    ax.set(**{f"{side}scale": "log"})
    axis: Any = ax.xaxis if side == "x" else ax.yaxis
    low, high = axis.get_view_interval()
    ticker = import_extra("matplotlib.ticker", "viz")
    if high / low < narrow:
        digits = (1, 2, 5) if high / low > very_narrow else range(1, 10)
        axis.set_major_locator(ticker.LogLocator(subs=digits))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def light_grid(ax: Axes, width: float = 0.7) -> None:
    """Draw a faint grid behind the data, and leave the frame open above and to the right."""
    ax.grid(True, which="major", color=ink(), alpha=0.12, linewidth=width)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def finish(ax: Axes, title: str, x: str, y: str, /, **legend: Any) -> None:
    """Set the title and the labels of both axes, draw the grid, and add a small legend."""
    ax.set(title=title, xlabel=x, ylabel=y)
    light_grid(ax)
    ax.legend(**({"frameon": False, "fontsize": "small"} | legend))


def bare(axes: Axes) -> None:
    """Remove ticks and frame, and keep labels and title."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_weights(axes: Axes, weights: np.ndarray, title: str, **style: Any) -> None:
    """Draw a matrix of weights with a thin frame."""
    axes.imshow(weights, cmap=weight_colors(), **style)
    axes.set_title(title, fontsize="medium")
    axes.spines[:].set(visible=True, color=ink(), alpha=0.3, linewidth=0.6)
