"""How a table of features becomes numbers, and how another table like it does."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from air_recsys.data.features.columns import KINDS, MOST, Column
from air_recsys.exceptions import DataError, DataWarning, quoted


class Encoding(NamedTuple):
    """Columns of a table as features.

    Examples
    --------
    >>> films = pd.DataFrame({"genres": ["Drama|War", "Drama", "War", None], "year": [1990, 2000, None, 2010]})
    >>> encoding = Encoding.of(films, "item")
    >>> encoding.names
    ['genres=Drama', 'genres=War', 'year']
    >>> encoding.encode(films, "item").round(2)
    array([[ 0.33,  0.33, -1.22],
           [ 0.33, -0.67,  0.  ],
           [-0.67,  0.33,  0.  ],
           [ 0.  ,  0.  ,  1.22]], dtype=float32)
    """

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of the features, in their order."""
        return [name for column in self.columns for name in column.features]

    @classmethod
    def of(cls, table: pd.DataFrame, kind: str, stacklevel: int = 2) -> Self:
        """Return how the columns of a table become features.

        Columns that tell no rows apart, and repetitions of an earlier one, are left out with a warning.

        Raises
        ------
        DataError
            For a column of other values than numbers, text and lists of text; for more than 1,000 features, or none.
        """
        found = {str(name): Column.of(str(name), column) for name, column in table.items()}
        _check_number([column for column in found.values() if column is not None], kind)
        kept: dict[bytes, Column] = {}
        for column in found.values():
            if column is not None:
                kept.setdefault(column.encode(cells_of(table, column)).tobytes(), column)
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
        """Return the features of a table, shape (n, number of features), float32; other columns are not read.

        Raises
        ------
        DataError
            If a column is absent, or holds text in place of numbers or the reverse.
        """
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise DataError(f"expected the {kind} features {absent}, found {quoted(list(table.columns))}")
        return np.concatenate([column.encode(cells_of(table, column)) for column in self.columns], axis=1)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the columns as JSON holds them."""
        return [
            column._asdict() | {"centers": list(column.centers), "levels": list(column.levels)}
            for column in self.columns
        ]

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
    if not fits or column.scale <= 0 or len(column.centers) != len(column.features):
        raise ValueError(f"expected a column of features, found {quoted(column)}")
    return column._replace(centers=tuple(float(center) for center in column.centers))
