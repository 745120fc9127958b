"""What the ratings say beside a graph, for the explorer: how well known nodes are, who rated both ends, exposure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.graph_quality import counts_and_means, exposure, rated_rows
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.pruning import common_counts
from air_recsys.report.edges import edge_lists, strongest

_MAX_PATTERN_EDGES = 20_000


def add_ratings(content: dict[str, Any], graph: SimilarityGraph, ratings: Interactions, max_nodes: int) -> None:
    """Add to the content of a graph: attributes of the nodes, common ratings of the edges, and exposure."""
    rows = rated_rows(graph, ratings)
    counts, means = counts_and_means(rows)
    content["attributes"]["number of ratings"] = [str(count) for count in counts.tolist()]
    if np.ptp(ratings.ratings) > 0:
        content["attributes"]["mean rating"] = [None if np.isnan(mean) else f"{mean:.3g}" for mean in means.tolist()]
    for step in content["steps"]:
        step["shared"] = common_counts(rows, step["sources"], step["targets"]).tolist()
    content["raters"] = "users" if graph.kind == "item" else "items"
    if len(graph) <= max_nodes:
        labels = pd.Series(content["steps"][-1]["communities"], index=pd.Index(graph.ids))
        found = exposure(graph, ratings, labels)
        content["pattern"] = found.pattern.tolist()
        by_pattern = strongest(SimilarityGraph(found.pattern_edges, graph.ids, graph.kind), _MAX_PATTERN_EDGES)
        lists = edge_lists(by_pattern)
        shared = common_counts(rows, lists["sources"], lists["targets"]).tolist()
        content["pattern_edges"] = {"n_edges": found.pattern_edges.nnz // 2, **lists, "shared": shared}
        content["nmi"] = {name: round(value, 3) for name, value in found.nmi.items()}
