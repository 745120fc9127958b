"""Ratings from the caller's own CSV, TSV and Parquet files."""

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

from air_recsys.datasets.files import build_interactions
from air_recsys.datasets.parquet_checks import read_columns
from air_recsys.datasets.ratings_check import MOST_EMPTY_LINES, check_fields, check_width, open_text
from air_recsys.exceptions import DataFileError, ParameterError, quoted
from air_recsys.interactions import Duplicates, Interactions
from air_recsys.reading import open_gzip
from air_recsys.validation import import_extra

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_ALLOWED_SEPARATORS = frozenset(string.punctuation + " \t") - {'"'}
_OTHER_SEPARATORS = (",", "\t", ";", "|")
_ROWS_AT_ONCE = 1_000_000


def read_ratings(
    path: str | Path,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = None,
    sep: str | None = None,
    duplicates: Duplicates = "error",
    allow_negative: bool = False,
) -> Interactions:
    r"""Read a table with one rating per row from the caller's file.

    Text files have a header line and are UTF-8, gzipped or not; fields may be quoted. Ids that are all integers
    become integers; otherwise ids stay text exactly as written, so "007" and "7" remain two users.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), or a ``.parquet`` file (needs the extra
        ``data``).
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

    Returns
    -------
    Interactions

    Raises
    ------
    DataFileError
        Where the file is missing, empty, not text, of an unknown kind, lacks a named column, or breaks a rule of
        `Interactions`; and at the first line that is broken, lacks an id or has a rating that is no number.

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
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataFileError(f"expected a file with ratings, found no file {str(file)!r}")
    columns = [name for name in (user, item, rating, timestamp) if name is not None]
    kind = file.with_suffix("").suffix.lower() if file.suffix.lower() == ".gz" else file.suffix.lower()
    if kind in _SEPARATORS:
        frame = _read_text(file, columns, rating, _choose_separator(file, columns, sep, kind))
    elif file.suffix.lower() == ".parquet":
        frame = _read_parquet(file, columns)
    else:
        endings = ", ".join([*_SEPARATORS, ".parquet"])
        raise DataFileError(f"{file}: expected a name that ends in one of {endings}, found {file.suffix!r}")
    if timestamp is not None:
        frame[timestamp] = _as_times(file, pd.Series(frame[timestamp]))
    return build_interactions(
        file,
        lambda: Interactions.from_frame(
            frame,
            user,
            item,
            rating,
            timestamp=timestamp,
            duplicates=duplicates,
            allow_negative=allow_negative,
        ),
    )


def _choose_separator(path: Path, columns: list[str], sep: str | None, kind: str) -> str:
    """Return the separator, after a check that the header has each named column once."""
    if sep is not None and sep not in _ALLOWED_SEPARATORS:
        raise ParameterError(f"sep must be one ASCII sign, blank or tab, but no quote, found {sep!r}")
    default = sep or _SEPARATORS[kind]
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


def _read_text(path: Path, columns: list[str], rating: str | None, separator: str) -> pd.DataFrame:
    ids = columns[:2]
    # Ids are read as text, so they stay as written, and "NA" is an id.
    kinds: Any = dict.fromkeys(ids, str) | ({} if rating is None else {rating: np.float64})
    how: Any = {"sep": separator, "dtype": kinds, "keep_default_na": False, "na_values": [""]}
    how |= {"encoding": "utf-8-sig", "low_memory": False, "compression": None}
    check_width(path, separator)
    try:
        with open_gzip(path) if path.suffix.lower() == ".gz" else nullcontext(path) as source:
            frame, broken = _read_chunks(source, how, columns, rating)
    except (ValueError, OSError, EOFError, zlib.error) as error:  # pandas' parser errors are ValueErrors
        check_fields(path, separator, columns, rating)
        raise DataFileError(f"{path}: expected a table of text, found: {' '.join(str(error).split())}") from None
    if frame.empty:
        raise DataFileError(f"{path}: expected at least one rating, found the header only")
    if broken or frame.iloc[:, -1].isna().any():  # pandas fills up lines that are too short
        check_fields(path, separator, columns, rating)
    if broken:
        raise DataFileError(f"{path}: expected one rating per line, found lines that cannot be read as such")
    return pd.DataFrame({name: _as_ids(pd.Series(frame[name])) if name in ids else frame[name] for name in columns})


def _read_chunks(
    source: Any, how: dict[str, Any], columns: list[str], rating: str | None
) -> tuple[pd.DataFrame, bool]:
    """Return all rows, or those up to the first chunk that is broken, and whether there is one.

    A file of many rows without content is so not read to its end.
    """
    chunks: list[pd.DataFrame] = []
    opened: Any = pd.read_csv(source, chunksize=_ROWS_AT_ONCE, **how)
    with opened as reader:
        for chunk in reader:
            chunks.append(chunk)
            if _is_broken(chunk, columns, rating):
                return pd.concat(chunks), True
    return pd.concat(chunks) if chunks else pd.DataFrame(), False


def _is_broken(frame: pd.DataFrame, columns: list[str], rating: str | None) -> bool:
    shifted = not isinstance(frame.index, pd.RangeIndex)  # pandas moves surplus fields into the index
    if shifted or frame[columns].isna().to_numpy().any():
        return True
    return rating is not None and not np.isfinite(frame[rating]).all()


def _as_ids(column: pd.Series) -> np.ndarray:
    codes, names = pd.factorize(column)
    return _as_integers(np.asarray(names, dtype=object))[codes]


def _as_integers(names: np.ndarray) -> np.ndarray:
    try:
        integers = names.astype(np.int64)
    except (ValueError, OverflowError):
        return names
    return integers if (integers.astype(str) == names).all() else names


def _as_times(path: Path, column: pd.Series) -> pd.Series:
    if column.dtype.kind in "iuf":
        return column
    dates = column if column.dtype.kind == "M" else column.astype(str)
    times = pd.to_datetime(dates, format="ISO8601", utc=True, errors="coerce").dt.tz_localize(None)
    broken = np.flatnonzero(times.isna())
    if broken.size:
        raise DataFileError(
            f"{path}: expected numbers or ISO 8601 dates as {column.name!r}, found {dates.iloc[broken[0]]!r} "
            f"with rating number {broken[0] + 1}"
        )
    return times


def _read_parquet(path: Path, columns: list[str]) -> pd.DataFrame:
    pyarrow = import_extra("pyarrow", "data")
    try:
        names, table = read_columns(path, columns)
        # Without pandas' metadata an index is a column like any other.
        frame = table.to_pandas(ignore_metadata=True)
    except DataFileError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise DataFileError(f"{path}: expected a Parquet file, found: {reason}") from None
    absent = [name for name in columns if names.count(name) != 1]
    if absent:
        raise DataFileError(f"{path}: expected the column(s) {absent} once each, found {quoted(names)}")
    return frame
