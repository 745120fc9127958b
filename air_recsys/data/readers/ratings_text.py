"""Ratings in tables of text, read some rows at a time."""

from __future__ import annotations

import csv
import io
import itertools
import string
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import pandas as pd

from air_recsys.data.readers.lines import is_finite_number, malformed
from air_recsys.data.readers.rating_columns import ColumnNames, Passed, RatingColumns
from air_recsys.exceptions import AirRecsysError, DataFileError, ParameterError
from air_recsys.storage.reading import open_unpacked, unpacked

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t", ".data": "\t"}
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


class TextForm(NamedTuple):
    """How a file of text holds ratings."""

    separator: str
    names: ColumnNames  # as the header writes them
    header: list[str] | None = None  # names of all fields, of a file without a header line

    def check_fields(self, path: Path) -> None:
        """Raise for the first line that does not keep to the form."""
        check_fields(path, self.separator, self.names.given, self.names.rating, self.header)


def choose_form(
    path: Path, names: ColumnNames, columns: Sequence[str] | None = None, sep: str | None = None, kind: str = ".csv"
) -> TextForm:
    """Return how a file holds the named columns, after a check that each is there once."""
    separators, first = separators_of(sep, kind), first_line(path)
    if columns is not None:
        return _named_form(path, names, list(columns), separators, first)
    for separator in separators:
        found = names.among(split_line(first, separator))
        if found is not None:
            return TextForm(separator, found)
    lacking = f"{names.lacking(split_line(first, separators[0]))} (separated by {separators[0]!r})"
    raise DataFileError(f"{path}, line 1: {with_hint(lacking, names)}")


def with_hint(lacking: str, names: ColumnNames) -> str:
    """Return what a header lacks, with a hint at files without one unless other columns are meant."""
    given = f"columns={names.given} (in the shell --columns {','.join(names.given)})"
    return lacking if " meant" in lacking else f"{lacking}; a file without a header line needs {given}"


def _named_form(
    path: Path, names: ColumnNames, columns: list[str], separators: tuple[str, ...], first: str
) -> TextForm:
    found = names.among(columns)
    if found is None:
        raise ParameterError(f"columns (in the shell --columns) name the fields of a line: {names.lacking(columns)}")
    for separator in separators:
        n_fields = len(split_line(first, separator))
        if n_fields >= max(len(columns), 2):
            others = (f"field {place}" for place in range(len(columns) + 1, n_fields + 1))
            return TextForm(separator, found, [*columns, *others])
    expected = f"{len(columns)} fields separated by {separators[0]!r}, one for each of {columns}"
    raise malformed(path, 1, expected, first)


def separators_of(sep: str | None, kind: str) -> tuple[str, ...]:
    """Return the separators that a file may have, the most probable first; only the given one where there is one."""
    if sep is not None and sep not in _ALLOWED_SEPARATORS:
        raise ParameterError(f"sep must be one ASCII sign, blank or tab, but no quote, found {sep!r}")
    return (sep,) if sep else tuple(dict.fromkeys((SEPARATORS[kind], *_OTHER_SEPARATORS)))


def read_text(path: Path, form: TextForm, passed: Passed) -> RatingColumns:
    """Read a table, gzipped if its name ends in ``.gz``."""
    check_width(path, form.separator)
    try:
        columns, is_broken = _read_parts(path, form, passed)
    except AirRecsysError:
        raise
    except (ValueError, OSError, EOFError, zlib.error) as error:  # pandas' parser errors are ValueErrors
        form.check_fields(path)
        raise DataFileError(f"{path}: expected a table of text, found: {' '.join(str(error).split())}") from None
    if is_broken:
        form.check_fields(path)
        raise DataFileError(f"{path}: expected one rating per line, found lines that cannot be read as such")
    if not columns.size:
        raise DataFileError(f"{path}: expected at least one rating, found the header only")
    return columns


def as_integers(names: list[str]) -> np.ndarray:
    """Return texts as integers where all are such as integers are written."""
    texts = np.array(names, dtype=object)
    try:
        integers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return texts
    return integers if (integers.astype(str) == texts).all() else texts


def first_line(path: Path) -> str:
    """Return the first line with text, the header of most files."""
    with open_text(path) as lines:
        first = itertools.islice(lines, MOST_EMPTY_LINES)
        header = next((line.strip("\r\n") for line in first if line.strip("\r\n")), "")
        more = next(lines, "")
    if not header or "\0" in header:
        empty = f"no text in the first {MOST_EMPTY_LINES} lines" if more else "an empty file"
        fault = "a NUL byte" if header else empty
        raise DataFileError(f"{path}: expected text that starts with a header line, found {fault}")
    return header


