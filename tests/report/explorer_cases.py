"""Graphs that the tests of the explorer draw."""

from typing import Any

import numpy as np
from made_films import GraphSize, made_graph

from air_recsys import Interactions, SimilarityGraph

HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '<img src=x onerror="window.hacked=1">',
    "\"><svg onload='window.hacked=1'>",
    "{{data}} ${window.hacked=1} &lt;b&gt; \u2028 \\u003c",
)


def planted(n_nodes: int = 3706, n_groups: int = 18, kind: str = "item") -> SimilarityGraph:
    """A graph of the size of MovieLens-1M's items: nodes with neighbours mostly of their own group, and titles."""
    graph = made_graph(GraphSize(n_nodes, 12 * n_nodes, n_groups))
    table = graph.attributes.rename(columns={"shelf": "group"})
    return SimilarityGraph(graph.to_scipy(), graph.ids, kind=kind, attributes=table, label="title")


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


def rated(n_users: int, n_items: int) -> Interactions:
    """Ratings of 1 to 5 by a factor and noise, of which six in ten are known."""
    rng = np.random.default_rng(0)
    tastes = np.outer(rng.normal(size=n_users), rng.normal(size=n_items))
    truth = np.round((3 + tastes + 0.4 * rng.normal(size=tastes.shape)).clip(1, 5))
    return Interactions.from_dense(np.where(rng.random(truth.shape) < 0.6, truth, np.nan))
