"""Tables of any columns from text and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from air_recsys.data.readers.ratings_text import SEPARATORS, ending_of, unknown_kind
from air_recsys.exceptions import DataFileError


def known_kind(path: str | Path, content: str) -> tuple[Path, str]:
    """Return the file of a table and its ending, or raise `DataFileError` where there is none of a known kind."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataFileError(f"expected a file with {content}, found no file {str(file)!r}")
    kind = ending_of(file)
    if kind not in (*SEPARATORS, ".parquet"):
        raise unknown_kind(file)
    return file, kind


def read_table(file: Path, content: str, types: Any, kind: str, sep: str | None) -> pd.DataFrame:
    """Return a table as it is in a file; `types` as of `pandas.read_csv`."""
    try:
        if kind == ".parquet":
            return pd.read_parquet(file)
        return pd.read_csv(file, sep=sep or SEPARATORS[kind], dtype=types)
    except (ValueError, OSError, UnicodeError) as error:  # a parser's errors are ValueErrors
        raise DataFileError(f"{file}: expected a table of {content}, found {error}") from None
