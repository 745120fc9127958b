"""Titles and other attributes of items from the caller's table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from air_recsys.datasets.ratings_check import check_width, open_text
from air_recsys.exceptions import DataFileError, quoted


def read_titles(file: Path, item_ids: np.ndarray) -> pd.DataFrame:
    """Read a CSV with a column "id" and attributes of the items, indexed by the model's item ids.

    Raises
    ------
    DataFileError
        If the file is missing, no table, lacks a column, or has none of the items.
    """
    try:
        check_width(file, ",")
        with open_text(file) as lines:
            table = pd.read_csv(lines, dtype={"id": str if item_ids.dtype == object else item_ids.dtype})
    except (DataFileError, OSError, ValueError, OverflowError) as error:
        raise DataFileError(
            f"expected a CSV with the model's item ids in column id of {file}, found: {error}"
        ) from None
    if "id" not in table or len(table.columns) < 2:
        names = quoted(list(table.columns))
        raise DataFileError(f"expected the column id and at least one more in {file}, found {names}")
    named = table.dropna(subset=["id"]).set_index("id")
    if not named.index.is_unique:
        raise DataFileError(
            f"the ids of {file} must be distinct, found {named.index[named.index.duplicated()][0]!r} twice"
        )
    if not named.index.isin(item_ids).any():
        raise DataFileError(f"expected titles of the model's items in {file}, found none of their ids")
    return named


def titles_of(table: pd.DataFrame) -> pd.Series:
    """Return the column title of such a table, else its first."""
    titles: pd.Series = table["title"] if "title" in table else table.iloc[:, 0]  # type: ignore[assignment]
    return titles
