"""Wide tables of ratings in files: one user per row, one item per column."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.headers import are_user_names, looks_like_values, may_be_wide, named_column
from air_recsys.data.readers.rating_columns import ColumnNames
from air_recsys.data.readers.ratings_check import check_width
from air_recsys.data.readers.ratings_text import as_integers, first_line, separators_of, split_line, with_hint
from air_recsys.data.readers.table_file import read_table
from air_recsys.exceptions import DataFileError, quoted
from air_recsys.storage.validation import import_extra

_MOST_COLUMNS = 100_000


class Wide(NamedTuple):
    """A file that is no table with one rating per row, and may be one with one user per row.

    Parameters
    ----------
    separator : str or None
        Of a file of text.
    lacking : str
        What it lacks for a table with one rating per row.
    """

    separator: str | None
    lacking: str


def wide_text(path: Path, names: ColumnNames, sep: str | None, kind: str) -> Wide | None:
    """Return how a file of text may hold one user per row, None where its header says that it does not."""
    line, separators = first_line(path), separators_of(sep, kind)
    separator = max(separators, key=lambda each: len(split_line(line, each)))
    header = split_line(line, separator)
    numbered = looks_like_values(header[1:])  # items, or a first line without names
    if not _may_be_wide(header, names) or (numbered and not are_user_names(header[:1])):
        return None
    return Wide(separator, with_hint(names.lacking(header), names))


def wide_parquet(path: Path, names: ColumnNames) -> Wide | None:
    """Return how a Parquet file may hold one user per row, None where its header says that it does not."""
    header = import_extra("pyarrow.parquet", "data").read_schema(path).names
    return Wide(None, names.lacking(header)) if _may_be_wide(header, names) else None


def read_wide(path: Path, wide: Wide, kind: str) -> pd.DataFrame:
    """Return a wide table with users as its index and items as its columns.

    Raises
    ------
    DataFileError
        If an item or a user is there twice, a user lacks its id, or a value is no number.
    """
    if wide.separator is not None:
        check_width(path, wide.separator, _MOST_COLUMNS)
        _check_distinct(path, wide, "item", pd.Index(split_line(first_line(path), wide.separator)[1:]))
    table = read_table(path, "ratings", {0: str}, kind, wide.separator)
    if isinstance(table.index, pd.RangeIndex) and table.shape[1] > 1:
        table = table.set_index(table.columns[0])
    if table.index.hasnans:
        raise _refused(path, wide, "found a row without a user in its first column")
    _check_distinct(path, wide, "user", table.index)
    for name, column in table.items():
        _check_numbers(path, wide, name, column)
    users, items = (as_integers(list(map(str, axis))) for axis in (table.index, table.columns))
    return table.set_axis(users, axis=0).set_axis(items, axis=1)


def _may_be_wide(header: list[str], names: ColumnNames) -> bool:
    named = (None if name is None else named_column(name, header) for name in (names.item, names.rating))
    return names.timestamp is None and may_be_wide(header) and not any(named)


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
