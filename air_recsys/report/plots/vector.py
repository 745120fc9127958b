"""A figure as SVG elements that stand in a page and take its font and its colour of text."""

from __future__ import annotations

import hashlib
import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from air_recsys.report.plots.axes import BLUE, GREEN, ORANGE
from air_recsys.report.plots.theme import INKS, ink, theme_in_use
from air_recsys.storage.validation import import_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = {"svg.hashsalt": "air_recsys", "svg.fonttype": "none", "font.size": 10}  # the same figure, the same bytes
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
_FAMILY = re.compile(r"font-family:[^;]*;?\s*")
_SHORTHAND = re.compile(r"font:\s*((?:\w+\s+)*?)([\d.]+px)[^;]*")  # style and weight, size, families
_REFERENCE = re.compile(r"(?:url\(#|^#)([\w-]+)")
_IMAGE_DPI = 130
_NAMED = {"blue": BLUE, "orange": ORANGE, "green": GREEN}
_VARIABLES = {color.lower(): f"var(--{name}, {color})" for name, color in _NAMED.items()}


def inline_svg(figure: Figure, label: str) -> str:
    """Return a figure as an SVG element for the body of a page.

    Text is text, in the font of the page. What has the ink of the theme is painted in the page's ``currentColor``, and
    nothing is painted behind, so the figure follows the page into the dark. Three colours of data have names: a page
    may set ``--blue``, ``--orange`` and ``--green``.
    """
    root = _without_names(ET.fromstring(_saved(figure)))
    for parent in root.iter():
        for child in [each for each in parent if each.tag in ("metadata", "style")]:
            parent.remove(child)
    _follow_page(root)
    _rename(root, hashlib.sha256(ET.tostring(root) + label.encode()).hexdigest()[:8])
    for name in ("height", "version"):
        root.attrib.pop(name, None)
    points = float(root.attrib["viewBox"].split()[2])
    root.attrib |= {"width": f"{points * 4 / 3:.0f}", "fill": "currentColor", "role": "img", "aria-label": label}
    return ET.tostring(root, encoding="unicode")


def _saved(figure: Figure) -> bytes:
    target = io.BytesIO()
    with import_extra("matplotlib", "viz").rc_context(_STYLE):
        figure.savefig(target, format="svg", dpi=_IMAGE_DPI, transparent=True, metadata=_NO_METADATA)
    return target.getvalue()


def _without_names(root: ET.Element) -> ET.Element:
    """Remove the namespaces of XML, which HTML does not know."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    return root


def _follow_page(root: ET.Element) -> None:
    to_hex = import_extra("matplotlib.colors", "viz").to_hex
    inks = {to_hex(ink())} | ({INKS[theme_in_use()]} if theme_in_use() != "auto" else set())
    painted = dict.fromkeys(inks, "currentColor") | _VARIABLES
    colors = re.compile("|".join(painted), re.IGNORECASE)
    for element in root.iter():
        if "style" in element.attrib:
            style = colors.sub(lambda found: painted[found[0].lower()], element.attrib["style"])
            element.attrib["style"] = _FAMILY.sub("", _SHORTHAND.sub(r"font-size: \2", style))


def _rename(root: ET.Element, prefix: str) -> None:
    """Keep the ids that are referred to, and make them unlike those of other figures."""
    values = [value for element in root.iter() for value in element.attrib.values()]
    referred = {name for value in values for name in _REFERENCE.findall(value)}
    for element in root.iter():
        if element.attrib.get("id", "") not in referred:
            element.attrib.pop("id", None)
        for name, value in element.attrib.items():
            if name == "id":
                element.attrib[name] = f"{prefix}-{value}"
            elif name == "href" or "url(#" in value:
                element.attrib[name] = _REFERENCE.sub(lambda found: found[0].replace("#", f"#{prefix}-"), value)
