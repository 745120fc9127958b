"""Columns that grow by parts of a file, so that a long table is held once, and in few bits."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.columns import index_type
from air_recsys.data.ids import as_id_array, rank_ids
from air_recsys.exceptions import DataError

_GROWTH = 1.5
_AT_ONCE = 1 << 20  # values that are changed together


class GrowingColumn:
    """Numbers that take parts at their end, in a type that holds all of them.

    Parameters
    ----------
    kind : type
        The least type of the numbers.
    n_rows : int
        How many will come, where that is known: then nothing is copied.

    Examples
    --------
    >>> column = GrowingColumn(np.float32)
    >>> for part in (np.array([1.5], np.float32), np.array([0.1, 0.2])):
    ...     column.append(part)
    >>> column.whole()
    array([1.5, 0.1, 0.2])
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
    """A column of ids as the index of each among the distinct ones, coded part by part.

    Parameters
    ----------
    kind : str
        "user" or "item", for messages.
    n_rows : int
        See `GrowingColumn`.

    Examples
    --------
    >>> column = CodedIds("user")
    >>> for part in (["b", "a"], ["c", "b"]):
    ...     column.append(*pd.factorize(np.array(part, dtype=object)))
    >>> column.finish()
    (array([1, 0, 2, 1], dtype=int32), array(['a', 'b', 'c'], dtype=object))
    """

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
    """Return a part of a column for `CodedIds.append`.

    Examples
    --------
    >>> code(pd.Series([7, 5, 7]))
    (array([0, 1, 0]), array([7, 5]))
    """
    array = np.asarray(values)
    codes, distinct = pd.factorize(array if array.dtype.kind == "f" else as_id_array(values))
    return codes, distinct
