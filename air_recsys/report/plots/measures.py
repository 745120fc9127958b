"""Numbers behind the pictures of a graph: order by communities, mean weights, effective neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph

CELLS = 1_000  # of a picture along a side: more could not be told apart


def community_order(graph: SimilarityGraph, communities: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes sorted by community, the most connected first in each, and their communities, ascending.

    Both have the shape (n,). `communities` are labels in the order of the graph's rows, by default
    `graph.communities()`; other than one label a node is a `DataError`.
    """
    labels = np.asarray(graph.communities() if communities is None else communities)
    if labels.shape != (len(graph),):
        raise DataError(f"expected {len(graph)} communities, one per node, found shape {labels.shape}")
    degrees = graph.to_scipy().sum(axis=1)
    order = np.lexsort((-degrees, labels))
    return order, labels[order]


def mean_weights(graph: SimilarityGraph, order: np.ndarray, n_cells: int = CELLS) -> tuple[np.ndarray, int]:
    """Return the adjacency in an order of the n nodes, (c, c), averaged over square blocks where n > `n_cells`.

    The second value is the number of nodes along the side of a block, 1 without an average; c = ceil(n / block).

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 1, 0], [1, 0, 4], [0, 4, 0]], ["a", "b", "c"])
    >>> mean_weights(graph, np.array([2, 1, 0]), n_cells=2)
    (array([[2. , 0.5],
           [0.5, 0. ]]), 2)
    """
    size = len(graph)
    block = -(-size // n_cells)
    cell_of = np.empty(size, dtype=np.int64)
    cell_of[order] = np.arange(size) // block
    cells = int(cell_of.max()) + 1
    edges = graph.to_scipy().tocoo()
    sums = sp.coo_array((edges.data, (cell_of[edges.row], cell_of[edges.col])), shape=(cells, cells)).toarray()
    counts = np.bincount(cell_of, minlength=cells)
    return sums / np.outer(counts, counts), block


def ceiling(weights: np.ndarray, quantile: float = 0.99) -> float:
    """Return a quantile of the positive weights as the end of a scale: few strong edges must not hide the others."""
    positive = weights[weights > 0]
    return float(np.quantile(positive, quantile)) if positive.size else 1.0


def effective_neighbors(graph: SimilarityGraph) -> np.ndarray:
    r"""Return the effective number of neighbours of every node, the exponential of the entropy of its weights.

    With :math:`p_{ij} = A_{ij} / \sum_j A_{ij}` that is :math:`\exp(-\sum_j p_{ij} \log p_{ij})`: k for k equal
    weights, less where few of them dominate; 0 for a node without edges. The shape is (n,).

    Examples
    --------
    >>> effective_neighbors(SimilarityGraph([[0, 2, 2], [2, 0, 0], [2, 0, 0]], ["a", "b", "c"]))
    array([2., 1., 1.])
    """
    adjacency = graph.to_scipy()
    degrees = np.asarray(adjacency.sum(axis=1))  # (n,)
    rows = np.repeat(np.arange(len(graph)), np.diff(adjacency.indptr))
    shares = adjacency.data / degrees[rows]
    entropy = np.bincount(rows, weights=-shares * np.log(shares), minlength=len(graph))
    return np.where(degrees > 0, np.exp(entropy), 0.0)


def self_edge_share(graph: SimilarityGraph) -> float:
    r"""Return the mean weight of the self-edge in the row softmin that a graph was learned with.

    With :math:`A = (P + P^\top)/2` less its diagonal, and rows of P that sum to 1, the sum of A is
    :math:`m - \mathrm{tr} P`, so the mean of :math:`P_{ii}` is 1 less the sum of A by m. At 1 the energy has
    vanished. Graphs of other adjacencies have no such share.

    Examples
    --------
    >>> self_edge_share(SimilarityGraph([[0, 0.25], [0.25, 0]], ["a", "b"]))
    0.75
    """
    return float(1 - graph.to_scipy().sum() / len(graph))


def community_table(graph: SimilarityGraph, communities: pd.Series | None = None, n_members: int = 5) -> pd.DataFrame:
    """Return one row a community of at least two nodes: size, share of its weight inside, most connected members.

    Parameters
    ----------
    graph : SimilarityGraph
    communities : Series of int, shape (n,), optional
        In the order of the graph's rows; by default `graph.communities()`.
    n_members : int
        Number of members to name, those with the largest total weight of their edges.

    Returns
    -------
    DataFrame
        Columns community, size, inside (weight of edges within it / weight of all edges at its nodes), members
        (a list of ids, the most connected first).

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 1, 0], [1, 0, 4], [0, 4, 0]], ["a", "b", "c"])
    >>> community_table(graph, pd.Series([0, 0, 0]), n_members=2)
       community  size  inside members
    0          0     3     1.0  [b, c]
    """
    order, labels = community_order(graph, communities)
    adjacency = graph.to_scipy()
    rows = []
    for label, size in zip(*np.unique(labels, return_counts=True), strict=True):
        if size < 2:
            continue
        members = order[labels == label]
        chosen = adjacency[members]
        total = chosen.sum()
        inside = float(chosen[:, members].sum() / total) if total else float("nan")
        rows.append((int(label), int(size), inside, graph.ids[members[:n_members]].tolist()))
    return pd.DataFrame(rows, columns=["community", "size", "inside", "members"])
