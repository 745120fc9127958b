"""What single-panel drawings share: the axes given or new ones, and the course of training to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.models import Recommender
from air_recsys.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # of Okabe and Ito, whom colour-blind readers can follow
_NARROW, _VERY_NARROW = 200, 6  # highest by lowest value: powers of ten, and 1, 2, 5, are too few ticks below
COLOR_OF = {"user": BLUE, "item": ORANGE}


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure of a width and height in inches, which a notebook shows by itself.

    Examples
    --------
    >>> new_figure((4, 3)).get_size_inches()
    array([4., 3.])
    """
    import_extra("matplotlib.figure", "viz")
    from air_recsys.plotting.notebook import NotebookFigure

    return NotebookFigure(figsize=size, layout="constrained")


def figure_and_axes(ax: Axes | None, size: tuple[float, float] = (5.2, 3.6)) -> tuple[Figure, Axes]:
    """Return the axes given and their figure, or a new figure of a size in inches with one axes.

    Examples
    --------
    >>> figure, axes = figure_and_axes(None)
    >>> figure_and_axes(axes) == (figure, axes)
    True
    """
    if ax is not None:
        figure: Any = ax.figure
        return figure, ax
    figure = new_figure(size)
    return figure, figure.subplots()


def side_by_side(n_panels: int, cell: tuple[float, float] = (3.9, 3.2)) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n_panels` axes in one row, each of a width and height in inches."""
    size = (cell[0] * n_panels, cell[1])
    figure = new_figure(size)
    return figure, list(figure.subplots(1, n_panels, squeeze=False).flat)


def history_of(source: Recommender | pd.DataFrame) -> pd.DataFrame:
    """Return the course of training of a model, or the table given.

    Raises
    ------
    NotFittedError
        For a model that is not fitted.
    DataError
        Where there is no course: the model does not train in epochs.
    """
    if isinstance(source, pd.DataFrame):
        history, name = source, "this table"
    elif hasattr(source, "history_"):
        history, name = source.history_, f"this {type(source).__name__}"
    else:
        raise NotFittedError(f"this {type(source).__name__} is not fitted yet: call fit first")
    if history.empty or "epoch" not in history:
        raise DataError(f"expected a course of training with the column epoch, found none in {name}")
    return history


def positive_line(history: pd.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Return epochs and values of a column with NaN where a logarithmic axis has no place; None without any value."""
    if name not in history:
        return None
    values = history[name].to_numpy(dtype=np.float64)
    shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    return None if np.isnan(shown).all() else (history["epoch"].to_numpy(), shown)


def has_swept(history: pd.DataFrame) -> bool:
    """Return whether the epochs of a course of training are sweeps of a posterior.

    Examples
    --------
    >>> has_swept(pd.DataFrame({"epoch": [1], "fit": [0.5]})), has_swept(pd.DataFrame({"epoch": [1], "noise": [0.5]}))
    (False, True)
    """
    return positive_line(history, "noise") is not None


def mark_kept(ax: Axes, source: Recommender | pd.DataFrame) -> None:
    """Draw a line at the epoch whose state the model kept, where it is not simply the last one."""
    kept = getattr(source, "n_iter_", None)
    if kept is not None and kept < history_of(source)["epoch"].iloc[-1]:
        ax.axvline(kept, color="0.4", linestyle=":", linewidth=1.2, label=f"kept: epoch {kept}")


def logarithmic(ax: Axes, side: Literal["x", "y"]) -> None:
    """Make one axis logarithmic, with ticks that can be read where it spans less than some powers of ten.

    Examples
    --------
    >>> _, axes = figure_and_axes(None)
    >>> axes.set_xlim(2, 30), logarithmic(axes, "x")
    ((2.0, 30.0), None)
    >>> axes.figure.canvas.draw()
    >>> [text.get_text() for text in axes.get_xticklabels()]
    ['1', '2', '5', '10', '20', '50']
    """
    axis: Any = ax.xaxis if side == "x" else ax.yaxis
    (ax.set_xscale if side == "x" else ax.set_yscale)("log")
    low, high = ax.get_xlim() if side == "x" else ax.get_ylim()
    ticker = import_extra("matplotlib.ticker", "viz")
    if high / low < _NARROW:
        digits = (1, 2, 5) if high / low > _VERY_NARROW else range(1, 10)
        axis.set_major_locator(ticker.LogLocator(subs=digits))
        axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def light_grid(ax: Axes) -> None:
    """Draw a faint grid behind the data, and leave the frame open above and to the right."""
    ax.grid(True, which="major", color="0.9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
