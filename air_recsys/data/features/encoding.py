"""How a table of features becomes numbers, and how another table like it does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from pandas.api import types

from air_recsys.data.doubts import MISSING
from air_recsys.data.scales import code_among
from air_recsys.exceptions import DataError, DataWarning, quoted


class Encoding(NamedTuple):
    """Columns of a table as features."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of the features, in their order."""
        return [name for column in self.columns for name in column.features]

    @classmethod
    def of(cls, table: pd.DataFrame, kind: str, stacklevel: int = 2) -> Self:
        """Return how the columns of a table become features.

        Columns that tell no rows apart, and repetitions of an earlier one, are left out with a warning.
        """
        found = {str(name): Column.of(str(name), column) for name, column in table.items()}
        _check_number([column for column in found.values() if column is not None], kind)
        kept: dict[bytes, Column] = {}
        for column in found.values():
            if column is not None:
                kept.setdefault(column.encode(cells_of(table, column)).tobytes(), column)
        rare = [column.name for column in kept.values() if column.is_of_one(table)]
        if len(rare) >= max(_FEW, len(table) / 2):
            told = f"{len(rare)} flags such as {rare[0]!r} hold for one {kind} each, as ids do: leave them out"
            warnings.warn(told, DataWarning, stacklevel=stacklevel)
        encoding, left_out = cls(tuple(kept.values())), [name for name in found if found[name] not in kept.values()]
        if not encoding.columns:
            raise DataError(f"expected {kind} features that tell {kind}s apart, found none in {quoted(list(found))}")
        if left_out:
            warnings.warn(
                f"{kind} features that are the same for all {kind}s, differ for all of them or repeat another one are "
                f"left out: {', '.join(left_out)}",
                DataWarning,
                stacklevel=stacklevel,
            )
        return encoding

    def encode(self, table: pd.DataFrame, kind: str) -> np.ndarray:
        """Return the features of a table, shape (n, number of features), float32; other columns are not read."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise DataError(f"expected the {kind} features {absent}, found {quoted(list(table.columns))}")
        return np.concatenate([column.encode(cells_of(table, column)) for column in self.columns], axis=1)

    def encode_new(self, table: pd.DataFrame, kind: str) -> np.ndarray:
        """Return what `encode` does for a table after the training; a line names columns that are not read."""
        if unread := sorted(set(table.columns) - {column.name for column in self.columns}):
            told = f"the model was trained without the {kind} features {quoted(unread)}: they are not read"
            warnings.warn(told, DataWarning, stacklevel=2)
        return self.encode(table, kind)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the columns as JSON holds them."""
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, columns: Any) -> Self:
        """Return what `to_json` wrote, or raise `ValueError`, `LookupError` or `TypeError` for anything else."""
        made = [Column(**each) for each in columns]
        return cls(tuple(_checked(column._replace(levels=tuple(column.levels))) for column in made))


def cells_of(table: pd.DataFrame, column: Column) -> pd.Series:
    """Return a column of a table."""
    return pd.Series(table[column.name])


def _check_number(columns: Sequence[Column], kind: str) -> None:
    n_features = sum(len(column.features) for column in columns)
    if n_features > MOST:
        raise DataError(f"expected at most {MOST} {kind} features in all, found {n_features}: leave columns out")


def _checked(column: Column) -> Column:
    numbers = np.array([*column.centers, column.scale], dtype=np.float64)
    texts = [column.name, *column.levels]
    fits = column.kind in KINDS and all(isinstance(text, str) for text in texts) and np.isfinite(numbers).all()
    fits = fits and column.separator in SEPARATORS and len(set(column.levels)) == len(column.levels)
    if not fits or column.scale <= 0 or len(column.centers) != len(column.features):
        raise ValueError(f"expected a column of features, found {quoted(column)}")
    return column._replace(centers=tuple(float(center) for center in column.centers))


