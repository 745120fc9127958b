"""Figures of one panel in the size that a phone shows without shrinking its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from air_recsys.report.plots.axes import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (3.9, 3.0)  # inches


def panel(plot: Callable[..., Figure], *source: Any, size: tuple[float, float] = SIZE, **options: Any) -> Figure:
    """Return a figure with one panel and no title of its own: the page has a caption below it."""
    figure = new_figure(size)
    axes = figure.subplots()
    plot(*source, ax=axes, **options)
    axes.set_title("")
    return figure
