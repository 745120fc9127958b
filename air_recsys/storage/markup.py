"""HTML from Python values, every text escaped; and cards, by which a notebook shows an object."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

_EDGE = "rgba(128,128,128,.4)"
# No colour of its own: a card takes those of the notebook, dark or light.
_CARD = (
    f"display:inline-block;max-width:60em;padding:.5em 1em;border:1px solid {_EDGE};border-radius:6px;color:inherit"
)
_TABLE = "border-collapse:collapse;margin:.4em 0;color:inherit;background:transparent;font-size:.95em"
_ROW = "background:transparent"
_CELL = f"padding:.15em .9em .15em 0;text-align:left;border:0;border-bottom:1px solid {_EDGE};color:inherit"
_NUMBER = _CELL.replace("left", "right")
_BAR = "display:inline-block;height:.7em;background:currentColor;opacity:.45;width:"


class Markup(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def element(tag: str, *children: Any, **attributes: Any) -> Markup:
    """Return an element around its children; what is not `Markup` is escaped.

    Attributes named as keywords of Python end in an underscore, as in ``class_``.
    """
    named = "".join(f' {name.rstrip("_")}="{html.escape(str(value))}"' for name, value in attributes.items())
    return Markup(f"<{tag}{named}>{joined(children)}</{tag}>")


def joined(children: Iterable[Any]) -> Markup:
    """Return all children one after the other, escaped where they are not `Markup`."""
    return Markup("".join(child if isinstance(child, Markup) else html.escape(str(child)) for child in children))


def card(title: str, facts: Mapping[str, Any], *further: Markup) -> str:
    """Return what a notebook shows of an object: a title, one row per fact, and what follows; None is no fact.

    Examples
    --------
    >>> shown = card("Graph <1>", {"nodes": 12345, "label": None})
    >>> "Graph &lt;1&gt;" in shown, "12,345" in shown, "label" in shown
    (True, True, False)
    """
    rows = [
        element(
            "tr", element("th", name, scope="row", style=_CELL), element("td", _text(value), style=_CELL), style=_ROW
        )
        for name, value in facts.items()
        if value is not None
    ]
    heading = element("div", title, style="font-weight:600;white-space:pre-wrap")
    body = element("table", element("tbody", *rows), style=_TABLE) if rows else ""
    return element("div", heading, body, *further, style=_CARD)


def card_table(caption: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> Markup:
    """Return a table of a card; numbers stand right, by `number_text`."""
    head = element("tr", *[element("th", name, scope="col", style=_CELL) for name in columns], style=_ROW)
    cells = [
        [element("td", _text(value), style=_NUMBER if _is_number(value) else _CELL) for value in row] for row in rows
    ]
    body = [element("tr", *row, style=_ROW) for row in cells]
    named = element(
        "caption", caption, style="caption-side:top;text-align:left;color:inherit;padding:.3em 0;opacity:.8"
    )
    return element("table", named, element("thead", head), element("tbody", *body), style=_TABLE)


def bar(share: float) -> Markup:
    """Return a bar that is as long as a share of the longest one."""
    return element("span", style=f"{_BAR}{8 * share:.2f}em")


def number_text(value: Any) -> str:
    """Return a number as people read it: whole ones with thousands apart, others with four significant digits.

    Examples
    --------
    >>> number_text(12345), number_text(0.91234), number_text(1e-5), number_text(float("nan"))
    ('12,345', '0.9123', '1e-05', '-')
    """
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.4g}" if np.isfinite(value) else "-"


def _text(value: Any) -> Any:
    return number_text(value) if _is_number(value) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
