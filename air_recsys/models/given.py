"""Graphs of similarities that are given beside the ratings."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import as_float, column_of_ids, named_column
from air_recsys.data.described.sides import Described, as_given, ids_of
from air_recsys.data.features import Encoding, Features
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.data.readers.forms import Writing
from air_recsys.data.readers.lines import is_finite_number, malformed
from air_recsys.data.readers.ratings_text import as_integers
from air_recsys.data.readers.sources import regular
from air_recsys.data.readers.tables import existing, read_names, read_table
from air_recsys.exceptions import DataError, DataFileError, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.cooccurrence import scaled_adjacency
from air_recsys.graphs.embedding import graph_embedding, of_unit_length
from air_recsys.graphs.neighbors import nearest_neighbors_graph
from air_recsys.graphs.pruning import strongest
from air_recsys.models.drug_target.similarities import learned_shares
from air_recsys.models.rows import Side
from air_recsys.storage.reading import checked_sparse

_DIMS = 100  # of places: chosen on hidden ratings of Flixster and Douban, see benchmarks/reports/accuracy.md
_MANY, _NEAREST = 50, 10  # mean neighbours above which the most similar ones count alone, and how many of them
_FEW = 3  # nodes, of which a zero diagonal tells nothing
_MOST_ROWS = 3000  # of which all similarities are kept
_COMPARED, _BLOCK = 1000, 2048  # rows that shares of kernels are learned from, and rows that are compared at a time
_SYMMETRIC = 1e-6  # largest difference to the transpose, over the largest similarity


def with_similarities(data: Interactions, user: Any, item: Any, stacklevel: int = 2) -> Interactions:
    """Interactions in which users and items have places in given graphs, see `AIR.fit`."""
    same = copy(data)
    if user is not None:
        placed = _described(data, "user", user, stacklevel + 1) if isinstance(user, Mapping) else None
        same.users, same.user_features = placed or _placed(data.users, data.user_features, user)
    if item is not None:
        placed = _described(data, "item", item, stacklevel + 1) if isinstance(item, Mapping) else None
        same.items, same.item_features = placed or _placed(data.items, data.item_features, item)
    return same


def _described(data: Interactions, side: Side, given: Any, stacklevel: int) -> tuple[IdIndex, Features]:
    """The same by structures, sequences, numbers and tables: the mean of their kernels, of shares that are learned."""
    index, known = (data.users, data.user_features) if side == "user" else (data.items, data.item_features)
    given = as_given(side, given)
    if (ids := ids_of(given)).size:
        index.check_shared(ids, "similarities")
    whole = index.joined(ids)
    described = Described.of(side, given, whole.ids, stacklevel + 1)
    if len(described.kernels) > 1:
        shares = _shares(data, side, described)
        learned = described._replace(shares=dict(zip(described.kernels, shares.tolist(), strict=True)))
        described = learned if _nearest(learned, len(whole)).nnz else described
    edges = _nearest(described, len(whole))
    if not edges.nnz:
        raise DataError(f"expected similarities of {side}s, found no two that are similar")
    nothing = Features(Encoding(()), np.empty((len(whole), 0), np.float32))
    return whole, replace(
        nothing if known is None else known.grown(len(whole)),
        places=graph_embedding(edges, _DIMS),
        graph=edges,
        similarity=described.similarity().astype(np.float32) if len(whole) <= _MOST_ROWS else None,
        described=described,
        n_later=0,
    )


def _shares(data: Interactions, side: Side, described: Described) -> np.ndarray:
    """The shares of kernels, by what ratings differ from the means of both sides, of a part where there are many."""
    rows, columns = (data.user_index, data.item_index)[:: 1 if side == "user" else -1]
    left = data.ratings - data.ratings.mean()
    for index in (columns, rows):
        left = left - (np.bincount(index, left) / np.bincount(index).clip(1))[index]
    some, others = (_most_rated(index) for index in (rows, columns))
    kept = np.isin(rows, some) & np.isin(columns, others)
    places = np.searchsorted(some, rows[kept]), np.searchsorted(others, columns[kept])
    values, weights = np.zeros((2, some.size, others.size))
    values[places], weights[places] = left[kept], 1 if data.weights is None else data.weights[kept]
    return learned_shares(described.take(some).similarities(), values, weights)


def _most_rated(index: np.ndarray) -> np.ndarray:
    """The rows with most ratings, ascending."""
    counts = np.bincount(index)
    return np.sort(np.argsort(-counts, kind="stable")[: min(_COMPARED, np.count_nonzero(counts))])


def _nearest(described: Described, n: int) -> sp.csr_array:
    """The graph of the most similar rows of each."""
    found = []
    for start in range(0, n, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, n))
        similarity = described.of_rows(block)
        similarity[np.arange(block.size), block] = 0
        found.append(_largest(similarity, _MANY + 1))
    whole = sp.csr_array(sp.vstack(found))
    return _without_weak(sp.csr_array(whole.maximum(whole.T)))


def _without_weak(adjacency: sp.csr_array) -> sp.csr_array:
    """A graph with the ten strongest edges of each node where nodes have many."""
    has_many = adjacency.nnz > _MANY * np.count_nonzero(np.diff(adjacency.indptr))
    return strongest(adjacency, _NEAREST) if has_many else adjacency


def _largest(similarity: np.ndarray, k: int) -> sp.csr_array:
    """The k largest of each row, of equal ones the first, those above 0."""
    near = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    values, starts = np.take_along_axis(similarity, near, axis=1), near.shape[1] * np.arange(len(near) + 1)
    found = sp.csr_array((values.ravel(), near.ravel(), starts), shape=similarity.shape)
    found.eliminate_zeros()
    return found


def later_of(known: Features | None, index: IdIndex, new: np.ndarray, given: Any, stacklevel: int = 2) -> Described:
    """What new ids are described by, as the known ones are."""
    side = index.kind
    if known is None or known.described is None:
        mend = f"fit it with {side}_similarity={{'smiles': ..., 'sequences': ..., name: table}}"
        raise DataError(f"expected no similarities of new {side}s, as the model was trained without a mapping: {mend}")
    if (again := new[index.lookup(new) >= 0].tolist()) or not new.size:
        raise DataError(f"expected similarities of new {side}s, found {quoted(again[0]) if again else 'no ids'}")
    ids = np.array([*index.ids.tolist(), *new.tolist()], object)
    return known.described.later(side, as_given(side, given), ids, len(index), stacklevel + 1)


def with_later(known: Features, later: Described, k: int) -> Features:
    """What is known of known rows and k later ones, which lie between the most similar known ones."""
    described, n = known.described, len(known.values)
    assert described is not None
    rows = described.rows(later, k)  # (k, n + k)
    near = _largest(rows[:, :n], _NEAREST)
    grown = known.grown(n + k)
    grown.places[n:] = of_unit_length(near @ known.places)
    graph, similarity = None, grown.similarity
    if known.graph is not None:
        graph = sp.csr_array(sp.block_array([[known.graph, near.T], [near, None]]))
    if similarity is not None:
        similarity[n:], similarity[:n, n:] = rows, rows[:, :n].T
    return replace(grown, graph=graph, described=described.joined(later, k))


def _placed(index: IdIndex, known: Features | None, given: Any) -> tuple[IdIndex, Features]:
    """An index with the further ids of a graph, and what is known of all with their places in it."""
    graph = given_graph(given, index.kind, index.ids)
    index.check_shared(graph.ids, "similarities")
    adjacency, whole = graph.to_scipy(), index.joined(graph.ids)
    adjacency = _without_weak(adjacency)
    of_nodes, rows = graph_embedding(adjacency, _DIMS), whole.lookup(graph.ids)
    found = np.zeros((len(whole), of_nodes.shape[1]), np.float32)
    found[rows] = of_nodes
    similarity = None
    if len(whole) <= _MOST_ROWS:
        similarity = np.zeros((len(whole),) * 2, np.float32)
        is_graph = isinstance(given, SimilarityGraph)  # which knows nothing of a row with itself
        whole_given = graph.to_scipy() if is_graph else _as_matrix(given, index.kind, index.ids)[0]
        similarity[np.ix_(rows, rows)] = whole_given.toarray()
    nothing = Features(Encoding(()), np.empty((len(whole), 0), np.float32))
    grown = nothing if known is None else known.grown(len(whole))
    edges = _among(adjacency, rows, len(whole))
    return whole, replace(grown, places=found, graph=edges, similarity=similarity, n_later=0)


def graph_of(known: Features) -> sp.csr_array:
    """The graph of what is known of rows: their similarities, and the nearest by their features.

    The two are added, each with its weights divided by the roots of the degrees of both ends, which are about 1 then.
    A row without features has none of the edges that follow from them.
    """
    graphs = [] if known.graph is None else [known.graph]
    rows = np.flatnonzero(known.values.any(axis=1))
    if rows.size > 1:
        nearest = nearest_neighbors_graph(known.values[rows], _NEAREST, "euclidean")
        graphs.append(_among(nearest, rows, len(known.values)))
    return sp.csr_array(sum(map(scaled_adjacency, graphs), sp.csr_array((len(known.values),) * 2)))


def _among(adjacency: sp.csr_array, rows: np.ndarray, size: int) -> sp.csr_array:
    """A graph of some of so many rows as one of all; the others have no edge."""
    edges = adjacency.tocoo()
    return sp.csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=(size, size))


def given_graph(given: Any, kind: str, ids: np.ndarray) -> SimilarityGraph:
    """Similarities as a graph with an edge at least.

    A table has the ids as its index and as its columns; a matrix has a row for each of `ids`.
    """
    graph = given
    if not isinstance(graph, SimilarityGraph):
        matrix, nodes = _as_matrix(given, kind, ids)
        _check(matrix, kind)
        graph = SimilarityGraph(matrix, nodes, kind)
    if not graph.n_edges:
        raise DataError(f"expected similarities of {kind}s, found no two that are similar")
    return graph


def _as_matrix(given: Any, kind: str, ids: np.ndarray) -> tuple[sp.csr_array, Any]:
    nodes: Any = ids
    if isinstance(given, pd.DataFrame):
        nodes = given.index.to_numpy()
        if given.index.has_duplicates or set(given.index) != set(given.columns) or len(set(nodes)) != given.shape[1]:
            raise DataError(
                f"expected a table of {kind} similarities with each id once as index and once as column, found the "
                f"index {quoted(given.index.tolist())} and the columns {quoted(given.columns.tolist())}"
            )
        given = given[given.index].to_numpy()
    if not sp.issparse(given):
        try:
            dense = as_float(given, "similarities")
            if dense.ndim != 2:
                mend = "take networkx.to_pandas_adjacency(graph), or squareform of what pdist makes"
                raise DataError(f"{dense.ndim} dimension(s): {mend}")
            given = sp.csr_array(dense)
        except DataError as error:
            raise DataError(
                f"expected {kind} similarities as a SimilarityGraph, a table or a matrix of numbers, found "
                f"{type(given).__name__}: {error}"
            ) from None
    matrix = checked_sparse(f"{kind} similarities", given).tocsr()
    if matrix.shape != (len(nodes), len(nodes)):
        raise DataError(
            f"expected {kind} similarities of shape ({len(nodes)}, {len(nodes)}), a row and a column for each {kind}, "
            f"found {matrix.shape}"
        )
    return sp.csr_array(matrix), nodes


def _check(matrix: sp.csr_array, kind: str) -> None:
    """Raise `DataError` unless a square matrix holds similarities."""
    values = matrix.data
    if not np.isfinite(values).all():
        raise DataError(f"expected finite {kind} similarities, found {values[~np.isfinite(values)][0]}")
    if values.size and values.min() < 0:
        raise DataError(
            f"expected {kind} similarities >= 0, found {values.min():.4g}: of correlations keep those above 0, "
            "S.clip(min=0)"
        )
    difference = float(abs(matrix - matrix.T).max()) if values.size else 0.0
    if difference > _SYMMETRIC * (values.max() if values.size else 1.0):
        raise DataError(
            f"expected symmetric {kind} similarities, found a difference of {difference:.4g} to the transpose: take "
            "the mean of both, (S + S.T) / 2"
        )
    n, beside = matrix.diagonal().size, np.count_nonzero(values) - np.count_nonzero(matrix.diagonal())
    if n > _FEW and not matrix.diagonal().any() and 2 * beside > n * (n - 1):
        raise DataError(
            f"expected {kind} similarities, found what looks like distances (0 for each {kind} with itself, above 0 "
            "for nearly all pairs): give similarities, such as 1 - D / D.max()"
        )


def read_features(
    path: str | Path,
    id_column: str,
    *,
    sep: str | None = None,
    encoding: str | None = None,
    quote: bool | None = None,
) -> pd.DataFrame:
    r"""Read features of users or items: a table with a column of ids and any other columns.

    Parameters
    ----------
    path : str or Path
        A table of text or of Parquet (needs the extra ``data``), as for `read_ratings`.
    id_column : str
        The column of ids; "user" and "item" also take a column "id" or one with a usual name of such ids. As in
        `read_ratings`, ids that are all integers become integers, others stay text as written.
    sep, encoding, quote : optional
        How text is written, see `read_ratings`.

    Returns
    -------
    DataFrame
        Indexed by id, for `Interactions.with_features`.

    Raises
    ------
    DataFileError
        If the file is missing, no table, or lacks the column.

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
    with regular(path) as source:
        file, writing = existing(source, "features"), Writing(sep, encoding, quote)
        names_of_columns = read_names(file, writing)
        is_role = id_column in ("user", "item")
        found = (column_of_ids if is_role else named_column)(id_column, names_of_columns)
        if found is None:
            mend = "name the column of ids by id_column (in the shell --user-id-column, --item-id-column)"
            raise DataFileError(f"{file}: expected the column {id_column!r}, found {quoted(names_of_columns)}; {mend}")
        table = read_table(file, "features", [str(found)], writing).rename(columns={found: id_column})
    names = table[id_column].tolist()
    if pd.isna(np.array(names, dtype=object)).any():
        raise DataFileError(f"{file}: every row needs its {found!r}, found one without")
    ids = pd.Index(as_integers(list(map(str, names))), name=id_column)
    return table.drop(columns=id_column).set_index(ids)


