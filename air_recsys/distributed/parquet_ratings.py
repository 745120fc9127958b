"""Ratings in Parquet of which each rank reads its own part: no rank holds all of them while they are trained on.

A rank reads some row groups. Ids are agreed on, and each rating goes to the rank that owns its user, and once more to
the rank that owns its item.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from air_recsys.data.columns import index_type
from air_recsys.data.ids import IdIndex, as_id_array, rank_ids
from air_recsys.data.interactions import Duplicates, Interactions
from air_recsys.data.readers.rating_columns import ColumnNames, Table
from air_recsys.data.readers.ratings_parquet import find_columns, read_headers, read_share
from air_recsys.distributed.checks import check_enough
from air_recsys.distributed.group import Cut, Group
from air_recsys.distributed.own_ratings import OwnRatings, OwnSide, TableExtent, moments_of, of_one_width
from air_recsys.exceptions import DataError, DataFileError
from air_recsys.models.storage.fingerprint import add_ids
from air_recsys.storage.lazy import torch
from air_recsys.storage.validation import check_choice

_AT_ONCE = 1 << 20

CutsOf = Callable[[TableExtent, list[np.ndarray]], tuple[Cut, Cut]]
"""Returns who owns which users and items, from the sizes of all and the numbers of ratings of each."""


@dataclass(frozen=True)
class ParquetRatings:
    """Ratings in a Parquet file or in a folder of parts, for `air_recsys.distributed.fit`: each rank reads its share.

    A rank reads whole row groups: more of them can be shared more evenly. All ranks hold all ids.

    Parameters
    ----------
    path : path
        The same files for every rank.
    user, item : str
        Names of the columns with ids.
    rating : str or None
        Name of the column with numbers; None gives every row the rating 1.
    duplicates : {"error", "first", "last", "mean", "sum"}
        The value of a repeated pair.
    allow_negative : bool
        Accept negative ratings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from air_recsys import AIR
    >>> from air_recsys.distributed import fit
    >>> users, items = np.indices((12, 8)).reshape(2, -1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pd.DataFrame({"user": users, "item": items, "rating": 1.0 + users // 6 + 2 * (items // 4)})
    ...     for number, part in enumerate((table[:50], table[50:])):
    ...         part.to_parquet(pathlib.Path(folder, f"part-{number}.parquet"))
    ...     model = fit(AIR.for_ratings(n_factors=2, random_state=0, device="cpu"), ParquetRatings(folder))
    >>> model.interactions_
    Interactions(n_users=12, n_items=8, n_ratings=96, density=100.00 %, ratings 1..4)
    """

    path: str | os.PathLike[str]
    user: str = "user"
    item: str = "item"
    rating: str | None = "rating"
    duplicates: Duplicates = "error"
    allow_negative: bool = False

    def __post_init__(self) -> None:
        check_choice("duplicates", self.duplicates, get_args(Duplicates))

    def read(self, group: Group) -> Table:
        """The share of this rank.

        Raises
        ------
        DataFileError, DataError
            On all ranks, as `air_recsys.datasets.read_ratings` does on one; where ranks see other files, too.
        """
        path, asked = Path(self.path).expanduser(), ColumnNames(self.user, self.item, self.rating, None)
        names = group.together(lambda: find_columns(path, asked)[0] or asked)
        parts = group.together(lambda: read_headers(path, names))
        seen = group.of_all([(part.path.name, part.rows) for part in parts])
        other = [rank for rank, files in enumerate(seen) if files != seen[0]]
        if other:
            raise DataFileError(f"{path}: expected the same files on every rank, found others than rank 0 on {other}")
        if not sum(part.n_rows for part in parts):
            raise DataFileError(f"{path}: expected at least one rating, found an empty table")
        table = group.together(lambda: read_share(path, names, parts, group.rank, group.size).to_table())
        if any(group.of_all(table.relations is not None)):
            raise DataError(
                f"{path}: expected measured ratings in parts, found limits (relation < or >): give every rank all of "
                "them, from air_recsys.datasets.read_ratings"
            )
        return table


def read_own(group: Group, source: ParquetRatings, cuts_of: CutsOf) -> OwnRatings:
    """The ratings of the users and of the items of this rank."""
    table = source.read(group)
    n_read = sum(group.of_all(table.ratings.size))
    users, user_ids = _agreed(group, table.users, table.user_ids, "user")
    items, item_ids = _agreed(group, table.items, table.item_ids, "item")
    check_enough(group, user_ids.size, item_ids.size)
    counts = [_counts(group, index, ids.size) for index, ids in ((users, user_ids), (items, item_ids))]
    cuts = cuts_of(TableExtent(user_ids.size, item_ids.size, n_read), counts)
    index_of_users, index_of_items, ratings = _dealt(
        group, users, cuts[0], users, items, of_one_width(group, table.ratings)
    )
    rows = group.together(
        lambda: Interactions(
            index_of_users,
            index_of_items,
            ratings,
            user_ids,
            item_ids,
            duplicates=source.duplicates,
            allow_negative=source.allow_negative,
            copy=False,
        )
    )
    return OwnRatings(rows, _sides(group, rows, cuts), moments_of(group, rows.ratings), _digest(group, rows))


def _sides(group: Group, rows: Interactions, cuts: tuple[Cut, Cut]) -> tuple[OwnSide, OwnSide]:
    """The ratings of the own users, and from those of all ranks the ratings of the own items."""
    matrix = rows.to_csr()
    matrix.sort_indices()
    items, ratings = matrix.indices.astype(rows.item_index.dtype, copy=False), of_one_width(group, matrix.data)
    users = np.repeat(np.arange(rows.n_users, dtype=rows.user_index.dtype), np.diff(matrix.indptr))
    degrees = _counts(group, users, rows.n_users), _counts(group, items, rows.n_items)
    own = OwnSide.sorted(cuts[0], group.rank, users, items, ratings, degrees[0])
    items, users, ratings = _dealt(group, items, cuts[1], items, users, ratings)
    return own, OwnSide.sorted(cuts[1], group.rank, items, users, ratings, degrees[1])


def _agreed(group: Group, index: np.ndarray, ids: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions in the ids of all ranks, and these, in the order that one process gives them."""
    parts = [part for part in group.of_all(ids) if part.size]
    known: dict[object, None] = {}
    for part in parts:
        known |= dict.fromkeys(part.tolist())
    of_all, _ = rank_ids(as_id_array(list(known)))
    return IdIndex(of_all, kind).lookup(ids).astype(index_type(of_all.size))[index], of_all


def _counts(group: Group, index: np.ndarray, size: int) -> np.ndarray:
    """How many ratings of all ranks each user, or item, has."""
    (counts,) = group.sum(torch.as_tensor(np.bincount(index, minlength=size)))
    return counts.numpy()


def _dealt(group: Group, index: np.ndarray, cut: Cut, *columns: np.ndarray) -> list[np.ndarray]:
    """The rows of columns whose `index` this rank owns: those of rank 0 first, in their order."""
    owners = np.searchsorted(cut.starts[1:], index, side="right")
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=group.size).tolist()
    return [group.deal(torch.as_tensor(column[order]), sizes).numpy() for column in columns]


def _digest(group: Group, rows: Interactions) -> str:
    """A digest of ids and ratings that depends neither on the order of the ratings nor on the ranks."""
    pairs, values, own = rows.pair_index.view(np.uint64), rows.ratings.view(np.uint64), 0
    for start in range(0, pairs.size, _AT_ONCE):
        block = slice(start, start + _AT_ONCE)
        own += int(_mixed(_mixed(pairs[block]) + values[block]).sum(dtype=np.uint64))
    hashed = hashlib.sha256(f"{sum(group.of_all(own)) % 2**64}".encode())
    for ids in (rows.user_ids, rows.item_ids):
        add_ids(hashed, ids)
    return hashed.hexdigest()


def _mixed(keys: np.ndarray) -> np.ndarray:
    """64-bit numbers of which each bit depends on all bits of a key: the finalizer of SplitMix64."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
