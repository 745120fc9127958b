"""Colours of several systems, bare axes and matrices of weights, which drawings share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.report.plots.theme import ink, weight_colors
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers tell apart, without the yellow that is faint on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A6D3B")


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


def bare(axes: Axes) -> None:
    """Remove ticks and frame, and keep labels and title."""
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_weights(axes: Axes, weights: np.ndarray, title: str, **style: Any) -> None:
    """Draw a matrix of weights with a thin frame."""
    axes.imshow(weights, cmap=weight_colors(), **style)
    axes.set_title(title, fontsize="medium")
    axes.spines[:].set(visible=True, color=ink(), alpha=0.3, linewidth=0.6)