def split_line(line: str, separator: str) -> list[str]:
    """Return the fields of a line."""
    try:
        return next(csv.reader([line], delimiter=separator))
    except csv.Error:
        return [line]


def _read_parts(path: Path, form: TextForm, passed: Passed) -> tuple[RatingColumns, bool]:
    """Return all rows, or those before the first part that is broken, and whether there is one.

    A file of many rows without content is so not read to its end.
    """
    names = form.names
    columns, has_short_lines = RatingColumns(path, names, convert=as_integers), False
    with path.open("rb") as file, unpacked(file) if path.suffix.lower() == ".gz" else nullcontext(file) as source:
        opened: Any = pd.read_csv(source, **_how(form))
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
        form.check_fields(path)
    return columns, False


def _how(form: TextForm) -> dict[str, Any]:
    names = form.names
    # Ids are read as text, so they stay as written, and "NA" is an id.
    kinds: Any = {names.user: str, names.item: str} | ({} if names.rating is None else {names.rating: np.float64})
    how = {} if form.header is None else {"names": form.header, "header": None}
    how |= {"sep": form.separator, "dtype": kinds, "keep_default_na": False, "na_values": [""]}
    return how | {"encoding": "utf-8-sig", "low_memory": False, "compression": None, "chunksize": _ROWS_AT_ONCE}


def _is_broken(part: pd.DataFrame, names: ColumnNames) -> bool:
    shifted = not isinstance(part.index, pd.RangeIndex)  # pandas moves surplus fields into the index
    if shifted or part[names.given].isna().to_numpy().any():
        return True
    return names.rating is not None and not np.isfinite(part[names.rating]).all()


MOST_COLUMNS = 1000
MOST_EMPTY_LINES = 1000  # in a row


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 file, gzipped if its name ends in ``.gz``; what cannot be read raises `DataFileError`."""
    opened = open_unpacked(path)
    try:
        with opened as content, io.TextIOWrapper(content, encoding="utf-8-sig", newline="") as handle:
            yield handle
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise DataFileError(f"{path}: expected text encoded in utf-8, found {byte}") from None
    except DataFileError:
        raise
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataFileError(f"{path}: expected a readable file, found: {error}") from None


def check_width(path: Path, separator: str, most: int = MOST_COLUMNS) -> None:
    """Raise where a table has more than so many columns, or its first row is wider than its header.

    pandas takes the surplus for an index of as many levels, which costs minutes for a file of a megabyte.
    """
    with open_text(path) as lines:
        records = _numbered_records(path, csv.reader(lines, delimiter=separator))
        header = next(records, (1, []))[1]
        line, fields = next(records, (1, header))
    if len(header) > most:
        raise DataFileError(f"{path}, line 1: expected at most {most:,} columns, found {len(header):,}")
    if len(fields) > len(header):
        expected = f"{len(header)} fields separated by {separator!r}, as in the header"
        raise malformed(path, line, expected, separator.join(fields))


def check_fields(
    path: Path, separator: str, columns: Sequence[str], rating: str | None, header: Sequence[str] | None = None
) -> None:
    """Raise for the first line with a wrong number of fields, an empty field or a rating that is no number."""
    origin = "in the first line" if header is not None else "in the header"
    with open_text(path) as lines:
        records = _numbered_records(path, csv.reader(lines, delimiter=separator, strict=True))
        header = next(records, (1, []))[1] if header is None else header
        for line, fields in records:
            text = separator.join(fields)
            if len(fields) != len(header):
                expected = f"{len(header)} fields separated by {separator!r}, as {origin}"
                raise malformed(path, line, expected, text)
            record = dict(zip(header, fields, strict=True))
            for name in columns:
                if not record[name]:
                    raise malformed(path, line, f"a value as {name!r}", text)
            if rating is not None and not is_finite_number(record[rating]):
                raise malformed(path, line, f"a finite number as {rating!r}", record[rating])


def _numbered_records(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the line on which each record starts, and its fields; empty lines are left out."""
    line, n_empty = 1, 0
    try:
        for fields in reader:
            n_empty = 0 if fields else n_empty + 1
            if fields:
                yield line, fields
            elif n_empty > MOST_EMPTY_LINES:
                raise DataFileError(f"{path}, line {line}: expected fields, found {n_empty:,} empty lines")
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataFileError(f"{path}, line {line}: expected fields with closed quotes, found: {error}") from None
