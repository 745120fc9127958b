"""Agreement of a graph with side information (similarities, features or labels of its nodes) or with another graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import as_float
from air_recsys.data.ids import IdIndex
from air_recsys.exceptions import DataError
from air_recsys.graphs.louvain import louvain
from air_recsys.graphs.nodes import Nodes
from air_recsys.graphs.pruning import strongest_of_each
from air_recsys.storage.reading import checked_sparse

_MOST_PAIRS = 2_000_000
_BLOCK_ENTRIES = 4_000_000  # entries of gathered features in a block
_NEIGHBORS = 10

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]  # rows i, rows j -> similarities


class Side(NamedTuple):
    """Side information about some of the nodes."""

    rows: np.ndarray  # (m,), those of the graph that it is about
    similarity: Measure  # of positions in `rows`
    labels: np.ndarray | None  # (m,) codes, where the side information is labels


def agreement(adjacency: sp.csr_array, side: Side) -> dict[str, float]:
    """How a graph agrees with side information; see `SimilarityGraph.similarity_to`."""
    from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

    graph = sp.csr_array(adjacency[side.rows][:, side.rows])
    first, second = node_pairs(side.rows.size)
    weights, similarities = _entries(graph, first, second), side.similarity(first, second)
    means = {
        f"top_{_NEIGHBORS}": _of_neighbors(graph, side.similarity),
        "all_pairs": float(np.mean(similarities)),
    }
    if side.labels is None:
        return means | {"spearman": spearman(weights, similarities)}
    entries = graph.tocoo()
    same = side.labels[entries.row] == side.labels[entries.col]
    return means | {
        "homophily": float(entries.data[same].sum() / entries.data.sum()) if graph.nnz else np.nan,
        "auc": float(roc_auc_score(similarities, weights)) if 0 < similarities.sum() < first.size else np.nan,
        "nmi": float(normalized_mutual_info_score(side.labels, louvain(adjacency, 1.0, 0)[side.rows])),
    }


def shared(own: sp.csr_array, other: sp.csr_array) -> dict[str, float]:
    """How much two graphs over the same nodes have in common; see `SimilarityGraph.compare`."""
    from sklearn.metrics import normalized_mutual_info_score

    upper, other_upper = (sp.csr_array(sp.triu(matrix, k=1)) for matrix in (own, other))
    either = sp.csr_array(upper + other_upper).tocoo()
    weights, other_weights = (_entries(matrix, either.row, either.col) for matrix in (upper, other_upper))
    n_shared = int(np.count_nonzero((weights > 0) & (other_weights > 0)))
    return {
        "edges": upper.nnz,
        "other_edges": other_upper.nnz,
        "shared_edges": n_shared,
        "jaccard": n_shared / either.nnz if either.nnz else np.nan,
        "spearman": spearman(weights, other_weights),
        "nmi": float(normalized_mutual_info_score(louvain(own, 1.0, 0), louvain(other, 1.0, 0))),
    }


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """The rank correlation, ties sharing their mean rank; NaN where one of the two does not vary.

    Examples
    --------
    >>> spearman(np.array([1, 2, 3]), np.array([1, 4, 9]))
    1.0
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (x, y)]
    if any(np.ptp(each) == 0 for each in ranks if each.size) or x.size < 2:
        return np.nan
    return float(np.corrcoef(*ranks)[0, 1].round(12))


def node_pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs i < j, or as many as two million at random where there are more; seed 0."""
    if n * (n - 1) // 2 <= _MOST_PAIRS:
        return np.triu_indices(n, k=1)
    rng = np.random.default_rng(0)
    first = rng.integers(n, size=_MOST_PAIRS)
    second = (first + rng.integers(1, n, size=_MOST_PAIRS)) % n  # any other node, with equal probability
    return first, second


def _entries(matrix: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The entries at some positions; SciPy answers no positions with a sparse array."""
    return np.asarray(matrix[i, j], dtype=np.float64) if i.size else np.empty(0)


