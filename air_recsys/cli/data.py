"""Commands on data sets: list and fetch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from air_recsys.cli import options, paths

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


app = paths.App(help="Data sets: a list, and downloads from their publishers.", no_args_is_help=True)


@app.command("list")
def list_sets(json_file: options.JsonFile = None) -> None:
    """Print the data sets that have a loader, their size, and whether they can be fetched; terms of use as JSON."""
    import pandas as pd

    from air_recsys.datasets import available

    table = available().reset_index()
    shown = pd.DataFrame(table, columns=["name", "users", "items", "ratings", "fetchable", "title"])
    options.show_frame(shown, None)
    options.write_figures(json_file, table.to_dict("records"), origin=False)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name that `datasets list` prints.")],
    destination: Annotated[
        Path | None, typer.Option("--to", help="Folder to write to, by default a cache folder.")
    ] = None,
) -> None:
    """Download a data set from its publisher, check it and unpack it."""
    from air_recsys.datasets import fetch as fetched

    typer.echo(f"{name} is in {fetched(name, destination)}")


ItemTitles = Annotated[
    Path | None, typer.Option("--titles", help="CSV with the columns id (or item, movieId, ...) and title.")
]


def titles_or_none(file: Path | None, item_ids: np.ndarray) -> pd.Series | None:
    """Return titles by item id; None without a file."""
    from air_recsys.data.readers.titles import read_titles, titles_of

    return None if file is None else titles_of(read_titles(file, item_ids))


def with_titles(table: pd.DataFrame, titles: pd.Series | None) -> pd.DataFrame:
    """Return a table with a column of titles beside that of the items, empty for items without one."""
    if titles is None:
        return table
    named, known = table.copy(), titles.dropna().to_dict()
    named.insert(table.columns.tolist().index("item") + 1, "title", [known.get(item, "") for item in table["item"]])
    return named
