"""Parquet files of a table: which there are, and checks, as a few bytes can declare any number of rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from air_recsys.exceptions import DataFileError
from air_recsys.storage.reading import unpacked_limit
from air_recsys.storage.validation import import_extra

_VALUE_BYTES = 8
_TEXTS = ("string", "large_string", "binary", "large_binary")


def find_parts(path: Path) -> list[Path]:
    """Return a file, or all ``.parquet`` files of a folder in their order.

    Files and folders whose names begin with a dot or an underscore are left out, as by other tools.

    Raises
    ------
    DataFileError
        If there is none.
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
    """How much text of each column of a file has been seen, in dictionaries.

    Parameters
    ----------
    path : Path
        The file, whose size allows for so much, see `unpacked_limit`.
    """

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
