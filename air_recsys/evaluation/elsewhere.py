"""Answers made elsewhere, such as those of a system in production: tables of lists, or of predicted ratings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from air_recsys.data.columns import as_float, named_column, pair_columns
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import alike, encode_ids
from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.forms import FOUND
from air_recsys.data.readers.tables import existing, read_names, read_table
from air_recsys.exceptions import DataError

_RATINGS = ("rating", "prediction", "predicted")
_FEWEST = 10  # places that tell whether only tested items are listed


class MadeElsewhere:
    """Lists of items, or predicted ratings, as a model that is not trained.

    Parameters
    ----------
    table : DataFrame or Path
        A user and an item a row. A column rating, prediction or predicted makes it one of ratings. Of lists a column
        rank counts, else score, the highest first, else the order of the rows, which also decides between equals.

    Raises
    ------
    DataError
        For a table without users and items, a pair that is there twice, and values that are no finite numbers.

    Examples
    --------
    >>> table = pd.DataFrame({"user": ["ann", "ann"], "item": ["x", "y"], "score": [0.1, 0.7]})
    >>> MadeElsewhere(table)
    lists made elsewhere, by score
    """

    def __init__(self, table: Any) -> None:
        table = _read(table) if isinstance(table, Path) else as_pandas(table)
        user, item = pair_columns(table)
        if table.empty:
            raise DataError("expected lists or ratings made elsewhere, found an empty table")
        named = {name: named_column(name, list(table.columns)) for name in ("rank", "score", *_RATINGS)}
        self.by = next((name for name, column in named.items() if column is not None), "order of the rows")
        self.rated = self.by in _RATINGS
        column = named.get(self.by)
        values = np.arange(len(table)) if column is None else as_float(table[column].to_numpy(), self.by)
        if (broken := np.flatnonzero(~np.isfinite(values))).size:
            found = f"found {broken.size} NaN or infinite, the first in row {broken[0]}"
            raise DataError(f"expected a finite {self.by} in each row, {found}: leave out what is not listed")
        (self._users, self.user_ids), (self._items, self.item_ids) = (
            encode_ids(table[name], side) for name, side in ((user, "user"), (item, "item"))
        )
        twice = np.flatnonzero(pd.Series(self._users * np.int64(self.item_ids.size) + self._items).duplicated())
        if twice.size:
            first = f"item {table[item].iloc[twice[0]]!r} of user {table[user].iloc[twice[0]]!r}"
            raise DataError(f"expected each item once for a user, found {twice.size} again, the first {first}")
        self._values = -values if self.by == "score" else values

    def __repr__(self) -> str:
        return f"{'ratings' if self.rated else 'lists'} made elsewhere, by {self.by}"

    def fit(self, shown: Interactions) -> Self:
        """Find the places of the ids, and which rows stand in lists: not those of items that a user was shown."""
        places = []
        for ids, index, own in (
            (self.user_ids, shown.users, self._users),
            (self.item_ids, shown.items, self._items),
        ):
            ids = alike(ids, index.ids)
            index.check_shared(ids, "answers made elsewhere")
            places.append(index.lookup(ids)[own])
        users, items = self.users, self.items = places
        pairs = users * np.int64(shown.n_items) + items
        self.pairs = np.where((users >= 0) & (items >= 0), pairs, -1)
        self.was_shown = np.isin(self.pairs, shown.pair_index)
        self._shown = shown
        rows = np.flatnonzero((users >= 0) & ~self.was_shown)
        self.rows = rows[np.lexsort((self._values[rows], users[rows]))]
        self.sizes = np.bincount(users[rows], minlength=shown.n_users)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The first n items of some users, by positions; -1 for one that the data do not have, and where none is."""
        of_rows = self.users[self.rows]
        place = np.arange(of_rows.size) - (np.cumsum(self.sizes) - self.sizes)[of_rows]
        lists = np.full((self.sizes.size, n), -1)
        first = place < n
        lists[of_rows[first], place[first]] = self.items[self.rows[first]]
        return lists[users]

    def predict(self, user_ids: Any, item_ids: Any) -> np.ndarray:
        """The ratings of pairs; `DataError` where the table lacks one."""
        users, items = self._shown.users.lookup(user_ids), self._shown.items.lookup(item_ids)
        asked = users * np.int64(self._shown.n_items) + items
        order = np.argsort(self.pairs, kind="stable")
        rows = order[np.searchsorted(self.pairs, asked, sorter=order).clip(max=order.size - 1)]
        missing = np.flatnonzero(self.pairs[rows] != asked)
        if missing.size:
            user, item = (np.asarray(ids).item(missing[0]) for ids in (user_ids, item_ids))
            first = f"the first of user {user!r} and item {item!r}"
            raise DataError(f"expected ratings of all {asked.size} test pairs, found none for {missing.size}, {first}")
        return self._values[rows]

    def doubts(self, test: Interactions, users: np.ndarray, k: int) -> Iterator[str]:
        """Yield what is odd about lists of k items of some users, once fitted; raise where none of them has one."""
        asked, sizes = np.isin(self.users, users), self.sizes[users]
        if not sizes.any():
            raise DataError(f"expected lists of the {users.size} users with test items, found none")
        for told, n in {
            "users that the data do not have": np.unique(self._users[self.users < 0]).size,
            "listed items that the data do not have, which count as missed": (asked & (self.items < 0)).sum(),
            "listed items that their user was shown, which are left out": (asked & self.was_shown).sum(),
            f"users without a list, of {users.size:,}": (sizes == 0).sum(),
            f"users with a list of fewer than {k} items, of {users.size:,}": ((sizes > 0) & (sizes < k)).sum(),
        }.items():
            if n:
                yield f"{told}: {n:,}"
        listed = self.pairs[asked & ~self.was_shown]
        if listed.size >= _FEWEST and np.isin(listed, test.pair_index).all():
            yield "all items of lists are tested ones: lists are made of all items"


def _read(file: Path) -> pd.DataFrame:
    names = read_names(existing(file, "lists"), FOUND)
    return read_table(file, "lists", list(map(str, pair_columns(pd.DataFrame(columns=names)))))
