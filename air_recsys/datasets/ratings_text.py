"""Ratings in tables of text, read some rows at a time."""

from __future__ import annotations

import csv
import itertools
import string
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.datasets.rating_columns import ColumnNames, Passed, RatingColumns
from air_recsys.datasets.ratings_check import MOST_EMPTY_LINES, check_fields, check_width, open_text
from air_recsys.exceptions import AirRecsysError, DataFileError, ParameterError, quoted
from air_recsys.reading import unpacked

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_ALLOWED_SEPARATORS = frozenset(string.punctuation + " \t") - {'"'}
_OTHER_SEPARATORS = (",", "\t", ";", "|")
_ROWS_AT_ONCE = 1_000_000


def ending_of(file: Path) -> str:
    """Return the suffix that tells the kind of a table, in lower case, without ``.gz``."""
    return (file.with_suffix("") if file.suffix.lower() == ".gz" else file).suffix.lower()


def unknown_kind(file: Path) -> DataFileError:
    """Return the error of a file that is no kind of table."""
    endings = ", ".join([*SEPARATORS, ".parquet"])
    return DataFileError(f"{file}: expected a name that ends in one of {endings}, found {file.suffix!r}")


def choose_separator(path: Path, columns: list[str], sep: str | None, kind: str) -> str:
    """Return the separator, after a check that the header has each named column once."""
    if sep is not None and sep not in _ALLOWED_SEPARATORS:
        raise ParameterError(f"sep must be one ASCII sign, blank or tab, but no quote, found {sep!r}")
    default = sep or SEPARATORS[kind]
    header = _read_header(path)
    for candidate in (default, *(() if sep else _OTHER_SEPARATORS)):
        fields = _split(header, candidate)
        if all(fields.count(column) == 1 for column in columns):
            return candidate
    fields = _split(header, default)
    broken = [column for column in columns if fields.count(column) != 1]
    raise DataFileError(
        f"{path}, line 1: expected the column(s) {broken} once each, found {quoted(fields)} (separated by {default!r})"
    )


def read_text(path: Path, names: ColumnNames, separator: str, passed: Passed) -> RatingColumns:
    """Read a table, gzipped if its name ends in ``.gz``.

    Parameters
    ----------
    path : Path
    names : ColumnNames
        Columns that the header has.
    separator : str
    passed : callable

    Raises
    ------
    DataFileError
        At the first line that is broken, lacks a value, or has a rating that is no number.
    """
    check_width(path, separator)
    try:
        columns, is_broken = _read_parts(path, names, separator, passed)
    except AirRecsysError:
        raise
    except (ValueError, OSError, EOFError, zlib.error) as error:  # pandas' parser errors are ValueErrors
        check_fields(path, separator, names.given, names.rating)
        raise DataFileError(f"{path}: expected a table of text, found: {' '.join(str(error).split())}") from None
    if is_broken:
        check_fields(path, separator, names.given, names.rating)
        raise DataFileError(f"{path}: expected one rating per line, found lines that cannot be read as such")
    if not columns.size:
        raise DataFileError(f"{path}: expected at least one rating, found the header only")
    return columns


def as_integers(names: list[str]) -> np.ndarray:
    """Return texts as integers where all are such as integers are written.

    Examples
    --------
    >>> as_integers(["7", "8"]), as_integers(["07", "8"])
    (array([7, 8]), array(['07', '8'], dtype=object))
    """
    texts = np.array(names, dtype=object)
    try:
        integers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts
    return integers if (integers.astype(str) == texts).all() else texts


def _read_header(path: Path) -> str:
    with open_text(path) as lines:
        first = itertools.islice(lines, MOST_EMPTY_LINES)
        header = next((line.strip("\r\n") for line in first if line.strip("\r\n")), "")
        more = next(lines, "")
    if not header or "\0" in header:
        empty = f"no text in the first {MOST_EMPTY_LINES} lines" if more else "an empty file"
        fault = "a NUL byte" if header else empty
        raise DataFileError(f"{path}: expected text that starts with a header line, found {fault}")
    return header


def _split(header: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([header], delimiter=separator))
    except csv.Error:
        return [header]


def _read_parts(path: Path, names: ColumnNames, separator: str, passed: Passed) -> tuple[RatingColumns, bool]:
    """Return all rows, or those before the first part that is broken, and whether there is one.

    A file of many rows without content is so not read to its end.
    """
    columns, has_short_lines = RatingColumns(path, names, convert=as_integers), False
    with path.open("rb") as file, unpacked(file) if path.suffix.lower() == ".gz" else nullcontext(file) as source:
        opened: Any = pd.read_csv(source, **_how(names, separator))
        with opened as reader:
            for part in reader:
                passed(file.tell())
                if _is_broken(part, names):
                    return columns, True
                has_short_lines |= part.iloc[:, -1].isna().any()  # pandas fills up lines that are too short
                for ids, name in ((columns.users, names.user), (columns.items, names.item)):
                    ids.append(*pd.factorize(part[name]))
                columns.append(part)
    if has_short_lines:
        check_fields(path, separator, names.given, names.rating)
    return columns, False


def _how(names: ColumnNames, separator: str) -> dict[str, Any]:
    # Ids are read as text, so they stay as written, and "NA" is an id.
    kinds: Any = {names.user: str, names.item: str} | ({} if names.rating is None else {names.rating: np.float64})
    how = {"sep": separator, "dtype": kinds, "keep_default_na": False, "na_values": [""]}
    return how | {"encoding": "utf-8-sig", "low_memory": False, "compression": None, "chunksize": _ROWS_AT_ONCE}


def _is_broken(part: pd.DataFrame, names: ColumnNames) -> bool:
    shifted = not isinstance(part.index, pd.RangeIndex)  # pandas moves surplus fields into the index
    if shifted or part[names.given].isna().to_numpy().any():
        return True
    return names.rating is not None and not np.isfinite(part[names.rating]).all()
