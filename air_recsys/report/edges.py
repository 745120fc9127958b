"""The edges that a page holds of a graph, as lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph


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
    entries = graph.to_scipy().tocoo()
    order = np.lexsort((entries.col, np.negative(entries.data), entries.row))
    starts = np.concatenate(([0], np.cumsum(np.bincount(entries.row, minlength=len(graph)))[:-1]))
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size) - starts[entries.row[order]]
    ranks = sp.csr_array((rank + 1, (entries.row, entries.col)), shape=entries.shape)
    best = sp.triu(ranks.minimum(ranks.T), k=1).tocoo()
    k = max(1, int(np.searchsorted(np.cumsum(np.bincount(best.data)), limit, side="right")) - 1)
    kept = best.data <= k
    mask = sp.csr_array((np.ones(kept.sum()), (best.row[kept], best.col[kept])), shape=entries.shape)
    return SimilarityGraph(graph.to_scipy() * (mask + mask.T), graph.ids, kind=graph.kind)


def edge_lists(graph: SimilarityGraph) -> dict[str, Any]:
    """Return both ends and the weight of every edge, largest weights first."""
    upper = sp.triu(graph.to_scipy(), k=1).tocoo()
    order = np.argsort(np.negative(upper.data), kind="stable")
    return {
        "sources": upper.row[order].tolist(),
        "targets": upper.col[order].tolist(),
        "weights": [float(f"{weight:.4g}") for weight in upper.data[order]],
    }
