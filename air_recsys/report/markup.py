"""HTML from Python values: every text is escaped, every picture is in the page itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.report.plots.vector import inline_svg
from air_recsys.storage.markup import Markup, element, joined, number_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Markup", "element", "gallery", "joined", "number_text", "picture", "section", "table"]


def section(name: str, title: str, *children: Any) -> Markup:
    """Return a section with a heading, the target of links to #name."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *children, id=name, **{"aria-labelledby": f"{name}-title"})


def table(caption: str, columns: list[str], rows: Iterable[Iterable[Any]]) -> Markup:
    """Return a table with a caption; the first cell of a row is its heading.

    Numbers are shown by `number_text` and aligned right, `Markup` as it is, anything else as escaped text.
    """
    head = element("tr", *[element("th", name, scope="col") for name in columns])
    body = [element("tr", *[_cell(value, not i) for i, value in enumerate(row)]) for row in rows]
    whole = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", whole, class_="scroll", tabindex="0", role="region", **{"aria-label": caption})


def picture(figure: Figure, description: str, caption: str, wide: bool = False) -> Markup:
    """Return a figure as SVG in the colours of the page, with a description for those who cannot see it.

    A `wide` one scrolls where it has no room, so that its text stays readable.
    """
    drawn = Markup(inline_svg(figure, description))
    if wide:
        drawn = element("div", drawn, class_="wide", tabindex="0", role="region", **{"aria-label": caption})
    return element("figure", drawn, element("figcaption", caption))


def gallery(*pictures: Markup) -> Markup:
    """Return pictures side by side where there is room, else one below the other."""
    return element("div", *pictures, class_="gallery")


def _cell(value: Any, is_head: bool) -> Markup:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    content = number_text(value) if is_number else value
    if is_head:
        return element("th", content, scope="row")
    return element("td", content, class_="number") if is_number else element("td", content)
