"""The theme of figures: the colour of text and lines, and what is behind them.

Drawings take the colour that matplotlib writes text in, `ink`, and fade it where a line matters less. A theme paints
everything of that colour anew while a figure is rendered, so one figure can be shown in any theme.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from air_recsys.storage.validation import check_choice, import_extra

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

INKS = {"light": "#1c2126", "dark": "#e4e8ec", "auto": "#777d85"}
"""Ink by theme; that of "auto" has a contrast above 4:1 on white and on the near-black of dark notebooks."""

_WEIGHTS = ((0.0, "#0072B200"), (0.3, "#0072B280"), (0.65, "#9C4FA6D9"), (1.0, "#D55E00FF"))
_PARTS = ("color", "edgecolor", "facecolor", "markeredgecolor", "markerfacecolor")
_NO_COLORS = ("none", "auto", "inherit")
_theme = "auto"


def use_theme(name: str) -> None:
    """Choose the theme of all figures, including those that were drawn before.

    Parameters
    ----------
    name : {"auto", "light", "dark"}
        "light" and "dark" have no background, and dark or light text, in notebooks and in files. "auto", the default,
        has grey text without a background in notebooks, which is readable in light and dark ones; its files have the
        background of matplotlib's style, by default white.

    Raises
    ------
    ParameterError
        For another name.

    Examples
    --------
    >>> use_theme("dark")
    >>> theme_in_use()
    'dark'
    >>> use_theme("auto")
    """
    global _theme
    _theme = check_choice("name", name, INKS)


def theme_in_use() -> str:
    """Return the name that `use_theme` was given last."""
    return _theme


def ink() -> str:
    """Return the colour of text in matplotlib's style, which a theme replaces."""
    rc: Any = import_extra("matplotlib", "viz").rcParams
    return rc["text.color"]


def weight_colors() -> Colormap:
    """Return the colours of weights and shares: from nothing at all over blue to orange, on light and on dark."""
    return import_extra("matplotlib.colors", "viz").LinearSegmentedColormap.from_list("weights", _WEIGHTS)


@contextmanager
def inked(figure: Figure, color: str) -> Iterator[None]:
    """Give everything that has the colour `ink` another one within the block."""
    if color == ink():
        yield
        return
    _recolor(figure, ink(), color)
    try:
        yield
    finally:
        _recolor(figure, color, ink())


def _recolor(figure: Figure, old: str, new: str) -> None:
    colors = import_extra("matplotlib.colors", "viz")
    code, to_rgba = colors.to_hex(old), colors.to_rgba
    for artist in figure.findobj():
        for part in _PARTS:
            color = getattr(artist, f"get_{part}", lambda: None)()
            if not isinstance(color, str | tuple) or color in _NO_COLORS or colors.to_hex(color) != code:
                continue
            alpha = to_rgba(color)[3]
            if alpha:
                getattr(artist, f"set_{part}")((*to_rgba(new)[:3], alpha))
