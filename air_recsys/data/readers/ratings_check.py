"""Line-by-line check of a text file of ratings, for the line number of the first error."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from air_recsys.data.sets.files import is_finite_number, malformed
from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import open_unpacked

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
    """Raise for the first line with a wrong number of fields, an empty field or a rating that is no number.

    Parameters
    ----------
    path : Path
    separator : str
    columns : sequence of str
        Names of the columns that must not be empty.
    rating : str or None
        Name of the column with numbers.
    header : sequence of str, optional
        Names of all columns, where the file has no header line.
    """
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
