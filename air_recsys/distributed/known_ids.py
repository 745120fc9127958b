"""Checks of the ids of a whole table against those of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.ids import IdIndex
from air_recsys.distributed.parquet import ParquetTable
from air_recsys.exceptions import DataFileError, UnknownIdError


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
