"""The ids of a whole table, looked up in a model before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.distributed.parquet import ParquetTable
from air_recsys.exceptions import DataFileError, UnknownIdError
from air_recsys.ids import IdIndex


def check_users(table: ParquetTable, user: str, index: IdIndex, unknown: str) -> None:
    """Look at all users of a table.

    Raises
    ------
    DataFileError
        Where an id is missing, or a user stands twice.
    UnknownIdError
        With `unknown` "error" where a user is not in `index`, with "skip" where none is.
    """
    seen = np.zeros(len(index), dtype=bool)
    strangers: dict[Any, None] = {}
    for (ids,) in table.batches([user]):
        users, found = pd.Series(ids), index.lookup(ids)
        new = pd.unique(users[found < 0]).tolist()
        repeated = users[users.duplicated() | ((found >= 0) & seen[found])].tolist()
        repeated += [one for one in new if one in strangers]
        if repeated:
            raise DataFileError(
                f"{table.path}: expected each user once, found {repeated[0]!r} twice; drop duplicates first"
            )
        seen[found[found >= 0]] = True
        strangers |= dict.fromkeys(new)
    if strangers and (unknown == "error" or (unknown == "skip" and not seen.any())):
        raise UnknownIdError("user", list(strangers), "unknown='popular' gives them what is popular")


def check_pairs(table: ParquetTable, columns: list[str], indices: tuple[IdIndex, IdIndex], unknown: str) -> None:
    """Look at all pairs of a table.

    Raises
    ------
    DataFileError
        Where an id is missing.
    UnknownIdError
        With `unknown` "error" where an id is not in its index.
    """
    strangers: tuple[dict[Any, None], dict[Any, None]] = ({}, {})
    for batch in table.batches(columns):
        if unknown == "error":
            for ids, index, strange in zip(batch, indices, strangers, strict=True):
                strange.update(dict.fromkeys(pd.Series(ids)[index.lookup(ids) < 0].tolist()))
    for index, strange in zip(indices, strangers, strict=True):
        if strange:
            raise UnknownIdError(index.kind, list(strange), "unknown='mean' predicts a mean instead")
