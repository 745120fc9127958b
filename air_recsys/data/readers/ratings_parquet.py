"""Ratings in a Parquet file, or in the parts of one in a folder, read some rows at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.columns import qualifies
from air_recsys.data.readers.rating_columns import ColumnNames, Passed, RatingColumns, code
from air_recsys.exceptions import AirRecsysError, DataFileError
from air_recsys.storage.reading import unpacked_limit
from air_recsys.storage.validation import import_extra

_ROWS_AT_ONCE = 1_000_000
_BUFFER = 1 << 20  # bytes of a column that are read together


class Part(NamedTuple):
    """A Parquet file whose header has the columns that are wanted."""

    path: Path
    rows: list[int]  # of each row group
    types: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """Rows of the file."""
        return sum(self.rows)


def read_parquet(path: Path, names: ColumnNames, passed: Passed) -> RatingColumns:
    """Read a file or a folder of parts, all of whose headers are looked at before any row."""
    parts = read_headers(path, names)
    columns, n_bytes = RatingColumns(path, names, sum(part.n_rows for part in parts)), 0
    for part in parts:
        size, n_rows = part.path.stat().st_size, 0
        for n_read in _append(columns, part, range(len(part.rows)), names):
            n_rows += n_read
            passed(n_bytes + size * n_rows // max(1, part.n_rows))
        n_bytes += size
    return columns


def find_columns(path: Path, names: ColumnNames) -> tuple[ColumnNames | None, list[str]]:
    """Return the names as the first part writes them, None where it lacks one or has it twice; and all that it has.

    That is also the name of a folder called name=value where it qualifies its rows, as split=test does.
    """
    first = find_parts(path)[0]
    folders = (name.partition("=")[0] for name in first.relative_to(path).parts[:-1] if "=" in name)
    with parquet_errors(first):
        header = import_extra("pyarrow.parquet", "data").read_schema(first).names
    return names.among(header), header + [name for name in folders if qualifies(name) and name not in header]


def read_headers(path: Path, names: ColumnNames) -> list[Part]:
    """Return the file, or all parts of a folder; raises as `read_parquet` does."""
    parts = [_read_header(file, names) for file in find_parts(path)]
    for part in parts[1:]:
        _check_types(part, parts[0])
    return parts


def read_share(path: Path, names: ColumnNames, parts: list[Part], number: int, n_shares: int) -> RatingColumns:
    """Read the row groups that begin in one of `n_shares` equal ranges of the rows: in that of a number from 0."""
    starts = np.cumsum([0, *(rows for part in parts for rows in part.rows)])
    first, last = (-(-starts[-1] * share // n_shares) for share in (number, number + 1))
    groups = range(*np.searchsorted(starts[:-1], [first, last]).tolist())
    columns, begin = RatingColumns(path, names, int(starts[groups.stop] - starts[groups.start])), 0
    for part in parts:
        own = range(max(groups.start - begin, 0), max(min(groups.stop - begin, len(part.rows)), 0))
        for _ in _append(columns, part, own, names):
            pass
        begin += len(part.rows)
    return columns


def _append(columns: RatingColumns, part: Part, groups: range, names: ColumnNames) -> Iterator[int]:
    """Take in row groups of a part, and yield how many rows have been, each time some have."""
    for table in _tables(part, groups):
        for ids, name in ((columns.users, names.user), (columns.items, names.item)):
            ids.append(*_coded(table.column(name)))
        columns.append(_numbers(table, names))
        yield len(table)


def _read_header(path: Path, names: ColumnNames) -> Part:
    wanted = [names.user, names.item, *names.numbers]
    with parquet_errors(path), import_extra("pyarrow.parquet", "data").ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    for n_rows in (min(rows, default=0), sum(rows)):
        check_rows(path, n_rows, len(wanted))
    if any(schema.names.count(name) != 1 for name in wanted):
        raise DataFileError(f"{path}: {names.lacking(schema.names)}")
    types = {name: schema.field(name).type for name in wanted}
    for name, kind in types.items():
        if import_extra("pyarrow", "data").types.is_nested(kind):
            raise DataFileError(f"{path}: expected one value per row in {name!r}, found {kind}")
    return Part(path, rows, types)


def _check_types(part: Part, first: Part) -> None:
    for name, kind in part.types.items():
        expected = first.types[name]
        if _kind(kind) != _kind(expected):
            raise DataFileError(f"{part.path}: expected {expected} in {name!r} as in {first.path.name}, found {kind}")


def _kind(of_column: Any) -> str:
    """Return the kind of values of which all types go together."""
    kinds, plain = import_extra("pyarrow", "data").types, plain_type(of_column)
    if kinds.is_integer(plain) or kinds.is_floating(plain):
        return "numbers"
    return "text" if is_text(plain) else str(plain)


def _tables(part: Part, groups: range) -> Iterator[Any]:
    """Yield the rows of row groups as `pyarrow.Table`.

    Texts come as dictionaries, in which a long text of a million rows is held once, until their total is checked.
    """
    pyarrow, parquet = import_extra("pyarrow", "data"), import_extra("pyarrow.parquet", "data")
    texts, count = [name for name, kind in part.types.items() if is_text(kind)], TextCount(part.path)
    with (
        parquet_errors(part.path),
        parquet.ParquetFile(part.path, read_dictionary=texts, buffer_size=_BUFFER) as file,
    ):
        for together in _together(part, groups):
            for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=together, columns=list(part.types)):
                table = pyarrow.Table.from_batches([batch])
                table.validate(full=True)  # of texts, that they are UTF-8
                count.add(table)
                yield table


def _together(part: Part, groups: range) -> Iterator[list[int]]:
    """Yield row groups to read together: pyarrow holds the bytes of all of them until it has read the last."""
    together, n_rows = [], 0
    for group in groups:
        together.append(group)
        n_rows += part.rows[group]
        if n_rows >= _ROWS_AT_ONCE:
            yield together
            together, n_rows = [], 0
    if together:
        yield together


def _coded(column: Any) -> tuple[np.ndarray, Any]:
    """Return ids as `CodedIds.append` takes them; texts are looked at once each."""
    kind = plain_type(column.type)
    if kind == column.type or not is_text(kind):
        return code(column.cast(kind).to_pandas(ignore_metadata=True))
    array = column.combine_chunks()
    names = array.dictionary.to_numpy(zero_copy_only=False)
    indices = array.indices.fill_null(names.size).to_numpy(zero_copy_only=False)
    occurs = np.append(np.bincount(indices, minlength=names.size + 1)[:-1] > 0, False)
    places = np.where(occurs, np.cumsum(occurs) - 1, -1)
    places[:-1][pd.isna(names)] = -1  # a dictionary can hold the missing value, too
    return places[indices], names[occurs[:-1]]


def _numbers(table: Any, names: ColumnNames) -> Any:
    """Return the columns that are no ids as a DataFrame; without pandas' metadata an index is a column like others."""
    pyarrow = import_extra("pyarrow", "data")
    wanted = table.select(names.numbers)
    plain = pyarrow.schema([(field.name, plain_type(field.type)) for field in wanted.schema])
    return wanted.cast(plain).to_pandas(ignore_metadata=True)


