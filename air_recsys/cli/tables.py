"""Ids and titles as people give them on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError, DataFileError


def as_ids(texts: list[str], known: np.ndarray) -> list:
    """Turn ids from the command line into the model's kind: integers where all its ids are."""
    if known.dtype == object:
        return texts
    try:
        return [int(text) for text in texts]
    except ValueError:
        raise DataError(f"this model's ids are integers, found {', '.join(map(repr, texts))}") from None


def read_titles(file: Path, known: np.ndarray) -> pd.DataFrame:
    """Read a CSV with a column "id" and what is known of the items, indexed by the model's item ids.

    Raises
    ------
    DataFileError
        Where the file is missing, no table, lacks a column, or knows none of the items.
    """
    try:
        table = pd.read_csv(file, dtype={"id": str if known.dtype == object else known.dtype})
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"expected a CSV with the model's item ids in column id of {file}, found: {error}"
        ) from None
    if "id" not in table or len(table.columns) < 2:
        raise DataFileError(f"expected the column id and at least one more in {file}, found {list(table.columns)}")
    named = table.dropna(subset=["id"]).set_index("id")
    if not named.index.is_unique:
        raise DataFileError(
            f"the ids of {file} must be distinct, found {named.index[named.index.duplicated()][0]!r} twice"
        )
    if not named.index.isin(known).any():
        raise DataFileError(f"expected titles of the model's items in {file}, found none of their ids")
    return named


def titles_of(table: pd.DataFrame) -> pd.Series:
    """Return the column title of such a table, else its first."""
    titles: pd.Series = table["title"] if "title" in table else table.iloc[:, 0]  # type: ignore[assignment]
    return titles
