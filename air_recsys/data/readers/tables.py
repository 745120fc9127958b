"""Tables that are read whole: text or Parquet, told by their content. An empty field is the only missing id."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from air_recsys.data.columns import UNNAMED
from air_recsys.data.readers.forms import FOUND, Form, Writing, check_spans, check_width, first_line, forms_of, widest
from air_recsys.data.readers.ratings_parquet import parquet_errors
from air_recsys.data.readers.sources import open_lines, undecodable
from air_recsys.exceptions import AirRecsysError, DataFileError, DataWarning, quoted
from air_recsys.storage.reading import ARCHIVE_ERRORS
from air_recsys.storage.validation import import_extra

MOST_COLUMNS = 100_000
_CODES = ("NA", "N/A", "na", "null", "NULL", "None", "nan", "NaN", "NAN")
"""Texts that stand for a missing number where all other fields of a column are numbers."""


def is_parquet(file: Path) -> bool:
    """Return whether a file begins as those of Parquet do."""
    with file.open("rb") as content:
        return content.read(4) == b"PAR1"


def existing(path: str | Path, content: str) -> Path:
    """Return the file of a table, or raise `DataFileError` where there is none."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataFileError(f"expected a file with {content}, found no file {str(file)!r}")
    return file


def form_of(file: Path, writing: Writing) -> tuple[Form, list[str]]:
    """Return how a table of text is written, and the names of its columns."""
    first = first_line(file, writing.encoding)
    form = widest(forms_of(file, writing, first), first)
    return form, form.split(first)


def read_names(file: Path, writing: Writing) -> list[str]:
    """Return the names of the columns of a table."""
    if not is_parquet(file):
        return form_of(file, writing)[1]
    with parquet_errors(file):
        return import_extra("pyarrow.parquet", "data").read_schema(file).names


def read_table(
    file: Path,
    content: str,
    ids: Sequence[int | str],
    writing: Writing = FOUND,
    *,
    names: Sequence[str] | None = None,
    only: Collection[str] | None = None,
) -> pd.DataFrame:
    """Return a table as it is in a file; the columns of `ids`, by name or position, are text as it is written.

    `names` are those of the columns of a file of text without a header line; `only` some columns are read, if given,
    each where its name first stands.
    """
    if is_parquet(file):
        with parquet_errors(file):
            return pd.read_parquet(file)
    form, header = form_of(file, writing)
    if only is not None:
        return _parsed(file, content, ids, form, names, only)
    twice = pd.Index([name for place, name in enumerate(header if names is None else names) if name or not place])
    if not twice.is_unique:
        repeated = quoted(str(twice[twice.duplicated()][0]))
        raise DataFileError(f"{file}, line 1: expected a header, columns of different names, found {repeated} twice")
    check_width(file, form, MOST_COLUMNS)
    table = _parsed(file, content, ids, form, names)
    ends = [name for name in table.columns[1:] if name.startswith(UNNAMED) and bool(table[name].isna().all())]
    return _with_numbers(file, table.drop(columns=ends), ids)  # each line may end with a separator


def _parsed(
    file: Path,
    content: str,
    ids: Sequence[int | str],
    form: Form,
    names: Sequence[str] | None,
    only: Collection[str] | None = None,
) -> pd.DataFrame:
    kinds: Any = dict.fromkeys(ids, str)
    of_header: Any = {} if names is None else {"names": list(names), "header": None}
    of_header |= {} if only is None else {"usecols": list(only)}
    try:
        with open_lines(file, form.encoding, form.separator) as lines:
            table: pd.DataFrame = pd.read_csv(lines, dtype=kinds, **of_header, **form.of_pandas())
    except UnicodeError as error:
        raise undecodable(file, form.encoding, error) from None
    except AirRecsysError:
        raise
    except (zlib.error, *ARCHIVE_ERRORS) as error:  # a parser's errors are ValueErrors
        raise DataFileError(f"{file}: expected a table of {content}, found {error}") from None
    if lines.n_lines > len(table) + 1:
        check_spans(file, form)
    return table


def _with_numbers(file: Path, table: pd.DataFrame, ids: Sequence[int | str]) -> pd.DataFrame:
    """Return a table in which columns of numbers and of codes for missing ones are numbers, with a line about it."""
    found = {}
    for place, name in enumerate(table.columns):
        column = pd.Series(table.iloc[:, place])
        if place in ids or name in ids or column.dtype.kind in "biufM":
            continue
        coded = column.isin(_CODES)
        if not coded.any():
            continue
        numbers = pd.Series(pd.to_numeric(column.where(~coded), errors="coerce"))
        if numbers.notna().any() and not (numbers.isna() & ~coded & column.notna()).any():
            found[name] = numbers
    if found:
        code = next(cell for cell in table[next(iter(found))].tolist() if cell in _CODES)
        warnings.warn(
            f"{file}: {code} counts as missing in the columns of numbers {quoted(list(map(str, found)))}",
            DataWarning,
            stacklevel=3,
        )
        table = table.assign(**{str(name): numbers for name, numbers in found.items()})
    return table
