"""The command that writes the page of accuracy tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from air_recsys.cli import options


def page(
    results: Annotated[list[Path], typer.Argument(help="Files that --json of bench ratings, dti or ranking wrote.")],
    out: Annotated[Path, typer.Option(help="The page to write, in Markdown.")],
) -> None:
    """Write the page of accuracy tables from result files."""
    from air_recsys.benchmarks.accuracy.page import accuracy_page

    options.check_folder_of(out)
    out.write_text(accuracy_page(results), encoding="utf-8")
    options.say(f"wrote {out}")
