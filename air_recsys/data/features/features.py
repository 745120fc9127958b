"""`Features`: what is known of each user, or of each item, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from air_recsys.data.features.encoding import Encoding
from air_recsys.data.ids import IdIndex


@dataclass(frozen=True, eq=False)
class Features:
    """Features of all users, or of all items, in the order of their ids.

    A row of zeros is one of which nothing is known: each feature is then at its average.

    Attributes
    ----------
    encoding : Encoding
        How a table becomes these numbers.
    values : ndarray of float32, shape (n, number of features)
    places : ndarray of float32, shape (n, d)
        Places in a given graph of similarities, see `air_recsys.graphs.embedding`; by default d is 0, no graph.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30, 40]}, index=["ann", "bob"])
    >>> features = Features.of(table, Encoding.of(table, "user"), IdIndex(["bob", "eve", "ann"], "user"))
    >>> features.values
    array([[ 1.],
           [ 0.],
           [-1.]], dtype=float32)
    """

    encoding: Encoding
    values: np.ndarray
    places: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))

    def __post_init__(self) -> None:
        if not self.places.size:
            object.__setattr__(self, "places", np.empty((len(self.values), 0), np.float32))
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise ValueError(f"expected {len(self.names)} columns of features, found shape {self.values.shape}")
        if self.places.ndim != 2 or len(self.places) != len(self.values):
            raise ValueError(f"expected places of {len(self.values)} rows, found shape {self.places.shape}")

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return self.encoding.names

    def numbers(self, rows: Any = slice(None)) -> np.ndarray:
        """Return all that is known of each row, or of some: features, then places; (n, number of features + d)."""
        return np.concatenate([self.values[rows], self.places[rows]], axis=1)

    @classmethod
    def of(cls, table: pd.DataFrame, encoding: Encoding, index: IdIndex) -> Self:
        """Return the features of the ids of an index, from a table that is indexed by id."""
        places = index.lookup(table.index.to_numpy())
        known = places >= 0
        values = np.zeros((len(index), len(encoding.names)), np.float32)
        values[places[known]] = encoding.encode(table.loc[known], index.kind)
        return cls(encoding, values)

    def grown(self, n: int) -> Features:
        """Return the same with room for n rows, nothing known of the new ones."""
        values, places = (np.pad(rows, ((0, n - len(rows)), (0, 0))) for rows in (self.values, self.places))
        return replace(self, values=values, places=places)
