"""Tables of features from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.datasets.ratings_text import SEPARATORS, as_integers
from air_recsys.exceptions import DataFileError, quoted


def read_features(path: str | Path, id_column: str, *, sep: str | None = None) -> pd.DataFrame:
    r"""Read what is known of users or items: a table with an id and any other columns a row.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), or a ``.parquet`` file (needs the extra ``data``).
    id_column : str
        The column of ids. As in `read_ratings`, ids that are all integers become such, others stay text as written.
    sep : str, optional
        The character between two fields; by default comma for ``.csv`` and tab for the others.

    Returns
    -------
    DataFrame
        Indexed by id, for `Interactions.with_features`.

    Raises
    ------
    DataFileError
        Where the file is missing, of an unknown kind, no table, or lacks the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "films.csv")
    >>> _ = path.write_text("item,year,genres\n7,1990,Drama|War\n8,,War\n")
    >>> read_features(path, "item")
            year     genres
    item
    7     1990.0  Drama|War
    8        NaN        War
    >>> folder.cleanup()
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataFileError(f"expected a file with features, found no file {str(file)!r}")
    kind = (file.with_suffix("") if file.suffix.lower() == ".gz" else file).suffix.lower()
    if kind not in (*SEPARATORS, ".parquet"):
        endings = ", ".join([*SEPARATORS, ".parquet"])
        raise DataFileError(f"{file}: expected a name that ends in one of {endings}, found {file.suffix!r}")
    table = _read(file, id_column, kind, sep)
    if id_column not in table.columns:
        raise DataFileError(f"{file}: expected the column {id_column!r}, found {quoted(list(table.columns))}")
    names = table[id_column].tolist()
    if pd.isna(np.array(names, dtype=object)).any():
        raise DataFileError(f"{file}: every row needs its {id_column!r}, found one without")
    ids = pd.Index(as_integers(list(map(str, names))), name=id_column)
    return table.drop(columns=id_column).set_index(ids)


def _read(file: Path, id_column: str, kind: str, sep: str | None) -> pd.DataFrame:
    types: Any = {id_column: str}
    try:
        if kind == ".parquet":
            return pd.read_parquet(file)
        return pd.read_csv(file, sep=sep or SEPARATORS[kind], dtype=types)
    except (ValueError, OSError, UnicodeError) as error:  # a parser's errors are ValueErrors
        raise DataFileError(f"{file}: expected a table of features, found {error}") from None
