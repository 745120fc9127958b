"""Text files with one record a line, read whole; errors have the line number."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataFileError, quoted
from air_recsys.storage.reading import open_unpacked

_KINDS: dict[type, str] = {int: "an integer", float: "a finite number", str: "text"}


def malformed(path: Path, line: int, expected: str, value: object) -> DataFileError:
    """Return the error for one line of a file; lines count from 1."""
    return DataFileError(f"{path}, line {line}: expected {expected}, found {quoted(value)}")


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Read a text file, gzipped if its name ends in ``.gz``, into lines without their ends.

    Empty lines at the end are dropped.
    """
    try:
        with open_unpacked(path) as file:
            text = file.read().decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise DataFileError(f"{path}: expected text encoded in {encoding}, found {byte}") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DataFileError(f"{path}: expected a readable file, found: {error}") from None
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if lines == [""]:
        raise DataFileError(f"{path}: expected at least one line, found an empty file")
    return lines


def read_records(
    path: Path,
    separator: str,
    fields: Mapping[str, type],
    *,
    optional: str | None = None,
    encoding: str = "utf-8",
) -> pd.DataFrame:
    """Read a file with the same fields on every line, none of them quoted."""
    rows = [line.split(separator) for line in read_lines(path, encoding)]
    if optional is not None and len(rows[0]) == len(fields) - 1:
        fields = {name: kind for name, kind in fields.items() if name != optional}
    for number, row in enumerate(rows, start=1):
        if len(row) != len(fields):
            expected = f"{len(fields)} fields ({', '.join(fields)}) separated by {separator!r}"
            raise malformed(path, number, expected, separator.join(row))
    return pd.DataFrame(
        {
            name: _convert(path, name, kind, [row[position] for row in rows])
            for position, (name, kind) in enumerate(fields.items())
        }
    )


def _convert(path: Path, name: str, kind: type, column: list[str]) -> Any:
    if kind is str:
        return column
    try:
        values = np.array([kind(field) for field in column], dtype=np.int64 if kind is int else np.float64)
    except (ValueError, OverflowError):
        line = next(position for position, field in enumerate(column) if not _is_kind(field, kind))
        raise malformed(path, line + 1, f"{_KINDS[kind]} as {name}", column[line]) from None
    require(path, np.isfinite(values), f"a finite number as {name}", column)
    return values


def _is_kind(field: str, kind: type) -> bool:
    try:
        value = kind(field)
    except ValueError:
        return False
    return kind is float or abs(value) < 2**63


def require(path: Path, holds: Any, expected: str, values: Sequence[Any] | np.ndarray) -> None:
    """Raise for the first line where a condition does not hold."""
    broken = np.flatnonzero(~np.asarray(holds))
    if broken.size:
        value = values[broken[0]]
        shown = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        raise malformed(path, int(broken[0]) + 1, expected, shown)


def parse_numbers(path: Path, line: int, fields: Sequence[str]) -> list[float]:
    """Return the fields of one line as finite floats, or raise with the first that is none."""
    broken = next((field for field in fields if not is_finite_number(field)), None)
    if broken is not None:
        raise malformed(path, line, "finite numbers only", broken)
    return [float(field) for field in fields]


def is_finite_number(field: str) -> bool:
    """Return whether a field is a finite number in plain digits, unlike "1_000", which Python takes too."""
    try:
        return math.isfinite(float(field)) and field.isascii() and "_" not in field
    except ValueError:
        return False


def read_matrix(path: Path) -> np.ndarray:
    """Read a matrix of blank-separated numbers, one row per line, into a float64 array."""
    lines = read_lines(path)
    width = len(lines[0].split())
    rows = [parse_numbers(path, number, line.split()) for number, line in enumerate(lines, start=1)]
    require(path, [len(row) == width for row in rows], f"{width} numbers, as on line 1", lines)
    return np.array(rows)


def read_named_matrix(path: Path) -> pd.DataFrame:
    """Read a tab-separated matrix whose first line names the columns and whose first field names the row."""
    lines = read_lines(path)
    columns = lines[0].split("\t")
    columns = columns[1:] if columns[0] == "" else columns
    if len(set(columns)) != len(columns):
        raise malformed(path, 1, "distinct column names", lines[0])
    rows: dict[str, list[float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        name, *fields = line.split("\t")
        if len(fields) != len(columns) or name in rows:
            raise malformed(path, number, f"a new row name and {len(columns)} numbers separated by tabs", line)
        rows[name] = parse_numbers(path, number, fields)
    if not rows:
        raise DataFileError(f"{path}: expected a matrix, found column names only")
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def build_interactions(path: Path, build: Callable[[], Interactions]) -> Interactions:
    """Build interactions out of the records of a file; a broken rule is reported with the file's name."""
    try:
        return build()
    except DataError as error:
        raise DataFileError(f"{path}: {error}") from None
