"""Pairs of a user and an item that are rated more than once: found by one sort, resolved by a rule."""

from __future__ import annotations

from typing import Literal

import numpy as np

Duplicates = Literal["error", "first", "last", "mean", "sum"]
Rule = Literal[Duplicates, "latest"]
_AT_ONCE = 1 << 20  # pairs that are looked up together


def repeated_values(keys: np.ndarray) -> np.ndarray:
    """Return the distinct values that occur more than once, ascending; `keys` is sorted in its place."""
    keys.sort()
    again = keys[1:][keys[1:] == keys[:-1]]
    return again[np.append(True, again[1:] != again[:-1])] if again.size else again


class RepeatedPairs:
    """The ratings of pairs that are rated more than once.

    `keys` are the pairs of all ratings, (n_ratings,), `repeated` those that occur more than once, ascending and at
    least one.
    """

    def __init__(self, keys: np.ndarray, repeated: np.ndarray) -> None:
        self.rows = _rows_of(keys, repeated)  # ascending, so the first one is the first of its pair
        group = np.searchsorted(repeated, keys[self.rows])
        first, last = np.empty_like(repeated), np.empty_like(repeated)
        first[group[::-1]], last[group] = self.rows[::-1], self.rows  # the last write wins
        self._group, self._first, self._last, self._n_ratings = group, first, last, keys.size

    @property
    def n_surplus(self) -> int:
        """Number of ratings beyond one of each pair."""
        return self.rows.size - self._first.size

    def resolve(self, values: np.ndarray, rule: Rule) -> np.ndarray:
        """Return one value of each pair, in the order of the values.

        The value of a repeated pair is its first or last one, in the place of that, or the mean, the sum or, of times,
        the latest of its values, in the place of the first.
        """
        kept = self._last if rule == "last" else self._first
        stays = np.ones(self._n_ratings, dtype=bool)
        stays[self.rows] = False
        stays[kept] = True
        if rule in ("mean", "sum"):
            total = np.bincount(self._group, weights=values[self.rows])
            values = values.astype(np.float64)
            values[kept] = total / np.bincount(self._group) if rule == "mean" else total
        elif rule == "latest":
            values = values.copy()
            np.maximum.at(values, kept[self._group], values[self.rows])
        return values[stays]


def _rows_of(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the positions of keys that are among ascending values."""
    rows = []
    for start in range(0, keys.size, _AT_ONCE):
        part = keys[start : start + _AT_ONCE]
        place = np.minimum(np.searchsorted(values, part), values.size - 1)
        rows.append(start + np.flatnonzero(values[place] == part))
    return np.concatenate(rows)
