"""`Features`: what is known of each user, or of each item, as numbers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import column_of_ids, without_index
from air_recsys.data.described.sides import Described
from air_recsys.data.features.encoding import Encoding
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex, as_id_array
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.reading import checked_sparse

_MOST_COLUMNS = 10_000  # of a table: those that tell no rows apart are left out


@dataclass(frozen=True, eq=False)
class Features:
    """Features of all users, or of all items, in the order of their ids.

    A row of zeros is one of which nothing is known: each feature is then at its average.
    """

    encoding: Encoding  # how a table becomes these numbers
    values: np.ndarray  # (n, number of features), float32
    # Places in a given graph of similarities, (n, d), float32, see `air_recsys.graphs.embedding`; d is 0 without one.
    places: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    graph: sp.csr_array | None = None  # that graph itself, (n, n)
    similarity: np.ndarray | None = None  # all given similarities of few rows, (n, n), float32
    described: Described | None = None  # what these follow from, for rows that come later
    n_later: int = 0  # the last of the rows, which came after the training

    def __post_init__(self) -> None:
        if not self.places.size:
            object.__setattr__(self, "places", np.empty((len(self.values), 0), np.float32))
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names):
            raise ValueError(f"expected {len(self.names)} columns of features, found shape {self.values.shape}")
        if self.places.ndim != 2 or len(self.places) != len(self.values):
            raise ValueError(f"expected places of {len(self.values)} rows, found shape {self.places.shape}")
        if self.graph is not None and self.graph.shape != (len(self.values),) * 2:
            raise ValueError(f"expected a graph of {len(self.values)} rows, found shape {self.graph.shape}")
        if self.similarity is not None and self.similarity.shape != (len(self.values),) * 2:
            raise ValueError(f"expected similarities of {len(self.values)} rows, found {self.similarity.shape}")

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
        graph = None if self.graph is None else self.graph.copy()
        if graph is not None:
            graph.resize((n, n))
        similarity = None if self.similarity is None else np.pad(self.similarity, (0, n - len(self.values)))
        described = self.described and self.described.joined(Described({}, {}), n - len(self.values))
        known = {"values": values, "places": places, "n_later": self.n_later + n - len(self.values)}
        return replace(self, **known, graph=graph, similarity=similarity, described=described)

    def of_rows(self, rows: np.ndarray) -> Features:
        """Return what is known of some rows, by ascending positions."""
        graph = None if self.graph is None else sp.csr_array(self.graph[rows][:, rows])
        similarity = None if self.similarity is None else self.similarity[np.ix_(rows, rows)]
        n_later = int(np.count_nonzero(rows >= len(self.values) - self.n_later))
        known = {"values": self.values[rows], "places": self.places[rows], "n_later": n_later}
        described = self.described and self.described.take(rows)
        return replace(self, **known, graph=graph, similarity=similarity, described=described)


def as_table(features: Any, kind: str, ids: np.ndarray) -> pd.DataFrame:
    """Return features as a table with text for the names of its columns, indexed by distinct ids.

    Parameters
    ----------
    features : DataFrame, ndarray or SciPy sparse
        A table (of pandas, Polars, ...) is indexed by id, or has the ids in a column named `kind`. If its rows are
        only numbered, the column may also be called "id", or by a usual name such as "movieId". A matrix has a row for
        each of `ids`, in their order; its columns are named by their numbers.
    kind : str
        "user" or "item".
    ids : ndarray
        Of a matrix, and those of the data, of which a table has to know at least one.

    Raises
    ------
    DataError
        For a repeated or missing id, two columns of one name, a matrix without one row per id, a table with none of
        `ids`, or no columns.
    """
    features = as_pandas(features)
    if len(shape := np.shape(features)) == 2 and shape[1] > _MOST_COLUMNS:
        raise DataError(
            f"expected at most {_MOST_COLUMNS} columns of {kind} features, found {shape[1]}: make fewer, such as 100 "
            "of scikit-learn's TruncatedSVD"
        )
    table = features if isinstance(features, pd.DataFrame) else _of_matrix(features, kind, ids)
    numbered = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    column = column_of_ids(kind, list(table.columns)) if numbered else kind
    if column is not None and column in table.columns:
        table = table.set_index(column)
    table = without_index(table, f"{kind} features", stacklevel=6)
    if isinstance(table.index, pd.MultiIndex):
        raise DataError(f"expected a table of {kind} features indexed by id, found an index of several levels")
    if table.empty:
        raise DataError(f"expected {kind} features, found a table of {len(table)} rows, {table.shape[1]} columns")
    own = as_id_array(table.index)
    if pd.isna(table.index).any():
        raise DataError(f"every row of {kind} features needs an id, found a row without one")
    if table.index.has_duplicates:
        repeated = table.index[table.index.duplicated()].tolist()
        raise DataError(
            f"expected one row of features for each {kind}, found {len(repeated)} more, the first for {repeated[0]!r}"
        )
    named = table.set_axis(list(map(str, table.columns)), axis=1).set_axis(own, axis=0).rename_axis(None)
    if not named.columns.is_unique:
        twice = named.columns[named.columns.duplicated()]
        raise DataError(f"expected {kind} features of different names, found {twice[0]!r} twice")
    if ids.size:
        known = IdIndex(ids, kind)
        are_known = known.lookup(own) >= 0
        if isinstance(table.index, pd.RangeIndex) and are_known.any() and not are_known.all():
            _tell_row_numbers(own, ids, kind)
        known.check_shared(table.index.to_numpy(), "features")
    return named


def _tell_row_numbers(rows: np.ndarray, ids: np.ndarray, kind: str) -> None:
    """Raise `DataError` where row numbers are taken for ids, one for each; warn where they may be."""
    if rows.size == ids.size:
        raise DataError(
            f"expected {kind} features indexed by id, or with a column {kind}, found row numbers 0..{rows.size - 1} "
            f"for ids such as {quoted(ids.tolist()[-1])}: features.to_numpy() has a row for each of the ids"
        )
    told = "have no column of ids: their row numbers count as ids, and some are none of the data"
    warnings.warn(f"{kind} features {told}", DataWarning, stacklevel=7)


def _of_matrix(features: Any, kind: str, ids: np.ndarray) -> pd.DataFrame:
    if sp.issparse(features):
        matrix = checked_sparse(f"{kind} features", features).toarray()
    elif isinstance(features, np.ndarray):
        matrix = features
    else:
        raise DataError(
            f"expected {kind} features as a DataFrame, an array or a SciPy sparse matrix, found "
            f"{type(features).__name__}"
        )
    if matrix.ndim != 2 or len(matrix) != ids.size:
        raise DataError(f"expected {kind} features with {ids.size} rows, one a {kind}, found shape {matrix.shape}")
    return pd.DataFrame(matrix, index=pd.Index(ids))
