"""Titles and other attributes of items, for the items of a model."""

from __future__ import annotations

import html
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.data.columns import column_of_ids, named_column
from air_recsys.data.ids import IdIndex, integer_of
from air_recsys.data.readers.forms import FOUND, Writing
from air_recsys.data.readers.sources import UndecodableError, regular
from air_recsys.data.readers.tables import existing, form_of, is_parquet, read_names, read_table
from air_recsys.exceptions import DataFileError, DataWarning, quoted


def read_titles(path: Path, item_ids: np.ndarray) -> pd.DataFrame:
    """Return the attributes of items in a table, indexed by the model's item ids.

    The column of ids is called "id", or has a usual name of a column of items, such as "item", "movieId" or "isbn". A
    file of text whose first line begins with an id of the model has no header: ids come first, then titles. Rows
    whose id is missing, or is none of the model's kind, are left out with a warning; so are texts that are no UTF-8
    read as Latin-1. Entities of HTML become the signs that they stand for.
    """
    with regular(path) as file:
        try:
            table, name = _with_column_of_ids(existing(file, "titles"), item_ids)
        except (DataFileError, OSError) as error:
            raise DataFileError(
                f"expected a table with the model's item ids and titles in {path}, found: {error}"
            ) from None
    named = _with_ids(file, table, name, item_ids)
    if not named.index.is_unique:
        repeated = named.index[named.index.duplicated()].tolist()[0]
        raise DataFileError(f"the ids of {file} must be distinct, found {quoted(repeated)} twice")
    if not named.index.isin(item_ids).any():
        raise DataFileError(
            f"expected titles of the model's items in {file}, found none of their ids in its column {name!r}: they "
            f"are such as {quoted(item_ids.tolist()[0])}, those of the file such as "
            f"{quoted(next(iter(table[name].dropna().tolist()), None))}"
        )
    IdIndex(item_ids, "item").check_shared(named.index.to_numpy(), "titles")
    return pd.DataFrame({name: _unescaped(pd.Series(named[name])) for name in named.columns})


def _with_column_of_ids(file: Path, item_ids: np.ndarray, writing: Writing = FOUND) -> tuple[pd.DataFrame, str]:
    """Return a table, and the name of its column of ids, which are text as it is written."""
    try:
        names = _names_without_header(file, item_ids, writing)
        header = read_names(file, writing) if names is None else names
        name, title = column_of_ids("item", header), str(named_column("title", header))
        table = read_table(file, "titles", [0 if name is None else str(name), title], writing, names=names)
        if name is None or len(header) < 2:
            raise _without_ids(file, table, item_ids)
        return table, str(name)
    except UndecodableError:
        if writing.encoding is not None:
            raise
    found = _with_column_of_ids(file, item_ids, writing._replace(encoding="latin-1"))
    warnings.warn(f"{file}: the titles are no UTF-8 and are read as Latin-1", DataWarning, stacklevel=4)
    return found


def _names_without_header(file: Path, item_ids: np.ndarray, writing: Writing) -> list[str] | None:
    """Return names for the columns of a file whose first line begins with an id of the model; None for others."""
    if is_parquet(file):
        return None
    first = form_of(file, writing)[1]
    if len(first) < 2 or first[0] not in set(map(str, item_ids.tolist())):
        return None
    return ["id", "title", *(f"field {place}" for place in range(3, len(first) + 1))]


def _with_ids(file: Path, table: pd.DataFrame, name: str, item_ids: np.ndarray) -> pd.DataFrame:
    """Return the rows whose ids are of the model's kind, indexed by them, and warn of others."""
    texts = table[name]
    ids: list[object] = [None if pd.isna(each) else each for each in texts.tolist()]
    if item_ids.dtype != object:
        ids = [None if each is None else integer_of(str(each)) for each in ids]
    elif table[name].dtype.kind not in "iuf":
        ids = [None if each is None else str(each) for each in ids]
    lacking = np.flatnonzero([each is None for each in ids])
    if 0 < lacking.size < len(ids):
        kind = "an integer" if item_ids.dtype != object else "an id"
        warnings.warn(
            f"{file}: {lacking.size} of {len(ids)} rows without {kind} in {name!r} are left out, the first row "
            f"{lacking[0] + 1}: {quoted(texts.iloc[lacking[0]])}",
            DataWarning,
            stacklevel=3,
        )
    kept = np.setdiff1d(np.arange(len(ids)), lacking)
    index = pd.Index([ids[place] for place in kept], dtype=item_ids.dtype, name="id")
    return table.drop(columns=name).iloc[kept].set_axis(index, axis=0)


def _without_ids(file: Path, table: pd.DataFrame, item_ids: np.ndarray) -> DataFileError:
    """Return the error for a table without a column of ids, with the one that holds some where it has another name."""
    header = list(table.columns)
    known = [str(each) for each in item_ids.tolist()]
    holding = [each for each in header if len(header) > 1 and bool(table[each].astype(str).isin(known).any())]
    hint = f"; rename {quoted(holding[0])}, which holds ids of the model, to id" if len(holding) == 1 else ""
    return DataFileError(
        f"{file}: expected the column id (or item, movieId, ...) and at least one more, found {quoted(header)}{hint}"
    )


def _unescaped(column: pd.Series) -> pd.Series:
    """Return texts as people read them: "Tiger & Bunny" for "Tiger &amp; Bunny"."""
    if column.dtype.kind in "biuf":
        return column
    return column.map(lambda cell: html.unescape(cell) if isinstance(cell, str) else cell)


def titles_of(table: pd.DataFrame) -> pd.Series:
    """Return the column title of such a table, in any case, else its first; warn where that has numbers."""
    name = named_column("title", list(table.columns))
    if name is None and table.iloc[:, 0].dtype.kind in "biuf":
        told = f"expected a column title, found none: {quoted(str(table.columns[0]))} is taken, which has numbers"
        warnings.warn(told, DataWarning, stacklevel=3)
    titles: pd.Series = table.iloc[:, 0] if name is None else table[name]  # type: ignore[assignment]
    return titles


def groups_in(table: pd.DataFrame, column: str) -> pd.Series:
    """Return the labels of each item in a column of such a table, several of them with | between."""
    name = named_column(column, list(table.columns))
    if name is None:
        raise DataFileError(f"expected a column {column!r} of groups, found {quoted(list(table.columns))}")
    return table[name].dropna().astype(str).str.split("|")
