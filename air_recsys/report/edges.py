"""The edges that a page holds of a graph, as lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.pruning import ranked


def strongest(graph: SimilarityGraph, limit: int) -> SimilarityGraph:
    """Return the graph with the edges that are among the k largest at one of their ends, k as large as `limit` allows.

    Every node keeps its best edge, so more than `limit` edges remain where there are as many nodes.

    Examples
    --------
    >>> import numpy as np
    >>> graph = SimilarityGraph(np.arange(16).reshape(4, 4) + np.arange(16).reshape(4, 4).T, range(4))
    >>> strongest(graph, 4)
    SimilarityGraph(4 nodes, 3 edges, 0 isolated, 1 component, ...)
    """
    if graph.n_edges <= limit:
        return graph
    entries, support = graph.to_scipy().tocoo(), graph.support
    rows, order = ranked(graph.to_scipy(), None if support is None else support.data)
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(graph)))[:-1]))
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size) - starts[rows[order]]
    ranks = sp.csr_array((rank + 1, (entries.row, entries.col)), shape=entries.shape)
    best = sp.triu(ranks.minimum(ranks.T), k=1).tocoo()
    k = max(1, int(np.searchsorted(np.cumsum(np.bincount(best.data)), limit, side="right")) - 1)
    return graph.top(k)


def edge_lists(graph: SimilarityGraph) -> dict[str, Any]:
    """Return both ends and the weight of every edge, largest weights first."""
    edges = graph.strongest_first()
    return {
        "sources": edges.row.tolist(),
        "targets": edges.col.tolist(),
        "weights": [float(f"{weight:.4g}") for weight in edges.data],
    }
