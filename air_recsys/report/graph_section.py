"""The section of a model's report that shows a learned graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.graphs import SimilarityGraph
from air_recsys.report.figures import panel
from air_recsys.report.markup import Markup, element, gallery, picture, section, table
from air_recsys.report.plots import community_table, effective_neighbors, plot_adjacency, plot_degrees, plot_weights
from air_recsys.report.sections import Name, note

_N_COMMUNITIES = 15
_N_MEMBERS = 5
_MOST_EDGES = 400_000  # for Louvain in half a minute
_LARGEST = 50_000  # nodes


def graph_section(graph: SimilarityGraph | None, kind: str, name: Name) -> Markup:
    """Return one graph: heatmap, communities with their most connected members, neighbours and weights.

    `kind` is "user" or "item", `name` turns an id into what people call it.
    """
    title = f"Who is alike: the {kind} graph"
    if graph is None:
        return section(f"{kind}s", title, note(f"This model has learned no graph of {kind}s."))
    counts = np.diff(graph.to_scipy().indptr)
    isolated = int(np.count_nonzero(counts == 0))
    lead = (
        f"{len(graph):,} {kind}s, {graph.n_edges:,} edges, {isolated:,} {kind}s without any. On average a {kind} "
        f"has {counts.mean():.1f} neighbours, with an effective number of {effective_neighbors(graph).mean():.1f} "
        "(the exponential of the entropy of a node's weights)."
    )
    if graph.n_edges == 0:
        return section(f"{kind}s", title, element("p", lead), note("There is nothing to draw."))
    return section(f"{kind}s", title, element("p", lead), *_communities(graph, name))


def _communities(graph: SimilarityGraph, name: Name) -> list[Any]:
    if len(graph) > _LARGEST:
        left_out = note(f"More than {_LARGEST:,} nodes: communities are left out of this page.")
        return [left_out, gallery(*_distributions(graph))]
    strongest, notes = graph, []
    if graph.n_edges > _MOST_EDGES:
        strongest = graph.top(max(1, _MOST_EDGES // len(graph)))
        notes = [note(f"Communities are those of the {strongest.n_edges:,} strongest edges.")]
    communities = strongest.communities()
    heatmap = picture(
        panel(plot_adjacency, strongest, communities=communities, size=(3.9, 3.4)),
        f"Heatmap of the weights of all pairs of {graph.kind}s, sorted by {communities.nunique()} communities.",
        f"Weights of all pairs of {graph.kind}s, sorted by {communities.nunique():,} communities; lines divide them.",
    )
    return [
        *notes,
        gallery(heatmap, *_distributions(graph)),
        _community_rows(graph, community_table(strongest, communities, _N_MEMBERS), name),
    ]


def _community_rows(graph: SimilarityGraph, communities: pd.DataFrame, name: Name) -> Markup:
    shown = communities.head(_N_COMMUNITIES)
    rows = [
        [f"{row['community'] + 1}", row["size"], f"{row['inside']:.0%}", ", ".join(map(name, row["members"]))]
        for row in shown.to_dict("records")
    ]
    caption = f"Communities of {graph.kind}s"
    if len(communities) > len(shown):
        caption += f": the largest {len(shown)} of {len(communities)} with two members or more"
    return table(caption, ["community", f"{graph.kind}s", "weight inside", "most connected"], rows)


def _distributions(graph: SimilarityGraph) -> list[Markup]:
    weights = graph.to_scipy().data
    degrees = picture(
        panel(plot_degrees, graph),
        f"Histogram of the neighbours of a {graph.kind}.",
        f"Number and effective number of neighbours of a {graph.kind}.",
    )
    text = f"Histogram of weights of edges from {weights.min():.2g} to {weights.max():.2g}."
    return [degrees, picture(panel(plot_weights, graph), text, "Weights of the edges.")]
