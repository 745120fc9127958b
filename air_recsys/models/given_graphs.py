"""Graphs of similarities that are given beside the ratings."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.features import Encoding, Features
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.embedding import graph_embedding
from air_recsys.graphs.pruning import strongest
from air_recsys.storage.reading import checked_sparse

_DIMS = 100  # of the embedding: chosen on hidden ratings of Flixster and Douban, see docs/similarities.md
_MANY, _NEAREST = 50, 10  # neighbours in the mean above which those most alike count alone, and how many of them
_FEW = 3  # nodes, of which a zero diagonal tells nothing
_SYMMETRIC = 1e-6  # largest difference to the transpose, over the largest similarity


def with_similarities(data: Interactions, user: Any, item: Any) -> Interactions:
    """Return interactions in which users and items have embeddings of given graphs, see `AIR.fit`.

    Raises
    ------
    DataError
        For a matrix that is not square, symmetric and >= 0, or looks like distances; for ids that are repeated, or all
        unknown to the data; where no two are alike.

    Examples
    --------
    >>> data = Interactions.from_dense([[5.0, 1.0, 2.0]], item_ids=["x", "y", "z"])
    >>> alike = pd.DataFrame([[1, 0.5], [0.5, 1]], index=["x", "y"], columns=["x", "y"])
    >>> with_similarities(data, None, alike).item_features.places.any(axis=1)
    array([ True,  True, False])
    """
    same = copy(data)
    if user is not None:
        same.users, same.user_features = _placed(data.users, data.user_features, user)
    if item is not None:
        same.items, same.item_features = _placed(data.items, data.item_features, item)
    return same


def _placed(index: IdIndex, known: Features | None, given: Any) -> tuple[IdIndex, Features]:
    """Return an index with the further ids of a graph, and what is known of all with their embedding."""
    graph = given_graph(given, index.kind, index.ids)
    index.check_shared(graph.ids, "similarities")
    adjacency, whole = graph.to_scipy(), index.joined(graph.ids)
    has_many = adjacency.nnz > _MANY * np.count_nonzero(np.diff(adjacency.indptr))
    of_nodes = graph_embedding(strongest(adjacency, _NEAREST) if has_many else adjacency, _DIMS)
    found = np.zeros((len(whole), of_nodes.shape[1]), np.float32)
    found[whole.lookup(graph.ids)] = of_nodes
    nothing = Features(Encoding(()), np.empty((len(whole), 0), np.float32))
    return whole, replace(nothing if known is None else known.grown(len(whole)), places=found)


def given_graph(given: Any, kind: str, ids: np.ndarray) -> SimilarityGraph:
    """Return similarities as a graph with an edge at least.

    Parameters
    ----------
    given : SimilarityGraph, DataFrame, SciPy sparse or ndarray
        A table has the ids as its index and as its columns; a matrix has a row for each of `ids`.
    kind : str
        "user" or "item".
    ids : ndarray

    Raises
    ------
    DataError
        See `with_similarities`.

    Examples
    --------
    >>> given_graph(np.abs(np.subtract.outer(range(4), range(4))), "item", np.arange(4))
    Traceback (most recent call last):
    air_recsys.exceptions.DataError: expected item similarities, found what looks like distances (0 for each item \
with itself, above 0 for nearly all pairs): give similarities, such as 1 - D / D.max()
    """
    graph = given
    if not isinstance(graph, SimilarityGraph):
        matrix, nodes = _as_matrix(given, kind, ids)
        _check(matrix, kind)
        graph = SimilarityGraph(matrix, nodes, kind)
    if not graph.n_edges:
        raise DataError(f"expected similarities of {kind}s, found no two that are alike")
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
            given = sp.csr_array(np.asarray(given, dtype=np.float64))
        except (TypeError, ValueError):
            raise DataError(
                f"expected {kind} similarities as a SimilarityGraph, a table or a matrix of numbers, found "
                f"{type(given).__name__}"
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
