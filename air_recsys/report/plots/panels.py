"""Panels of the paper's figures, and the colours, axes and legend that their drawings share."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.exceptions import DataError
from air_recsys.report.plots.axes import new_grid
from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart, without the yellow that is faint on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B")
_LETTER = 0.085  # inches, of the default font


@dataclass(frozen=True, eq=False)
class Panel:
    """What was measured on one matrix, by system.

    Attributes
    ----------
    title : str
    curves : dict of str to dict
        "epoch", "observed" and "hidden" (NMAE), "user_energy" and "item_energy" of each system, lists of one length;
        {} where a system has none.
    arrays : dict of str to dict
        "completed" (m, n) and "shown" (m, n) of bool, "user_graph_E" (m, m) and "item_graph_E" (n, n) at epoch E.
    numbers : dict of str to dict
        "nmae", and for pictures "psnr" in dB and "ssim".
    truth : ndarray, shape (m, n), optional
        The full picture, brightness in [0, 1].
    groups : tuple of ndarray, shapes (m,) and (n,), optional
        True groups of rows and of columns.
    """

    title: str
    curves: dict[str, dict[str, list[float]]]
    arrays: dict[str, dict[str, np.ndarray]]
    numbers: dict[str, dict[str, float]]
    truth: np.ndarray | None = None
    groups: tuple[np.ndarray, np.ndarray] | None = None


def check_panels(panels: list[Panel]) -> None:
    """Raise `DataError` where there are no panels."""
    if not panels:
        raise DataError("expected at least one panel to draw, found none")


def in_order(lists: Iterable[Iterable[str]]) -> list[str]:
    """Return all distinct names of some lists: those of the longest list first, the others behind.

    Examples
    --------
    >>> in_order([["DMF", "AIR"], ["DMF", "TV", "AIR"], ["KNN"]])
    ['DMF', 'TV', 'AIR', 'KNN']
    """
    longest_first = sorted((list(dict.fromkeys(names)) for names in lists), key=len, reverse=True)
    return list(dict.fromkeys(name for names in longest_first for name in names))


def colors_of(names: list[Any]) -> dict[Any, Any]:
    """Return a colour for every name.

    Examples
    --------
    >>> colors_of(["AIR", "DMF"])
    {'AIR': '#0072B2', 'DMF': '#D55E00'}
    """
    if len(names) <= len(_COLORS):
        return dict(zip(names, _COLORS, strict=False))
    scale = import_extra("matplotlib", "viz").colormaps["viridis"]
    return dict(zip(names, scale(np.linspace(0.25, 0.85, len(names))), strict=True))


def panel_axes(panels: list[Panel]) -> tuple[Figure, list[Axes]]:
    """Return a figure and one titled axes a panel, at most three side by side."""
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    figure, grid = new_grid(-(-len(panels) // columns), columns, (3.6, 3.0) if len(panels) > 1 else (4.8, 3.6))
    axes = list(grid.flat)
    for unused in axes[len(panels) :]:
        unused.remove()
    for one, panel in zip(axes, panels, strict=False):
        one.set_title(textwrap.fill(panel.title, 36))
    return figure, axes[: len(panels)]


def legend_below(figure: Figure, handles: list[Artist]) -> None:
    """Put one legend below all axes, in as many columns as the width has room for, and make room in height."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    room = max(1, int(figure.get_figwidth() / (_LETTER * longest + 0.7)))
    rows = -(-len(handles) // room)
    figure.set_figheight(figure.get_figheight() + 0.22 * rows)
    figure.legend(handles=handles, loc="outside lower center", ncols=-(-len(handles) // rows), frameon=False)


def bare(axes: Axes) -> None:
    """Remove ticks and frame, and keep labels and title."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_weights(axes: Axes, weights: np.ndarray, title: str, **style: Any) -> None:
    """Draw a matrix of weights with a thin frame."""
    axes.imshow(weights, cmap=weight_colors(), **style)
    axes.set_title(title, fontsize="medium")
    axes.spines[:].set(visible=True, color=ink(), alpha=0.3, linewidth=0.6)