def _of_neighbors(adjacency: sp.csr_array, similarity: Measure) -> float:
    """The mean similarity of a node's strongest neighbours, averaged over the nodes that have any."""
    chosen = strongest_of_each(adjacency, _NEIGHBORS)
    rows = np.repeat(np.arange(adjacency.indptr.size - 1), np.diff(adjacency.indptr))[chosen]
    if not rows.size:
        return np.nan
    values = similarity(rows, adjacency.indices[chosen])
    counts = np.bincount(rows)
    means = np.bincount(rows, weights=values)[counts > 0] / counts[counts > 0]
    return float(means.mean())


# -------------------------------------------------------------------- side information of every kind


def read_side(information: Any, nodes: Nodes) -> Side:
    """Labels, a similarity matrix or features as a `Side`; see `SimilarityGraph.similarity_to`."""
    if isinstance(information, pd.Series):
        rows, positions = _shared_ids(information.index, nodes)
        return _labels(information.iloc[positions], rows)
    if isinstance(information, pd.DataFrame):
        rows, positions = _shared_ids(information.index, nodes)
        columns = IdIndex(information.columns, "column").lookup(information.index)
        if information.shape[0] == information.shape[1] and (columns >= 0).all():
            return _matrix(_numbers(information.iloc[positions, columns[positions]]), rows)
        return _features(_numbers(information.iloc[positions]), rows)
    sparse = sp.issparse(information)
    array: Any = checked_sparse("side information", information) if sparse else np.asarray(information)
    if array.ndim not in (1, 2) or array.shape[0] != len(nodes.ids):
        raise DataError(f"expected side information of {len(nodes.ids)} {nodes.kind}s, found shape {array.shape}")
    rows = np.arange(len(nodes.ids))
    if array.ndim == 1:
        return _labels(pd.Series(array), rows)
    if array.shape[1] == len(rows):
        return _matrix(array if sparse else as_float(array, "similarities"), rows)
    return _features(as_float(array.toarray() if sparse else array, "features"), rows)


def _shared_ids(index: pd.Index, nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the graph that are in an index, and their positions there."""
    positions = IdIndex(index, nodes.kind).lookup(nodes.ids)
    rows = np.flatnonzero(positions >= 0)
    return rows, positions[rows]


def _numbers(table: pd.DataFrame) -> np.ndarray:
    return as_float(table.to_numpy(dtype=object, copy=True, na_value=np.nan), "side information")


def _labels(labels: pd.Series, rows: np.ndarray) -> Side:
    present = labels.notna().to_numpy()
    codes = pd.factorize(labels[present])[0]
    return _checked(Side(rows[present], lambda i, j: (codes[i] == codes[j]).astype(float), codes))


def _matrix(matrix: Any, rows: np.ndarray) -> Side:
    values = matrix.data if sp.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        raise DataError("expected finite similarities, found NaN or infinite ones: leave those nodes out")
    table = sp.csr_array(matrix) if sp.issparse(matrix) else matrix
    return _checked(Side(rows, lambda i, j: (_entries(table, i, j) + _entries(table, j, i)) / 2, None))


def _features(features: np.ndarray, rows: np.ndarray) -> Side:
    present = np.isfinite(features).all(axis=1) & features.any(axis=1)
    table = features[present]
    sizes = np.square(table).sum(axis=1)  # (m,)
    flags = bool(((table == 0) | (table == 1)).all())

    def similarity(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        products = _products(table, i, j)
        return products / (sizes[i] + sizes[j] - products if flags else np.sqrt(sizes[i] * sizes[j]))

    return _checked(Side(rows[present], similarity, None))


def _products(table: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    products = np.empty(i.size)
    block = max(1, _BLOCK_ENTRIES // max(1, table.shape[1]))
    for start in range(0, i.size, block):
        pairs = slice(start, start + block)
        products[pairs] = np.einsum("bf,bf->b", table[i[pairs]], table[j[pairs]])
    return products


def _checked(side: Side) -> Side:
    if side.rows.size < 2:
        raise DataError(f"expected side information about at least two nodes, found it about {side.rows.size}")
    return side
