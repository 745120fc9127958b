"""What a notebook shows of a graph."""

from __future__ import annotations

import numpy as np

from air_recsys.graphs import spectral
from air_recsys.graphs.weighted import WeightedGraph
from air_recsys.storage.markup import bar, card, card_table

_N_EDGES = 5


def graph_card(graph: WeightedGraph) -> str:
    """Return sizes and the strongest edges of a graph as HTML.

    Examples
    --------
    >>> from air_recsys import SimilarityGraph
    >>> shown = graph_card(SimilarityGraph([[0, 2, 1], [2, 0, 0], [1, 0, 0]], ["a", "b", "c"], kind="item"))
    >>> "1 to 2" in shown, "The 2 strongest edges" in shown
    (True, True)
    """
    adjacency = graph.to_scipy()
    degrees, weights = np.diff(adjacency.indptr), adjacency.data
    n_components = int(spectral.component_of_each(adjacency).max(initial=-1)) + 1
    isolated = f", {np.count_nonzero(degrees == 0):,} without edges" if (degrees == 0).any() else ""
    facts = {
        f"{graph.kind}s": f"{len(graph):,}{isolated}",
        "edges": f"{graph.n_edges:,}" + (f", a median of {np.median(degrees):g} each" if weights.size else ""),
        "components": n_components,
        "weights": f"{weights.min():.3g} to {weights.max():.3g}" if weights.size else None,
        "labelled by": graph.label,
    }
    edges = graph.strongest_first()
    if not edges.nnz:
        return card("SimilarityGraph", facts)
    names = [str(label) for label in graph.labels.tolist()]
    best = (part[:_N_EDGES].tolist() for part in (edges.row, edges.col, edges.data))
    rows = [
        (names[row], names[column], weight, bar(weight / edges.data[0]))
        for row, column, weight in zip(*best, strict=True)
    ]
    title = f"The {len(rows)} strongest edges" if len(rows) > 1 else "The edge"
    return card("SimilarityGraph", facts, card_table(title, [graph.kind, graph.kind, "weight", ""], rows))