def read_similarity(
    path: str | Path, kind: Side, *, sep: str | None = None, encoding: str | None = None
) -> SimilarityGraph:
    r"""Read similarities of users or items: a table of pairs, or a square table.

    Parameters
    ----------
    path : str or Path
        As in `read_features`. A table of pairs has three columns of any names: two ids and their similarity, each pair
        in one order or in both. Pairs that are not there count as 0. In a square table the first column and the names
        of the others are ids.
    kind : {"user", "item"}
    sep, encoding : optional
        How text is written, see `read_ratings`.

    Returns
    -------
    SimilarityGraph
        For ``AIR.fit(..., item_similarity=)``.

    Raises
    ------
    DataFileError
        If the file is missing or not such a table, and for a pair with two similarities.
    DataError
        For numbers that are not similarities, see `air_recsys.models.given`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "similar.csv")
    >>> _ = path.write_text("film,other,similarity\n7,8,0.5\n8,9,0.25\n")
    >>> read_similarity(path, "item")
    SimilarityGraph(3 items, 2 edges, 0 isolated, 1 component, weights 0.25..0.5)
    >>> folder.cleanup()
    """
    with regular(path) as source:
        file = existing(source, "similarities")
        table = read_table(file, "similarities", [0, 1], Writing(sep, encoding))
    if table.shape[1] < 2 or table.empty:
        raise DataFileError(f"{file}: expected pairs with a similarity, or a square table, found {table.shape}")
    names, columns = [list(map(str, part)) for part in (table.iloc[:, 0], table.columns[1:])]
    if sorted(names) == sorted(columns):
        cells = table.iloc[:, 1:]
        square = cells.apply(pd.to_numeric, errors="coerce")
        if len(broken := np.argwhere((square.isna() & cells.notna()).to_numpy())):
            raise DataFileError(f"{file}: expected numbers, found {quoted(cells.iat[*broken[0]])}")
        ids = as_integers(names + columns)
        given = square.set_axis(ids[: len(names)], axis=0).set_axis(ids[len(names) :], axis=1)
        return given_graph(given, kind, np.empty(0))
    if table.shape[1] == 3 and is_finite_number(str(table.columns[2])):
        raise malformed(file, 1, "names of columns, such as id,other,similarity", ",".join(table.columns))
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
    twice = pairs.loc[pairs.duplicated(["a", "b"]), ["a", "b"]].to_numpy()
    if len(twice):
        first, second = ids[twice[0]]
        raise DataFileError(f"{file}: expected one similarity a pair, found two of {first} and {second}")
    upper = sp.coo_array((pairs["weight"], (pairs["a"], pairs["b"])), shape=(len(ids), len(ids))).tocsr()
    return sp.csr_array(upper + sp.triu(upper, 1).T), np.asarray(ids)
