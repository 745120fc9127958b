"""One column of a table of features as numbers: a number, a flag, or a flag for each level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from air_recsys.exceptions import DataError, quoted

KINDS = ("number", "flag", "levels")
SEPARATOR = "|"
MOST = 1000
"""Features that a table may have."""


class Column(NamedTuple):
    """How a column becomes features, 0 where a value is missing: the average.

    * "number": less the mean, over the standard deviation;
    * "flag": 0 or 1, less the share of 1;
    * "levels": a flag for each of `levels`. A cell may hold several: a list, or text with "|" between them.
    """

    name: str
    kind: str
    centers: tuple[float, ...]  # one a feature
    scale: float = 1.0
    levels: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"{self.name}={level}" for level in self.levels] if self.kind == "levels" else [self.name]

    @classmethod
    def of(cls, name: str, cells: pd.Series) -> Column | None:
        """Return how a column becomes features; None where it tells no rows apart.

        A level that only one row has is left out, as it says nothing about others.
        """
        present = cells.dropna()
        if present.empty:
            return None
        if not types.is_numeric_dtype(present) and not types.is_bool_dtype(present):
            return _of_levels(name, present)
        numbers = _numbers(name, present)
        if (numbers == numbers[0]).all():
            return None
        if np.isin(numbers, (0.0, 1.0)).all():
            return cls(name, "flag", (float(numbers.mean()),))
        deviation = float(numbers.std())
        return cls(name, "number", (float(numbers.mean()),), deviation) if deviation > 0 else None

    def encode(self, cells: pd.Series) -> np.ndarray:
        """Return the features of cells, shape (n, number of features), float32.

        Raises
        ------
        DataError
            For text where numbers were, and the reverse; for numbers that are not finite.
        """
        encoded = np.zeros((len(cells), len(self.features)), np.float32)
        present = np.flatnonzero(cells.notna())
        values = cells.iloc[present]
        if not present.size:
            return encoded
        if self.kind == "levels":
            rows, places = _pairs(self.name, values, self.levels)
            encoded[present[np.unique(rows)]] = -np.asarray(self.centers, np.float32)
            encoded[present[rows], places] = 1 - np.asarray(self.centers, np.float32)[places]
        else:
            encoded[present, 0] = (_numbers(self.name, values) - self.centers[0]) / self.scale
        return encoded


def _numbers(name: str, cells: pd.Series) -> np.ndarray:
    if not types.is_numeric_dtype(cells) and not types.is_bool_dtype(cells):
        raise DataError(f"expected numbers in the column {name!r}, found {quoted(cells.iloc[0])}")
    if types.is_complex_dtype(cells):
        raise DataError(f"expected real numbers in the column {name!r}, found complex ones")
    numbers = cells.to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"expected finite numbers in the column {name!r}, found {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def _of_levels(name: str, cells: pd.Series) -> Column | None:
    counts = _levels_of(name, cells).value_counts()
    told = counts[(counts > 1) & (counts < len(cells))].sort_index()
    if len(told) > MOST:
        raise DataError(
            f"expected at most {MOST} levels in the column {name!r}, found {len(told)}: leave it out, or join "
            "rare ones"
        )
    shares = (told / len(cells)).tolist()
    return Column(name, "levels", tuple(shares), levels=tuple(map(str, told.index))) if shares else None


def _pairs(name: str, cells: pd.Series, levels: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of cells and of their levels, known ones alone."""
    flat = _levels_of(name, cells.set_axis(range(len(cells))))
    places = pd.Index(levels).get_indexer(pd.Index(flat.to_numpy()))
    return flat.index.to_numpy()[places >= 0], places[places >= 0]


def _levels_of(name: str, cells: pd.Series) -> pd.Series:
    """Return the levels of all cells one below the other, each once a cell, under the index of its cell."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    lists = cells.map(lambda cell: _levels_in(name, cell))
    return lists.explode().dropna()


def _levels_in(name: str, cell: Any) -> list[str]:
    if isinstance(cell, str):
        return sorted({part.strip() for part in cell.split(SEPARATOR)} - {""})
    if isinstance(cell, (list, tuple, set, frozenset, np.ndarray)):
        return _as_text(name, cell)
    if isinstance(cell, (bool, int, np.integer, np.bool_)):  # of a categorical column
        return [str(cell)]
    raise DataError(
        f"expected numbers, text, or lists of text in the column {name!r}, found {quoted(cell)} "
        f"({type(cell).__name__})"
    )


def _as_text(name: str, parts: Iterable[Any]) -> list[str]:
    found = list(parts)
    if not all(isinstance(part, (str, int, np.integer)) for part in found):
        raise DataError(f"expected lists of text in the column {name!r}, found {quoted(found)}")
    return sorted({str(part) for part in found})
