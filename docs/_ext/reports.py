"""Links to the reports of ``benchmarks/``, which are no pages of the site: they become files to download."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

_LINK = re.compile(r"\]\(((?:\.\./)+benchmarks/reports/[\w-]+\.md)(?:#[\w-]*)?\)")


def as_downloads(text: str) -> str:
    """Return Markdown in which links to reports are links to files.

    Examples
    --------
    >>> as_downloads("[why](../benchmarks/reports/speed.md#memory), [how](start.md)")
    '[why](path:../benchmarks/reports/speed.md), [how](start.md)'
    """
    return _LINK.sub(r"](path:\1)", text)


def rewrite(app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the source of a page, in place."""
    source[0] = as_downloads(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to pages that are read."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
