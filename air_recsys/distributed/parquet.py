"""A table in one or many Parquet files: its headers and ids are checked, and it is read a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.ids import IdIndex
from air_recsys.data.readers.ratings_parquet import check_rows, find_parts, parquet_errors, plain_type
from air_recsys.exceptions import DataFileError, UnknownIdError
from air_recsys.storage.validation import needs_extra

with needs_extra("distributed"):
    import pyarrow as pa
    import pyarrow.parquet as pq

_ROWS_AT_A_TIME = 1_000_000


class Piece(NamedTuple):
    """The rows start..stop - 1 of one file."""

    number: int
    file: str
    start: int
    stop: int


class ParquetTable:
    """A Parquet file, or all ``.parquet`` files of a folder as one table.

    Files and folders whose names begin with a dot or an underscore are left out, as by other tools.

    Parameters
    ----------
    path : Path
    ids : mapping of str to ndarray
        The columns with ids, and the ids of the model, which must be of the same kind: integers or text.

    Attributes
    ----------
    files : list of str
        Absolute, sorted.
    schema : pyarrow.Schema
        That of the first file; in the columns with ids all files agree.

    Raises
    ------
    DataFileError
        If no file exists, a file is not Parquet, a column is absent or of another kind, or the table has no row.
    """

    def __init__(self, path: Path, ids: dict[str, np.ndarray]) -> None:
        self.path = path
        self.files = [str(file.absolute()) for file in find_parts(path)]
        headers = [_read_header(file) for file in self.files]
        self._sizes = [n_rows for n_rows, _ in headers]
        self.n_rows = sum(self._sizes)
        self.schema = headers[0][1]
        for file, (_, schema) in zip(self.files, headers, strict=True):
            for name, expected in ids.items():
                _check_column(file, schema, name, expected)
                kinds = self.schema.field(name).type, schema.field(name).type
                if kinds[0] != kinds[1]:
                    raise DataFileError(
                        f"{file}: expected one type of {name} in all files, found {kinds[0]} and {kinds[1]}"
                    )
        if self.n_rows == 0:
            raise DataFileError(f"{path}: expected at least one row, found none")

    def pieces(self, size: int) -> list[Piece]:
        """Cut the files into pieces of at most `size` rows, in order."""
        spans = [
            (file, start, min(start + size, n_rows))
            for file, n_rows in zip(self.files, self._sizes, strict=True)
            for start in range(0, n_rows, size)
        ]
        return [Piece(number, *span) for number, span in enumerate(spans)]

    def batches(self, columns: Sequence[str]) -> Iterator[list[Any]]:
        """The ids of these columns (see `ids_of`), some rows at a time; no id may be missing."""
        for piece in self.pieces(_ROWS_AT_A_TIME):
            table = read_piece(piece, columns)
            for name in columns:
                if table[name].null_count:
                    row = piece.start + table[name].is_null().index(True).as_py()
                    raise DataFileError(f"{piece.file}: every row needs its {name} id, found row {row} without one")
            yield [ids_of(table[name]) for name in columns]


def read_piece(piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a piece; of the file only the row groups that it touches are read."""
    with parquet_errors(piece.file), pq.ParquetFile(piece.file) as file:
        sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        first, last = np.searchsorted(ends, [piece.start, piece.stop - 1], side="right")
        groups = list(range(first, last + 1))
        table = file.read_row_groups(groups, columns=None if columns is None else list(columns))
        table.validate(full=True)  # of texts, that they are UTF-8
    return table.slice(piece.start - (ends[first] - sizes[first]), piece.stop - piece.start)


def ids_of(column: pa.ChunkedArray) -> Any:
    """A column of ids as the models take them: integers as an ndarray, text as a list of str."""
    plain = column.cast(plain_type(column.type))
    return plain.to_numpy() if pa.types.is_integer(plain.type) else plain.to_pylist()


def _read_header(file: str) -> tuple[int, pa.Schema]:
    with parquet_errors(file), pq.ParquetFile(file) as content:
        check_rows(file, content.metadata.num_rows, 1)
        return content.metadata.num_rows, content.schema_arrow


def _check_column(file: str, schema: pa.Schema, name: str, ids: np.ndarray) -> None:
    if schema.names.count(name) != 1:
        raise DataFileError(f"{file}: expected the column {name!r} once, found {schema.names}")
    kind = plain_type(schema.field(name).type)
    integers = ids.dtype != object
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (pa.types.is_integer(kind) if integers else text):
        expected = "integers" if integers else "text"
        raise DataFileError(f"{file}: expected {expected} as {name!r}, like the ids of the model, found {kind}")


def check_users(table: ParquetTable, user: str, index: IdIndex, unknown: str) -> None:
    """Check all users of a table.

    Raises
    ------
    DataFileError
        If an id is missing, or a user occurs twice.
    UnknownIdError
        With `unknown` "error" where a user is not in `index`, with "skip" where none is.
    """
    seen = np.zeros(len(index), dtype=bool)
    unknown_ids: dict[Any, None] = {}
    for (ids,) in table.batches([user]):
        users, rows = pd.Series(ids), index.lookup(ids)
        new = pd.unique(users[rows < 0]).tolist()
        repeated = users[users.duplicated() | ((rows >= 0) & seen[rows])].tolist()
        repeated += [one for one in new if one in unknown_ids]
        if repeated:
            raise DataFileError(
                f"{table.path}: expected each user once, found {repeated[0]!r} twice; drop duplicates first"
            )
        seen[rows[rows >= 0]] = True
        unknown_ids |= dict.fromkeys(new)
    if unknown_ids and (unknown == "error" or (unknown == "skip" and not seen.any())):
        raise UnknownIdError("user", list(unknown_ids), "unknown='popular' gives them what is popular")


def check_pairs(table: ParquetTable, columns: list[str], indices: tuple[IdIndex, IdIndex], unknown: str) -> None:
    """Check all pairs of a table: no id may be missing, or, with `unknown` "error", be absent from its index."""
    unknown_ids: tuple[dict[Any, None], dict[Any, None]] = ({}, {})
    for batch in table.batches(columns):
        if unknown == "error":
            for ids, index, absent in zip(batch, indices, unknown_ids, strict=True):
                absent.update(dict.fromkeys(pd.Series(ids)[index.lookup(ids) < 0].tolist()))
    for index, absent in zip(indices, unknown_ids, strict=True):
        if absent:
            raise UnknownIdError(index.kind, list(absent), "unknown='mean' predicts a mean instead")
