"""Titles and other attributes of items from the caller's table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.data.headers import column_of_item_ids, named_column
from air_recsys.data.readers.ratings_check import check_width, open_text
from air_recsys.exceptions import DataFileError, quoted

_LOOKED_AT = 1000  # rows that are compared with the model's ids where no column has a usual name


def read_titles(file: Path, item_ids: np.ndarray) -> pd.DataFrame:
    """Read a CSV with ids and attributes of the items, indexed by the model's item ids.

    The column of ids is called "id", or has a usual name of a column of items, such as "item", "movieId" or "isbn".

    Raises
    ------
    DataFileError
        If the file is missing, no table, lacks a column, or has none of the items.
    """
    try:
        check_width(file, ",")
        with open_text(file) as lines:
            header = pd.read_csv(lines, nrows=0).columns.tolist()
        name = _column_of_ids(file, header, item_ids)
        with open_text(file) as lines:
            table = pd.read_csv(lines, dtype={name: str if item_ids.dtype == object else item_ids.dtype})
    except (DataFileError, OSError, ValueError, OverflowError) as error:
        raise DataFileError(f"expected a CSV with the model's item ids and titles in {file}, found: {error}") from None
    named = table.dropna(subset=[name]).set_index(name).rename_axis("id")
    if not named.index.is_unique:
        raise DataFileError(
            f"the ids of {file} must be distinct, found {named.index[named.index.duplicated()][0]!r} twice"
        )
    if not named.index.isin(item_ids).any():
        raise DataFileError(
            f"expected titles of the model's items in {file}, found none of their ids in its column {name!r}: they "
            f"are such as {quoted(item_ids.tolist()[0])}, those of the file such as "
            f"{quoted(next(iter(named.index), None))}"
        )
    return named


def _column_of_ids(file: Path, header: list[str], item_ids: np.ndarray) -> str:
    """Return the column of ids, or raise `DataFileError` with the column that holds some where it has another name."""
    name = column_of_item_ids(header)
    if name is not None and len(header) > 1:
        return str(name)
    with open_text(file) as lines:
        some = pd.read_csv(lines, dtype=str, nrows=_LOOKED_AT)
    known = [str(each) for each in item_ids.tolist()]
    holding = [each for each in header if len(header) > 1 and bool(pd.Series(some[each]).isin(known).any())]
    hint = f"; rename {quoted(holding[0])}, which holds ids of the model, to id" if len(holding) == 1 else ""
    raise DataFileError(
        f"expected the column id (or item, movieId, ...) and at least one more, found {quoted(header)}{hint}"
    )


def titles_of(table: pd.DataFrame) -> pd.Series:
    """Return the column title of such a table, in any case, else its first."""
    name = named_column("title", list(table.columns))
    titles: pd.Series = table.iloc[:, 0] if name is None else table[name]  # type: ignore[assignment]
    return titles
