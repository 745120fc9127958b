"""Ratings from the caller's own CSV, TSV and Parquet files."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.data.columns import are_user_names, check_not_long, looks_like_values, may_be_wide, named_column
from air_recsys.data.interactions import Duplicates, Interactions
from air_recsys.data.readers.forms import FOUND, Form, Writing, first_line, forms_of, widest
from air_recsys.data.readers.lines import build_interactions
from air_recsys.data.readers.rating_columns import ColumnNames, Passed, RatingColumns, Rules
from air_recsys.data.readers.ratings_parquet import find_columns, find_parts, read_parquet
from air_recsys.data.readers.ratings_text import (
    as_integers,
    choose_form,
    is_of_lists,
    read_lists,
    read_text,
    with_hint,
)
from air_recsys.data.readers.sources import check_encoding, regular
from air_recsys.data.readers.tables import is_parquet, read_table
from air_recsys.data.scales import as_scale
from air_recsys.exceptions import DataFileError, ParameterError, quoted
from air_recsys.storage.validation import check_choice, check_real, import_extra

_LARGE = 100 * 2**20  # bytes that take some seconds to read


def read_ratings(
    path: str | Path,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = None,
    sep: str | None = None,
    duplicates: Duplicates = "error",
    allow_negative: bool | None = None,
    progress: bool | None = None,
    *,
    columns: Sequence[str] | None = None,
    rating_scale: tuple[float, float] | None = None,
    missing: float | None = None,
    kind: str | None = None,
    target: Hashable = None,
    encoding: str | None = None,
    quote: bool | None = None,
) -> Interactions:
    r"""Read ratings from a file: one rating per row, or one user per row and one item per column.

    A file with one rating per row is read a million rows at a time, so 100 million ratings need less than 3 GB. A file
    without the named columns has one user per row, if its first column has distinct users and all others have numbers;
    an empty field is not rated. A column `relation`, or a sign before a rating (``> 7``), makes it a limit, see
    `Interactions`.

    Text files have a header line, unless `columns` says otherwise. A file is known by its content, not by its name:
    text, plain or packed by gzip or zip, or Parquet. Of an id only the empty field is missing, "NA" is an id. Ids that
    are all integers become integers; otherwise ids stay text exactly as written, so "007" and "7" remain two users.

    Parameters
    ----------
    path : str or Path
        A file of text, a pipe, "-" for standard input, or a Parquet file or a folder of ``.parquet`` parts (needs the
        extra ``data``).
    user, item : str
        Names of the columns with ids, in upper or lower case. The defaults also take the one column with a usual name
        of such ids, as "userId" or "movie_id".
    rating : str or None
        Name of the column with numbers, likewise. None gives every row the rating 1; in a table with one user per
        row, every cell that is neither empty nor 0.
    timestamp : str, optional
        Name of a column with numbers or ISO 8601 dates.
    sep : str, optional
        The sign between two fields, or "::". By default the one of comma, tab, semicolon, bar, "::" and runs of
        blanks for which the header has the named columns.
    duplicates : {"error", "first", "last", "mean", "sum"}
        The value of a repeated pair.
    allow_negative : bool, optional
        Accept negative ratings; None accepts them, with a warning, where they are part of the scale, see
        `Interactions`.
    progress : bool, optional
        Show a progress bar; by default for more than 100 MB.
    columns : sequence of str, optional
        Names of the first fields of each line, for a file of text without a header line. A file with a user and then
        its items in each line, as those of LightGCN, is ``["user", "item", "..."]`` with ``rating=None``.
    rating_scale : tuple of float, optional
        Lowest and highest possible rating, see `Interactions`; by default the range of the data.
    missing : float, optional
        A number that means not rated, such as 99 in some tables; its rows are left out.
    kind, target : str, optional
        Column of the kinds of events, and the kind that counts, with ``rating=None``, see `Interactions.from_frame`.
    encoding : str, optional
        By default UTF-8, or UTF-16 where the file begins with its mark.
    quote : bool, optional
        Whether fields may be in double quotes. By default they may where commas or semicolons separate them, and in
        other files if the header has quotes or the lines have equally many fields only so; a quote that swallows
        lines which look like rows is then an error.

    Returns
    -------
    Interactions

    Raises
    ------
    DataFileError
        If the file is missing, empty, not text, of an unknown kind, lacks a named column, or breaks a rule of
        `Interactions`; at the first line that is broken, lacks an id or has a rating that is not a number; and, before
        any row is read, if the parts of a folder have different columns.

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
    check_encoding(encoding)
    names, writing = ColumnNames(user, item, rating, timestamp, kind), Writing(sep, encoding, quote)
    rules = Rules(
        duplicates, allow_negative, None if rating_scale is None else as_scale(rating_scale), missing, target
    )
    if missing is not None:
        check_real("missing", missing, minimum=-math.inf)
    with regular(path) as file:
        source = _source(file, names, writing, columns)
        if isinstance(source, Wide):
            return build_interactions(file, lambda: _of_wide(read_wide(file, source, writing), rating, rules))
        return build_interactions(file, lambda: _watched(source, file, progress).to_interactions(rules))


def read_pair_ids(
    path: str | Path, user: str, item: str, *, writing: Writing = FOUND, columns: Sequence[str] | None = None
) -> tuple[list[Any], list[Any]]:
    """Return users and items of a table with one pair per row, in its order; repeated pairs stay."""
    with regular(path) as file:
        source = _source(file, ColumnNames(user, item, None, None), writing, columns)
        if isinstance(source, Wide):
            raise DataFileError(f"{file}: {source.lacking}")
        table = _watched(source, file, None).to_table()
    return table.user_ids[table.users].tolist(), table.item_ids[table.items].tolist()


