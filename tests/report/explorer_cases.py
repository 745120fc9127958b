"""Graphs that the tests of the explorer draw."""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from made_films import ADJECTIVES, NOUNS

from air_recsys import SimilarityGraph

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '<img src=x onerror="window.hacked=1">',
    "\"><svg onload='window.hacked=1'>",
    "{{data}} ${window.hacked=1} &lt;b&gt; \u2028 \\u003c",
)


def planted(n_nodes: int = 3706, n_groups: int = 18, n_neighbors: int = 13, kind: str = "item") -> SimilarityGraph:
    """A graph of the size of MovieLens-1M's items: nodes with neighbours mostly of their own group, and titles."""
    rng = np.random.default_rng(0)
    group = np.sort(rng.choice(n_groups, n_nodes, p=rng.dirichlet(np.full(n_groups, 4.0))))
    starts = np.searchsorted(group, np.arange(n_groups + 1))
    rows = np.repeat(np.arange(n_nodes), n_neighbors)
    low, high = starts[group[rows]], starts[group[rows] + 1]
    inside = low + (rng.random(rows.size) * (high - low)).astype(int)
    columns = np.where(rng.random(rows.size) < 0.9, inside, rng.integers(n_nodes, size=rows.size))
    half = sp.csr_array((rng.gamma(2.0, size=rows.size), (rows, columns)), shape=(n_nodes, n_nodes))
    titles = [
        f"{ADJECTIVES[rng.integers(11)]} {NOUNS[rng.integers(10)]} ({1930 + number % 70})" for number in rows[::13]
    ]
    table: dict[str, Any] = {
        "title": titles,
        "year": [float(title[-5:-1]) for title in titles],
        "group": [f"shelf {number}" for number in group],
    }
    frame = pd.DataFrame(table, index=pd.RangeIndex(1, n_nodes + 1))
    graph = SimilarityGraph(half + half.T, frame.index, kind=kind)
    return graph.with_attributes(frame, label="title")


def weaker(graph: SimilarityGraph, share: float) -> SimilarityGraph:
    """The same nodes with a share of the edges, as an earlier epoch might have."""
    adjacency = graph.to_scipy()
    adjacency.data[adjacency.data < np.quantile(adjacency.data, 1 - share)] = 0
    return SimilarityGraph(adjacency, graph.ids, kind=graph.kind)


def ring(n_nodes: int = 8, **attributes: Any) -> SimilarityGraph:
    """A small graph whose node i is joined to i + 1, with weight i + 1."""
    adjacency = np.zeros((n_nodes, n_nodes))
    for node in range(n_nodes - 1):
        adjacency[node, node + 1] = adjacency[node + 1, node] = node + 1
    return SimilarityGraph(adjacency, [f"n{node}" for node in range(n_nodes)], kind="item", **attributes)
