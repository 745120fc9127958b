"""Checks of a Parquet file before it is read, as a few bytes can declare any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from air_recsys.exceptions import DataFileError
from air_recsys.reading import unpacked_limit
from air_recsys.validation import import_extra

_VALUE_BYTES = 8
_TEXTS = ("string", "large_string", "binary", "large_binary")


def check_rows(path: str | Path, n_rows: int, n_columns: int) -> None:
    """Raise `DataFileError` where a file declares more rows than fit into `unpacked_limit`."""
    limit = unpacked_limit(Path(path).stat().st_size) // (_VALUE_BYTES * max(1, n_columns))
    if not 0 <= n_rows <= limit:
        raise DataFileError(f"{path}: expected at most {limit:,} rows in a file of its size, found {n_rows:,}")


def read_columns(path: Path, columns: Sequence[str]) -> tuple[list[str], Any]:
    """Return the names of all columns, and a `pyarrow.Table` of those in `columns`, as far as the file has them.

    Texts are read as dictionaries, in which a long text of a million rows is held once, until their total is checked.

    Raises
    ------
    DataFileError
        For more rows or text than `unpacked_limit`, and for columns of lists or other nested values.
    Exception
        What pyarrow raises for a broken file.
    """
    pyarrow, parquet = import_extra("pyarrow", "data"), import_extra("pyarrow.parquet", "data")
    with parquet.ParquetFile(path) as file:
        header = [field for field in file.schema_arrow if field.name in columns]
        names, n_rows = file.schema_arrow.names, file.metadata.num_rows
    check_rows(path, n_rows, len(columns))
    for field in header:
        if pyarrow.types.is_nested(field.type):
            raise DataFileError(f"{path}: expected one value a row in {field.name!r}, found {field.type}")
    texts = [field.name for field in header if str(field.type) in _TEXTS]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        table = file.read(columns=list(columns))
    table.validate(full=True)
    _check_text(path, table)
    return names, table.cast(pyarrow.schema([(field.name, _plain(field.type, pyarrow)) for field in table.schema]))


def _check_text(path: Path, table: Any) -> None:
    compute = import_extra("pyarrow.compute", "data")
    limit = unpacked_limit(path.stat().st_size)
    for name, column in zip(table.column_names, table.columns, strict=True):
        total = 0
        for chunk in column.chunks if hasattr(column.type, "value_type") else []:
            if str(chunk.dictionary.type) in _TEXTS:
                total += compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        if total > limit:
            raise DataFileError(f"{path}: expected at most {limit:,} bytes of text in {name!r}, found {total:,}")


def _plain(kind: Any, pyarrow: Any) -> Any:
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind
