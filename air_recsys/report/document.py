"""What the reports on all models share: the checks before any work, and the page around their sections."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.report.plots.vector import inline_svg
from air_recsys.storage.markup import Markup, element, joined, number_text
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_page(model: Any, learned: str, target: Path) -> None:
    """Raise before any work where there is nothing to report, no place for it, or nothing to draw it with."""
    if not hasattr(model, learned):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first")
    check_target(target)
    import_extra("matplotlib", "viz")


def check_target(target: Path) -> None:
    """Raise `ParameterError` where a page cannot be written: its place is a folder, or there is no folder for it."""
    if target.is_dir() or not target.parent.is_dir():
        obstacle = f"the folder {target}" if target.is_dir() else f"no folder {target.parent}"
        raise ParameterError(f"expected a file in an existing folder for the report, found {obstacle}")


def page_html(title: str, heading: str, lead: str, contents: Mapping[str, str], body: Sequence[Markup]) -> str:
    """Return a page of sections, with links to them: `contents` has their titles by name."""
    links = [element("li", element("a", text, href=f"#{name}")) for name, text in contents.items()]
    return Template(read_asset("report.html")).substitute(
        title=element("title", title),
        heading=element("h1", heading),
        lead=element("p", lead),
        contents=element("nav", element("ul", *links), **{"aria-label": "Contents"}),
        sections=joined(body),
    )


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


def read_asset(name: str) -> str:
    """Return the text of a file of `air_recsys/report/assets`."""
    return files("air_recsys.report").joinpath("assets", name).read_text(encoding="utf-8")


def escaped_json(value: Any) -> str:
    r"""Return JSON that may stand in a script element whatever its texts say."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def single_page(template: str, *, title: str, data: Any, styles: Sequence[str], scripts: Sequence[str]) -> str:
    """Return the page of a template with its assets and data inside.

    The policy of the page allows these scripts alone and no request. The template is an asset with the places
    ``{{title}}`` (plain text), ``{{policy}}``, ``{{styles}}``, ``{{data}}`` (as JSON), ``{{scripts}}`` and
    ``{{licences}}``; styles and scripts are assets in the order of the page.
    """
    codes = [read_asset(name) for name in scripts]
    contents = {
        "title": html.escape(title),
        "policy": _policy(codes),
        "styles": "\n".join(f"<style>\n{read_asset(name)}</style>" for name in styles),
        "data": escaped_json(data),
        "scripts": "\n".join(f"<script>{code}</script>" for code in codes),
        "licences": html.escape(read_asset("force-graph.LICENSES.txt"), quote=False),
    }
    # One pass: filled-in text is never searched for places.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: contents[match[1]], read_asset(template))


def _policy(codes: Sequence[str]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes)
    scripts = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
