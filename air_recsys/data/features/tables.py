"""Tables of features, one row per id."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.ids import IdIndex, as_id_array
from air_recsys.exceptions import DataError
from air_recsys.storage.reading import checked_sparse


def as_table(features: Any, kind: str, ids: np.ndarray) -> pd.DataFrame:
    """Return features as a table with text for the names of its columns, indexed by distinct ids.

    Parameters
    ----------
    features : DataFrame, ndarray or SciPy sparse
        A table is indexed by id, or has the ids in a column named `kind`. A matrix has a row for each of `ids`, in
        their order; its columns are named by their numbers.
    kind : str
        "user" or "item".
    ids : ndarray
        Of a matrix, and those of the data, of which a table has to know at least one.

    Raises
    ------
    DataError
        For a repeated or missing id, two columns of one name, a matrix without one row per id, a table with none of
        `ids`, or no columns.

    Examples
    --------
    >>> as_table(pd.DataFrame({"item": ["x", "y"], "year": [1999, 2003]}), "item", np.array(["y", "x"], object))
       year
    x  1999
    y  2003
    """
    table = features if isinstance(features, pd.DataFrame) else _of_matrix(features, kind, ids)
    if kind in table.columns:
        table = table.set_index(kind)
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
        IdIndex(ids, kind).check_shared(table.index.to_numpy(), "features")
    return named


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
