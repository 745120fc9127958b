"""Tables of features from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.readers.pairs_file import known_kind, read_table
from air_recsys.data.readers.ratings_text import as_integers
from air_recsys.exceptions import DataFileError, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.given_graphs import given_graph
from air_recsys.models.rows import Side


def read_features(path: str | Path, id_column: str, *, sep: str | None = None) -> pd.DataFrame:
    r"""Read features of users or items: a table with a column of ids and any other columns.

    Parameters
    ----------
    path : str or Path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), or a ``.parquet`` file (needs the extra ``data``).
    id_column : str
        The column of ids. As in `read_ratings`, ids that are all integers become integers, others stay text as
        written.
    sep : str, optional
        The character between two fields; by default comma for ``.csv`` and tab for the others.

    Returns
    -------
    DataFrame
        Indexed by id, for `Interactions.with_features`.

    Raises
    ------
    DataFileError
        If the file is missing, of an unknown kind, no table, or lacks the column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "films.csv")
    >>> _ = path.write_text("item,year,genres\n7,1990,Drama|War\n8,,War\n")
    >>> read_features(path, "item")
            year     genres
    item
    7     1990.0  Drama|War
    8        NaN        War
    >>> folder.cleanup()
    """
    file, kind = known_kind(path, "features")
    table = read_table(file, "features", {id_column: str}, kind, sep)
    if id_column not in table.columns:
        raise DataFileError(f"{file}: expected the column {id_column!r}, found {quoted(list(table.columns))}")
    names = table[id_column].tolist()
    if pd.isna(np.array(names, dtype=object)).any():
        raise DataFileError(f"{file}: every row needs its {id_column!r}, found one without")
    ids = pd.Index(as_integers(list(map(str, names))), name=id_column)
    return table.drop(columns=id_column).set_index(ids)


def read_similarity(path: str | Path, kind: Side, *, sep: str | None = None) -> SimilarityGraph:
    r"""Read similarities of users or items: a table of pairs, or a square table.

    Parameters
    ----------
    path : str or Path
        As in `read_features`. A table of pairs has three columns of any names: two ids and their similarity, each pair
        in one order or in both. Pairs that are not there count as 0. In a square table the first column and the names
        of the others are ids.
    kind : {"user", "item"}
    sep : str, optional
        As in `read_features`.

    Returns
    -------
    SimilarityGraph
        For ``AIR.fit(..., item_similarity=)``.

    Raises
    ------
    DataFileError
        If the file is missing, of an unknown kind or not such a table, and for a pair with two similarities.
    DataError
        For numbers that are not similarities, see `air_recsys.models.given_graphs`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "alike.csv")
    >>> _ = path.write_text("film,other,similarity\n7,8,0.5\n8,9,0.25\n")
    >>> read_similarity(path, "item")
    SimilarityGraph(3 items, 2 edges, 0 isolated, 1 component, weights 0.25..0.5)
    >>> folder.cleanup()
    """
    file, ending = known_kind(path, "similarities")
    table = read_table(file, "similarities", {0: str, 1: str}, ending, sep)
    if table.shape[1] < 2 or table.empty:
        raise DataFileError(f"{file}: expected pairs with a similarity, or a square table, found {table.shape}")
    names, columns = [list(map(str, part)) for part in (table.iloc[:, 0], table.columns[1:])]
    if sorted(names) == sorted(columns):
        square = table.iloc[:, 1:].apply(pd.to_numeric, errors="coerce")
        ids = as_integers(names + columns)
        given = square.set_axis(ids[: len(names)], axis=0).set_axis(ids[len(names) :], axis=1)
        return given_graph(given, kind, np.empty(0))
    if table.shape[1] != 3:
        raise DataFileError(
            f"{file}: expected three columns (id, id, similarity), or a square table with the ids of its first column "
            f"as the names of the others, found the columns {quoted(list(table.columns))}"
        )
    adjacency, ids = _of_pairs(file, table)
    return given_graph(adjacency, kind, ids)


def _of_pairs(file: Path, table: pd.DataFrame) -> tuple[sp.csr_array, np.ndarray]:
    ends = as_integers([*map(str, table.iloc[:, 0]), *map(str, table.iloc[:, 1])])
    weights = np.asarray(pd.to_numeric(table.iloc[:, 2], errors="coerce"), dtype=np.float64)
    if table.isna().to_numpy().any() or np.isnan(weights).any():
        raise DataFileError(f"{file}: expected two ids and a number in each row, found a row without")
    places, ids = pd.factorize(np.asarray(ends), sort=True)
    starts, stops = np.split(places, 2)
    pairs = pd.DataFrame({"a": np.minimum(starts, stops), "b": np.maximum(starts, stops), "weight": weights})
    pairs = pairs.drop_duplicates()
    twice = pairs[pairs.duplicated(["a", "b"])]
    if len(twice):
        first, second = ids[twice["a"].iloc[0]], ids[twice["b"].iloc[0]]
        raise DataFileError(f"{file}: expected one similarity a pair, found two of {first} and {second}")
    upper = sp.coo_array((pairs["weight"], (pairs["a"], pairs["b"])), shape=(len(ids), len(ids))).tocsr()
    return sp.csr_array(upper + sp.triu(upper, 1).T), np.asarray(ids)