def _of_wide(frame: pd.DataFrame, rating: str | None, rules: Rules) -> Interactions:
    if rules.missing is not None:
        frame = frame.where(frame != rules.missing)
    if rating is None:
        frame = pd.DataFrame(np.where(frame.fillna(0) != 0, 1.0, np.nan), frame.index, frame.columns)
    return Interactions.from_dense(frame, allow_negative=rules.allow_negative, rating_scale=rules.rating_scale)


def _source(
    file: Path, names: ColumnNames, writing: Writing, columns: Sequence[str] | None
) -> Wide | Callable[[Passed], RatingColumns]:
    """Return what reads a file or a folder, after a check of its content; or that it has one user per row."""
    if not file.exists():
        raise DataFileError(f"expected a file with ratings, found no file {str(file)!r}")
    if file.is_file() and not is_parquet(file):
        return _source_of_text(file, names, writing, columns)
    if columns is not None:
        raise ParameterError(f"columns are for files of text, found {file.name}, which names its columns itself")
    found, header = find_columns(file, names)
    if found is not None:
        names.tell(found, header)
    wide = wide_parquet(file, names) if found is None and file.is_file() else None
    return wide or partial(read_parquet, file, found or names)


def _source_of_text(
    file: Path, names: ColumnNames, writing: Writing, columns: Sequence[str] | None
) -> Wide | Callable[[Passed], RatingColumns]:
    if is_of_lists(names, columns):
        return partial(read_lists, file, names, writing)
    try:
        return partial(read_text, file, choose_form(file, names, columns, writing))
    except DataFileError:
        wide = None if columns is not None else wide_text(file, names, writing)
        if wide is None:
            raise
    return wide


def _watched(read: Callable[[Passed], RatingColumns], file: Path, progress: bool | None) -> RatingColumns:
    """Read behind a progress bar, which counts the bytes of the file as it is."""
    n_bytes = sum(part.stat().st_size for part in find_parts(file))
    shown = n_bytes > _LARGE if progress is None else progress
    with tqdm(total=n_bytes, desc=file.name, unit="B", unit_scale=True, disable=not shown) as bar:
        return read(lambda position: bar.update(position - bar.n))


class Wide(NamedTuple):
    """A file that is no table with one rating per row, and may be one with one user per row."""

    form: Form | None  # of a file of text
    lacking: str  # for a table with one rating per row


def wide_text(path: Path, names: ColumnNames, writing: Writing) -> Wide | None:
    """Return how a file of text may hold one user per row, None where its header says that it does not."""
    line = first_line(path, writing.encoding)
    form = widest(forms_of(path, writing, line), line)
    header = form.split(line)
    numbered = looks_like_values(header[1:])  # items, or a first line without names
    if not _may_be_wide(header, names) or (numbered and not are_user_names(header[:1])):
        return None
    return Wide(form, with_hint(names.lacking(header), names))


def wide_parquet(path: Path, names: ColumnNames) -> Wide | None:
    """Return how a Parquet file may hold one user per row, None where its header says that it does not."""
    header = import_extra("pyarrow.parquet", "data").read_schema(path).names
    return Wide(None, names.lacking(header)) if _may_be_wide(header, names) else None


def read_wide(path: Path, wide: Wide, writing: Writing) -> pd.DataFrame:
    """Return a wide table with users as its index and items as its columns."""
    if wide.form is not None:
        _check_distinct(path, wide, "item", pd.Index(wide.form.split(first_line(path, writing.encoding))[1:]))
    table = read_table(path, "ratings", [0], writing)
    if table.empty:
        raise _refused(path, wide, "found no row below its first line")
    if isinstance(table.index, pd.RangeIndex) and table.shape[1] > 1:
        table = table.set_index(table.columns[0])
    if table.index.hasnans:
        raise _refused(path, wide, "found a row without a user in its first column")
    _check_distinct(path, wide, "user", table.index)
    for name, column in table.items():
        _check_numbers(path, wide, name, column)
    users, items = (as_integers(list(map(str, axis))) for axis in (table.index, table.columns))
    check_not_long([users, *(column for _, column in table.items())], f"{wide.lacking}")
    return table.set_axis(users, axis=0).set_axis(items, axis=1)


def _may_be_wide(header: list[str], names: ColumnNames) -> bool:
    named = (None if name is None else named_column(name, header) for name in (names.item, names.rating))
    return names.timestamp is None and names.kind is None and may_be_wide(header) and not any(named)


def _refused(path: Path, wide: Wide, found: str) -> DataFileError:
    return DataFileError(f"{path}: {wide.lacking}; as a table with one user per row and one item per column: {found}")


def _check_distinct(path: Path, wide: Wide, side: str, ids: pd.Index) -> None:
    if not ids.is_unique:
        raise _refused(path, wide, f"found the {side} {quoted(ids[ids.duplicated()][0])} twice")


def _check_numbers(path: Path, wide: Wide, name: object, column: pd.Series) -> None:
    if column.dtype.kind in "biuf":
        return
    numbers = np.asarray(pd.to_numeric(column, errors="coerce"), dtype=np.float64)
    broken = np.flatnonzero(column.notna().to_numpy() & np.isnan(numbers))
    if broken.size:
        row = int(broken[0])
        found = f"found {quoted(column.iloc[row])} for item {quoted(name)}, where a number is expected"
        raise _refused(path, wide, f"{found}, with user number {row + 1}")
