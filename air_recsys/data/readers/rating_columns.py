"""The columns of a table of ratings, taken in part by part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from air_recsys.data.columns import (
    as_float,
    as_timestamps,
    checked_kinds,
    dates_of,
    has_limits,
    hint_at_columns,
    index_type,
    joined_relations,
    narrowed,
    split_signs,
    tell_columns,
    usual_column,
)
from air_recsys.data.ids import as_id_array, rank_ids
from air_recsys.data.interactions import Duplicates, Interactions
from air_recsys.exceptions import DataError, DataFileError, quoted

Passed = Callable[[int], object]
"""Is told how many bytes of the files have been read, again and again."""


class ColumnNames(NamedTuple):
    """How a table calls its columns; None where it has no such column."""

    user: str
    item: str
    rating: str | None
    timestamp: str | None
    kind: str | None = None
    relation: str | None = None  # is found by its name, where there are ratings

    @property
    def given(self) -> list[str]:
        """The names of columns that have a value in each row."""
        return [name for name in self._replace(relation=None) if name is not None]

    @property
    def numbers(self) -> list[str]:
        """The names of columns that are no ids."""
        return [name for name in self[2:] if name is not None]

    def among(self, header: list[str]) -> Self | None:
        """Return the names as a header writes them, see `usual_column`; None where it lacks one or has it twice."""
        found = [None if name is None else usual_column(role, name, header) for role, name in self._asdict().items()]
        lacks = any(each is None and name is not None for each, name in zip(found, self, strict=True))
        if self.rating is not None:
            found[-1] = usual_column("relation", "relation", header)
        return None if lacks else type(self)(*found)  # pyright: ignore[reportArgumentType]

    def tell(self, found: Self, header: list[str]) -> None:
        """Warn of columns that a caller may not expect to be read, or not to be, see `tell_columns`."""
        tell_columns(self._replace(relation="relation")._asdict(), found._asdict(), header, stacklevel=6)

    def lacking(self, header: list[str]) -> str:
        """Return what a header was expected to have and has, as the end of a message."""
        given = {role: name for role, name in self._asdict().items() if name}
        absent = {role: name for role, name in given.items() if usual_column(role, name, header) is None}
        absent = absent or {role: name for role, name in given.items() if name not in header}  # under other names
        expected = f"expected the column(s) {list(absent.values())} once each, found {quoted(header)}"
        hint = hint_at_columns(absent, header)
        if not hint and list(absent) == ["rating"]:
            hint = "; likes and purchases have none, which is meant by rating=None (in the shell --ranking)"
        return f"{expected}{hint}"


class Rules(NamedTuple):
    """How ratings of a caller are taken, see `read_ratings`."""

    duplicates: Duplicates = "error"
    allow_negative: bool | None = None
    rating_scale: tuple[float, float] | None = None
    missing: float | None = None
    target: Hashable = None


class Table(NamedTuple):
    """Ratings as arrays: positions in the ids of the table, which are distinct and in their order, and values."""

    users: np.ndarray
    user_ids: np.ndarray
    items: np.ndarray
    item_ids: np.ndarray
    ratings: np.ndarray
    relations: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> Self:
        """Return the ratings under a mask, and the ids that these have."""
        users, user_index = np.unique(self.users[rows], return_inverse=True)
        items, item_index = np.unique(self.items[rows], return_inverse=True)
        ids = self.user_ids[users], self.item_ids[items]
        relations = None if self.relations is None else self.relations[rows]
        return type(self)(user_index, ids[0], item_index, ids[1], self.ratings[rows], relations)


class RatingColumns:
    """Ids, ratings and timestamps of a table, of which only one part need be there as it was read.

    `convert` makes ids of the list of distinct ones; `n_rows` is how many rows will come, where that is known.
    """

    def __init__(
        self,
        path: Path,
        names: ColumnNames,
        n_rows: int = 0,
        convert: Callable[[Any], np.ndarray] = as_id_array,
    ) -> None:
        self._path, self._names, self._convert = path, names, convert
        self.users, self.items = CodedIds("user", n_rows), CodedIds("item", n_rows)
        self._ratings = None if names.rating is None else GrowingColumn(np.float32, n_rows)
        self._times = None if names.timestamp is None else GrowingColumn(np.int64, n_rows)
        self._kinds: list[pd.Series] = []
        self._relations: list[pd.Series] = []
        self._signs: list[tuple[int, np.ndarray]] = []  # the first row of a part, and relations before its ratings
        self._has_dates: bool | None = None
        self.size = 0

    def append(self, part: pd.DataFrame) -> None:
        """Take in ratings and timestamps of some rows, whose ids `users` and `items` have got."""
        if self._ratings is not None:
            ratings = part[self._names.rating].to_numpy()
            if has_limits(ratings):
                ratings, signs = split_signs(ratings)
                self._signs.append((self._ratings.size, signs))
            self._ratings.append(narrowed(as_float(ratings)))
            if self._names.relation is not None:
                self._relations.append(pd.Series(part[self._names.relation]).astype("category"))
        if self._times is not None:
            self._times.append(self._to_times(pd.Series(part[self._names.timestamp])))
        if self._names.kind is not None:
            self._kinds.append(pd.Series(part[self._names.kind]).astype("category"))
        self.size = self.users.size  # a part without numbers has no length

    def to_interactions(self, rules: Rules) -> Interactions:
        """Return the ratings by the rules of `Interactions`; nothing can be appended after that."""
        if not self.size:
            raise DataError("expected at least one rating, found an empty table")
        table, times = self.to_table(), None if self._times is None else self._times.whole()
        if rules.missing is not None:
            given = table.ratings != rules.missing
            table, times = table.select(given), None if times is None else times[given]
        kinds = None
        if self._names.kind is not None:
            column = pd.concat([each.astype(object) for each in self._kinds]).rename(self._names.kind)
            kinds = checked_kinds(column, rules.target, has_ratings=self._ratings is not None)
        read = Interactions(
            table.users,
            table.items,
            table.ratings,
            table.user_ids,
            table.item_ids,
            timestamps=times,
            relations=table.relations,
            duplicates=rules.duplicates if kinds is None else None,
            allow_negative=rules.allow_negative,
            rating_scale=rules.rating_scale,
            copy=False,
        ).checked(self._names.user, self._names.item)
        return read if kinds is None else read.divided(kinds, str(rules.target), rules.duplicates)

    def to_table(self) -> Table:
        """Return ids and ratings, of which there may be none; nothing can be appended after that."""
        ratings = np.ones(self.size, np.float32) if self._ratings is None else self._ratings.whole()
        ids = *self.users.finish(self._convert), *self.items.finish(self._convert)
        return Table(*ids, ratings, self._found_relations())

    def _found_relations(self) -> np.ndarray | None:
        own, column = np.zeros(self.size if self._signs else 0, np.int8), None
        for start, signs in self._signs:
            own[start : start + signs.size] = signs
        if self._relations:
            column = pd.concat([each.astype(object) for each in self._relations])
            column = column if has_limits(column.unique()) or own.size else None
        return joined_relations(own if own.size else None, column, self.size)

    def _to_times(self, column: pd.Series) -> np.ndarray:
        """Return numbers as they are, and dates as nanoseconds."""
        has_dates = column.dtype.kind not in "iuf"
        if self._has_dates not in (None, has_dates):
            raise self._no_times(column.iloc[0], 0)
        self._has_dates = has_dates
        if not has_dates:
            return column.to_numpy() if column.dtype.kind == "i" else as_float(column, "timestamps")
        times, broken = dates_of(column)
        if broken is not None:
            raise self._no_times(column.iloc[broken], broken)
        return as_timestamps(times, len(times))

    def _no_times(self, found: Any, row: int) -> DataFileError:
        expected = f"numbers or ISO 8601 dates as {self._names.timestamp!r}"
        return DataFileError(
            f"{self._path}: expected {expected}, found {found!r} with rating number {self.size + row + 1}"
        )


_GROWTH = 1.5
_AT_ONCE = 1 << 20  # values that are changed together


class GrowingColumn:
    """Numbers that take parts at their end, in a type that holds all of them, and is `kind` at least.

    Where it is known that `n_rows` will come, nothing is copied.
    """

    def __init__(self, kind: type[np.generic], n_rows: int = 0) -> None:
        self._values = np.empty(n_rows, kind)
        self.size = 0

    def append(self, part: np.ndarray) -> None:
        """Take in more numbers."""
        stop, room = self.size + part.size, self._values.size
        kind = np.result_type(self._values, part)
        if stop > room or kind != self._values.dtype:
            wider = np.empty(room if stop <= room else max(stop, int(_GROWTH * room)), kind)
            wider[: self.size] = self._values[: self.size]
            self._values = wider
        self._values[self.size : stop] = part
        self.size = stop

    def whole(self) -> np.ndarray:
        """Return all numbers; nothing can be appended after that."""
        values = self._values
        del self._values
        values.resize(self.size, refcheck=False)  # gives back what is not used
        return values


class CodedIds:
    """A column of ids as the index of each among the distinct ones, coded part by part."""

    def __init__(self, kind: str, n_rows: int = 0) -> None:
        self._kind, self._codes = kind, GrowingColumn(np.int32, n_rows)
        self._known: dict[Hashable, int] = {}
        self._types: set[np.dtype] = set()

    @property
    def size(self) -> int:
        """Number of ids so far."""
        return self._codes.size

    def append(self, codes: np.ndarray, distinct: Any) -> None:
        """Take in ids, given as indices into distinct ones, all of which occur; -1 is an id that is missing."""
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            row = self._codes.size + missing[0]
            raise DataError(f"every rating needs its {self._kind} id, found row {row} without one")
        names: Iterable[Hashable] = distinct.tolist()
        self._types.add(np.asarray(distinct).dtype)
        known = self._known
        places = np.fromiter((known.setdefault(name, len(known)) for name in names), np.int64, len(distinct))
        self._codes.append(places.astype(index_type(len(known)))[codes])

    def finish(self, convert: Callable[[np.ndarray], np.ndarray] = as_id_array) -> tuple[np.ndarray, np.ndarray]:
        """Return indices and ids as `encode_ids` does, of the ids that `convert` makes of the distinct ones."""
        ids: Any = list(self._known)
        if len(self._types) == 1 and (kind := next(iter(self._types))).kind == "f":
            ids = np.array(ids, kind)  # how many digits count depends on the type
        ids, rank = rank_ids(convert(ids))
        codes = self._codes.whole()
        for start in range(0, codes.size, _AT_ONCE):
            block = codes[start : start + _AT_ONCE]
            block[:] = rank[block]
        return codes, ids


def code(values: Any) -> tuple[np.ndarray, Any]:
    """Return a part of a column for `CodedIds.append`."""
    array = np.asarray(values)
    codes, distinct = pd.factorize(array if array.dtype.kind == "f" else as_id_array(values))
    return codes, distinct
