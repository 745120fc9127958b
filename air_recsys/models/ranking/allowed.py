"""The items that lists may hold: the same for all users, or for each user its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import pair_columns
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex, asked_ids
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.metrics.checks import Csr
from air_recsys.storage.validation import check_integer

_BLOCK_ENTRIES = 16_000_000  # entries of the lists of a block; scores have blocks of their own


@dataclass(frozen=True)
class Allowed:
    """The items that the lists of the users asked for may hold."""

    n_items: int
    common: np.ndarray | None = None  # positions, ascending; None where all may be listed
    candidates: Csr | None = None  # (users asked for, n_items), where each has its own
    excluded: Csr | None = None  # likewise

    @property
    def n_left(self) -> int:
        """The number of items that a list may hold at most."""
        return self.n_items if self.common is None else self.common.size

    @property
    def has_own(self) -> bool:
        """Whether users have items of their own."""
        return self.candidates is not None or self.excluded is not None

    def n_together(self, n: int) -> int:
        """The number of users whose lists of n places, and items left out, are held at a time."""
        return max(1, _BLOCK_ENTRIES // (self.n_items if self.has_own else n))

    def left_out(self, rows: np.ndarray, seen: Csr | None) -> Csr | None:
        """The items that lists leave out of the common ones, and those seen, (b, n_items), of some users asked for."""
        parts = [] if seen is None else [seen]
        if self.excluded is not None:
            parts.append(self.excluded[rows])
        if self.candidates is not None:
            others = self.candidates[rows].toarray() == 0
            if self.common is not None:
                others &= np.isin(np.arange(self.n_items), self.common)
            parts.append(sp.csr_array(others, dtype=np.float32))
        return sum(parts[1:], parts[0]) if parts else None

    def of(self, row: int) -> np.ndarray | None:
        """The items that the list of one user asked for may hold."""
        if not self.has_own:
            return self.common
        left_out = self.left_out(np.array([row]), None)
        assert left_out is not None
        return np.setdiff1d(np.arange(self.n_items) if self.common is None else self.common, left_out.nonzero()[1])


def allowed_items(
    index: IdIndex, items: Any = None, exclude: Any = None, users: IdIndex | None = None, asked: Any = None
) -> Allowed:
    """The items of which lists may be made.

    `items` and `exclude` are ids for all users, or for each of the `asked` users its own, where there are such: a
    mapping from user ids to item ids, a table with the columns user and item, or a sparse matrix with a row per user
    asked for and a column per item.
    """
    own = {name: _own(index, given, users, asked) for name, given in (("items", items), ("exclude", exclude))}
    allowed = np.ones(len(index), dtype=bool)
    if items is not None:
        allowed[:] = False
        allowed[index.places(items) if own["items"] is None else np.unique(own["items"].indices)] = True
    if exclude is not None and own["exclude"] is None:
        allowed[index.places(exclude)] = False
    common = None if items is None and (exclude is None or own["exclude"] is not None) else np.flatnonzero(allowed)
    return Allowed(len(index), common, own["items"], own["exclude"])


def has_own(*given: Any) -> bool:
    """Whether some of what `allowed_items` takes is of single users, and not for all."""
    tables = [as_pandas(each) for each in given]
    pairs = (isinstance(each, pd.DataFrame) and each.shape[1] > 1 for each in tables)
    return any(pairs) or any(isinstance(each, Mapping) or sp.issparse(each) for each in tables)


def own_ids(index: IdIndex, given: Any, users: IdIndex, asked: Any) -> dict[Hashable, list[Hashable]] | None:
    """The items of each user asked for, by ids, of what `allowed_items` takes; None where they are for all users."""
    own = _own(index, given, users, asked)
    if own is None:
        return None
    ids = (index.ids[places].tolist() for places in np.split(own.indices, own.indptr[1:-1]))
    return dict(zip(asked_ids(asked, users.kind).tolist(), ids, strict=True))


def list_length(n: int, n_left: int) -> int:
    """The length of lists: n, or what there is to recommend where that is less; at least 1."""
    return min(check_integer("n", n, minimum=1), max(n_left, 1))


def among(allowed: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
    """Items by their positions among the allowed ones; -1, for no item, stays."""
    return positions if allowed is None or not allowed.size else np.where(positions >= 0, allowed[positions], -1)


def _own(index: IdIndex, given: Any, users: IdIndex | None, asked: Any) -> Csr | None:
    """The items of each user asked for, 1 at each, (users, n_items); None where they are the same for all."""
    if users is None or not has_own(given):
        return None
    table = as_pandas(given)
    ids = asked_ids(asked, users.kind).tolist()
    if sp.issparse(given):
        if given.shape != (len(ids), len(index)):
            expected = f"one row per user asked for and one column per item, {(len(ids), len(index))}"
            raise DataError(f"expected a matrix with {expected}, found the shape {given.shape}")
        rows = sp.csr_array(given != 0, dtype=np.float32)
        rows.sort_indices()
        return rows
    by_user = table
    if not isinstance(table, Mapping):
        user, item = pair_columns(table, (users.kind, index.kind))
        by_user = {id: rows.to_numpy() for id, rows in table.groupby(user, sort=False, observed=True)[item]}
    _check_users(by_user, ids, users)
    lists = [index.places(by_user[each]) if each in by_user else np.empty(0, dtype=np.int64) for each in ids]
    counts = [each.size for each in lists]
    columns = np.concatenate([np.empty(0, dtype=np.int64), *lists])
    pairs = np.repeat(np.arange(len(ids)), counts), columns
    return sp.csr_array((np.ones(columns.size, np.float32), pairs), shape=(len(ids), len(index)))


def _check_users(by_user: Mapping[Any, Any], asked: list[Any], users: IdIndex) -> None:
    """Raise `UnknownIdError` for users that are neither asked for nor known."""
    others = asked_ids(list(set(by_user).difference(asked)), users.kind)
    unknown = others[users.lookup(others) < 0]
    if unknown.size:
        raise UnknownIdError(users.kind, unknown.tolist(), "leave it out, or ask for it")
