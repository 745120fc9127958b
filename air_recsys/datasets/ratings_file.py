"""Ratings from the caller's own CSV, TSV and Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

from tqdm import tqdm

from air_recsys.datasets.files import build_interactions
from air_recsys.datasets.parquet_checks import find_parts
from air_recsys.datasets.rating_columns import ColumnNames, Passed, RatingColumns
from air_recsys.datasets.ratings_parquet import read_parquet
from air_recsys.datasets.ratings_text import SEPARATORS, choose_separator, ending_of, read_text, unknown_kind
from air_recsys.exceptions import DataFileError
from air_recsys.interactions import Duplicates, Interactions
from air_recsys.validation import check_choice

_LARGE = 100 * 2**20  # bytes that take some seconds to read


def read_ratings(
    path: str | Path,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = None,
    sep: str | None = None,
    duplicates: Duplicates = "error",
    allow_negative: bool = False,
    progress: bool | None = None,
) -> Interactions:
    r"""Read a table with one rating per row from the caller's file.

    A file is read a million rows at a time, so 100 million ratings need less than 3 GB.

    Text files have a header line and are UTF-8, gzipped or not; fields may be quoted. Ids that are all integers
    become integers; otherwise ids stay text exactly as written, so "007" and "7" remain two users.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), or a ``.parquet`` file or a folder of such parts
        (needs the extra ``data``).
    user, item : str
        Names of the columns with ids.
    rating : str or None
        Name of the column with numbers; None gives every row the rating 1.
    timestamp : str, optional
        Name of a column with numbers or ISO 8601 dates.
    sep : str, optional
        The character between two fields. By default comma for ``.csv`` and tab for the others, or whichever of
        comma, tab, semicolon and bar makes the header hold the named columns.
    duplicates : {"error", "first", "last", "mean", "sum"}
        The value of a repeated pair.
    allow_negative : bool
        Accept negative ratings.
    progress : bool, optional
        Show a progress bar; by default for more than 100 MB.

    Returns
    -------
    Interactions

    Raises
    ------
    DataFileError
        Where the file is missing, empty, not text, of an unknown kind, lacks a named column, or breaks a rule of
        `Interactions`; at the first line that is broken, lacks an id or has a rating that is no number; and, before
        any row is read, where a part of a folder has other columns than the first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "mine.csv")
    >>> _ = path.write_text("user,item,rating\nann,x,5\nbob,y,3.5\n")
    >>> read_ratings(path)
    Interactions(n_users=2, n_items=2, n_ratings=2, density=50.00 %, ratings 3.5..5)
    >>> folder.cleanup()
    """
    check_choice("duplicates", duplicates, get_args(Duplicates))
    file, names = Path(path).expanduser(), ColumnNames(user, item, rating, timestamp)
    read = _reader(file, names, sep)
    return build_interactions(
        file, lambda: _watched(read, file, progress).to_interactions(duplicates, allow_negative=allow_negative)
    )


def _reader(file: Path, names: ColumnNames, sep: str | None) -> Callable[[Passed], RatingColumns]:
    """Return what reads a file or a folder, after a check of its kind."""
    if not file.exists():
        raise DataFileError(f"expected a file with ratings, found no file {str(file)!r}")
    kind = ending_of(file)
    if file.is_file() and kind in SEPARATORS:
        return partial(read_text, file, names, choose_separator(file, names.given, sep, kind))
    if file.is_file() and file.suffix.lower() != ".parquet":
        raise unknown_kind(file)
    return partial(read_parquet, file, names)


def _watched(read: Callable[[Passed], RatingColumns], file: Path, progress: bool | None) -> RatingColumns:
    """Read behind a progress bar, which counts the bytes of the file as it is."""
    n_bytes = sum(part.stat().st_size for part in find_parts(file))
    shown = n_bytes > _LARGE if progress is None else progress
    with tqdm(total=n_bytes, desc=file.name, unit="B", unit_scale=True, disable=not shown) as bar:
        return read(lambda position: bar.update(position - bar.n))