KINDS = ("number", "flag", "levels")
SEPARATORS = ("|", ",", ";")
"""Signs between the levels of a text; the latter ones only where the parts between them repeat."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_MEASURE = re.compile(
    r"(?=.*[$€£¥% ])[$€£¥]?\s?[+-]?\d[\d.,]*\s?(%|[A-Za-z]+)?|\d{4}-\d\d-\d\d.*|[$€£¥]?\d{1,3}(,\d{3})+\+?"
    r"|\(\d[\d.,]*\)|(\d+\.\d+|\d{2,})([kKM]|[kKMGT]B)"
)
_OF_LISTS = (*SEPARATORS[1:], "/", "、", "，")
_OF_CODES = re.compile(r"(.*[_\W])?(?i:id|code|cluster|zip|zipcode|postcode)|.*[a-z](Id|ID|Code)")
MOST = 1000
"""Features that a table may have."""
_FEW = 5  # flags of single rows, which chance makes
_LARGEST = 1e150  # of a number, whose square is finite
_FAR = 1e30  # standard deviations from the mean, which models compute with in float32
_SAME = 4 * np.finfo(np.float64).eps  # relative range of numbers that differ by rounding alone


class Column(NamedTuple):
    """How a column becomes features, 0 where a value is missing: the average.

    * "number": less the mean, over the standard deviation;
    * "flag": 0 or 1, less the share of 1;
    * "levels": a flag for each of `levels`. A cell may hold several: a list, or text with a `separator` between them.
    """

    name: str
    kind: str
    centers: tuple[float, ...]  # one a feature
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    separator: str = SEPARATORS[0]

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON holds it; the usual separator is not written."""
        written = self._asdict() | {"centers": list(self.centers), "levels": list(self.levels)}
        return {name: value for name, value in written.items() if (name, value) != ("separator", SEPARATORS[0])}

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
        if np.ptp(numbers) <= _SAME * np.abs(numbers).max():
            return None
        if np.isin(numbers, (0.0, 1.0)).all():
            return cls(name, "flag", (float(numbers.mean()),))
        if (code := code_among(numbers)) is not None:
            told = f"{code:g} counts as a number of the column {name!r}, far from the others: is it a missing one?"
            warnings.warn(told, DataWarning, stacklevel=2)
        if _OF_CODES.fullmatch(name) and (numbers == np.trunc(numbers)).all():
            told = f"the column {name!r} counts as numbers: if these are codes, make them text, table[{name!r}]"
            warnings.warn(f"{told}.astype(str)", DataWarning, stacklevel=2)
        deviation = float(numbers.std())
        return cls(name, "number", (float(numbers.mean()),), deviation) if deviation > 0 else None

    def is_of_one(self, table: pd.DataFrame) -> bool:
        """Return whether the column is a flag that one row of its table has."""
        return self.kind == "flag" and cells_of(table, self).sum() == 1

    def encode(self, cells: pd.Series) -> np.ndarray:
        """Return the features of cells, shape (n, number of features), float32."""
        encoded = np.zeros((len(cells), len(self.features)), np.float32)
        present = np.flatnonzero(cells.notna())
        values = cells.iloc[present]
        if not present.size:
            return encoded
        if self.kind == "levels":
            rows, places = _pairs(self, values)
            encoded[present[np.unique(rows)]] = -np.asarray(self.centers, np.float32)
            encoded[present[rows], places] = 1 - np.asarray(self.centers, np.float32)[places]
        else:
            with np.errstate(over="ignore"):
                standard = (_numbers(self.name, values) - self.centers[0]) / self.scale
            if np.abs(standard).max() > _FAR:
                raise DataError(
                    f"expected numbers near those of the training in the column {self.name!r}, found "
                    f"{values.iloc[int(np.abs(standard).argmax())]}"
                )
            encoded[present, 0] = standard
        return encoded


def _numbers(name: str, cells: pd.Series) -> np.ndarray:
    if not types.is_numeric_dtype(cells) and not types.is_bool_dtype(cells):
        raise DataError(f"expected numbers in the column {name!r}, found {quoted(cells.iloc[0])}")
    if types.is_complex_dtype(cells):
        raise DataError(f"expected real numbers in the column {name!r}, found complex ones")
    numbers = cells.to_numpy(dtype=np.float64)
    if not (within := np.abs(numbers) <= _LARGEST).all():  # NaN is not
        found = f"{numbers[~within][0]} (the largest is {_LARGEST:g})"
        raise DataError(f"expected finite numbers in the column {name!r}, found {found}")
    return numbers


