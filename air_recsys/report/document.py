"""What the reports on all models share: the checks before any work, and the page around their sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.report.markup import Markup, element, joined
from air_recsys.report.single_page import read_asset
from air_recsys.storage.validation import import_extra


def check_page(model: Any, learned: str, target: Path) -> None:
    """Raise before any work where there is nothing to report, no place for it, or nothing to draw it with.

    Parameters
    ----------
    model : object
    learned : str
        An attribute that it has once it is fitted.
    target : Path

    Raises
    ------
    NotFittedError, ParameterError, MissingExtraError
    """
    if not hasattr(model, learned):
        raise NotFittedError(f"this {type(model).__name__} is not fitted yet: call fit first")
    check_target(target)
    for package in ("matplotlib", "networkx"):
        import_extra(package, "viz")


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