@contextmanager
def parquet_errors(path: str | Path) -> Iterator[None]:
    """Turn the errors of reading a file into a `DataFileError`."""
    pyarrow = import_extra("pyarrow", "data")
    try:
        yield
    except AirRecsysError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        reason = str(error).partition("\n")[0]
        raise DataFileError(f"{path}: expected a Parquet file, found: {reason}") from None


_VALUE_BYTES = 8
_TEXTS = ("string", "large_string", "binary", "large_binary")


def find_parts(path: Path) -> list[Path]:
    """Return a file, or all ``.parquet`` files of a folder in their order.

    Files and folders whose names begin with a dot or an underscore are left out, as by other tools.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataFileError(f"expected a Parquet file or a folder of such, found no {path}")
    files = [
        file
        for file in sorted(path.rglob("*.parquet"))
        if file.is_file() and not any(name.startswith((".", "_")) for name in file.relative_to(path).parts)
    ]
    if not files:
        raise DataFileError(f"expected files that end in .parquet in {path}, found none")
    return files


def check_rows(path: str | Path, n_rows: int, n_columns: int) -> None:
    """Raise `DataFileError` where a file declares more rows than fit into `unpacked_limit`."""
    limit = unpacked_limit(Path(path).stat().st_size) // (_VALUE_BYTES * max(1, n_columns))
    if not 0 <= n_rows <= limit:
        raise DataFileError(f"{path}: expected at most {limit:,} rows in a file of its size, found {n_rows:,}")


def is_text(kind: Any) -> bool:
    """Return whether a `pyarrow.DataType` is text or bytes."""
    return str(kind) in _TEXTS


def plain_type(kind: Any) -> Any:
    """Return the type of the values of a column, which may be encoded as a dictionary.

    Examples
    --------
    >>> import pyarrow as pa
    >>> plain_type(pa.dictionary(pa.int8(), pa.string())), plain_type(pa.int32())
    (DataType(string), DataType(int32))
    """
    return kind.value_type if import_extra("pyarrow", "data").types.is_dictionary(kind) else kind


class TextCount:
    """How much text of each column of a file has been seen, in dictionaries; its size has an `unpacked_limit`."""

    def __init__(self, path: Path) -> None:
        self._path, self._limit = path, unpacked_limit(path.stat().st_size)
        self._totals: Counter[str] = Counter()

    def add(self, table: Any) -> None:
        """Count the texts of more rows, or raise `DataFileError` where they are too much."""
        compute = import_extra("pyarrow.compute", "data")
        for name, column in zip(table.column_names, table.columns, strict=True):
            for chunk in column.chunks if hasattr(column.type, "value_type") else []:
                if is_text(chunk.dictionary.type):
                    lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                    self._totals[name] += compute.sum(lengths).as_py() or 0
            if self._totals[name] > self._limit:
                found = f"found {self._totals[name]:,}"
                raise DataFileError(
                    f"{self._path}: expected at most {self._limit:,} bytes of text in {name!r}, {found}"
                )
