"""The explorer that docs/explorer.md shows: made when the site is built, from a made catalogue."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

PAGE = Path("_static", "story-explorer.html")


def write(app: Sphinx, error: Exception | None) -> None:
    """Train on the catalogue and write the page beside those of the site."""
    if error is not None or app.builder.format != "html":
        return
    from made_library import make_catalogue, write_page

    target = Path(app.outdir) / PAGE
    target.parent.mkdir(parents=True, exist_ok=True)
    write_page(make_catalogue(), target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page when the others are there."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