def _of_levels(name: str, cells: pd.Series) -> Column | None:
    separator = _separator_of(name, cells)
    counts: pd.Series = _levels_of(name, cells, separator).value_counts()
    told = pd.Series(counts[(counts > 1) & (counts < len(cells))]).sort_index()
    alike = pd.Series(told.index, dtype=object).map(lambda level: str(level).casefold()).duplicated(keep=False)
    odd = [level for level, is_alike in zip(told.index, alike, strict=True) if is_alike or level in MISSING]
    if odd:
        what = "stand for a missing one, or differ only in case, and count as levels of their own"
        warnings.warn(f"levels such as {quoted(odd[0])} of the column {name!r} {what}", DataWarning, stacklevel=2)
    if len(told) > MOST:
        raise DataError(
            f"expected at most {MOST} levels in the column {name!r}, found {len(told)}: leave it out, or join "
            "rare ones"
        )
    shares = (told / len(cells)).tolist()
    if not shares:
        return None
    return Column(name, "levels", tuple(shares), levels=tuple(map(str, told.index)), separator=separator)


def _separator_of(name: str, cells: pd.Series) -> str:
    """Return the sign between the levels of texts: another than the usual one, with a line, where its parts repeat."""
    if name.endswith("_seq"):  # of RecBole
        return " "
    texts = list(dict.fromkeys(cell for cell in cells.tolist() if isinstance(cell, str)))
    numbers = {text for text in texts if _NUMBER.fullmatch(text) or _MEASURE.fullmatch(text)}
    other = next((text for text in texts if "," in text or not _NUMBER.fullmatch(text)), None)
    if other is not None and 2 * len(numbers) >= len(texts):
        told = f"texts of the column {name!r} count as levels, and not as numbers, for {quoted(other)} is none"
        warnings.warn(told, DataWarning, stacklevel=2)
    if SEPARATORS[0] in "".join(texts):
        return SEPARATORS[0]
    are_lists = [text for text in texts if re.match(r"\[.*\]$|\{.*\}$", text)]
    for sign in _OF_LISTS:
        lists = [[part.strip() for part in text.split(sign)] for text in texts]
        first, rest = {parts[0] for parts in lists}, {part for parts in lists for part in parts[1:]}
        if rest and sign in SEPARATORS and 2 * len(first | rest) <= len(texts):
            warnings.warn(
                f"texts of the column {name!r} are read as lists, with {sign!r} between their parts",
                DataWarning,
                stacklevel=2,
            )
            return sign
        both = [part for part in first & rest if re.search(r"[^\W\d]", part)]
        are_lists += [text for text in texts if sign in text and 2 * len(both) >= len(rest)]
    if are_lists:
        told = f"texts of the column {name!r} such as {quoted(are_lists[0])} count as one level each: join lists by |"
        warnings.warn(told, DataWarning, stacklevel=2)
    return SEPARATORS[0]


def _pairs(column: Column, cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of cells and of their levels, known ones alone."""
    flat = _levels_of(column.name, cells.set_axis(range(len(cells))), column.separator)
    places = pd.Index(column.levels).get_indexer(pd.Index(flat.to_numpy()))
    return flat.index.to_numpy()[places >= 0], places[places >= 0]


def _levels_of(name: str, cells: pd.Series, separator: str) -> pd.Series:
    """Return the levels of all cells one below the other, each once a cell, under the index of its cell."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(object)
    lists = cells.map(lambda cell: _levels_in(name, cell, separator))
    return lists.explode().dropna()


def _levels_in(name: str, cell: Any, separator: str) -> list[str]:
    if isinstance(cell, str):
        return sorted({part.strip() for part in cell.split(separator)} - {""})
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
