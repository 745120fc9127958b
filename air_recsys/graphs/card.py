"""What a notebook shows of a graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import spectral
from air_recsys.graphs.weighted import WeightedGraph
from air_recsys.markup import bar, card, card_table

_N_EDGES = 5


def graph_card(graph: WeightedGraph) -> str:
    """Return sizes and the strongest edges of a graph as HTML, of equal ones the first in the order of the ids.

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
    upper = sp.coo_array(sp.triu(adjacency, 1))
    best = np.lexsort((upper.col, upper.row, np.negative(upper.data)))[:_N_EDGES]
    if not best.size:
        return card("SimilarityGraph", facts)
    names = [str(label) for label in graph.labels.tolist()]
    rows = [
        (names[row], names[column], float(weight), bar(weight / upper.data[best[0]]))
        for row, column, weight in zip(upper.row[best], upper.col[best], upper.data[best], strict=True)
    ]
    title = f"The {best.size} strongest edges" if best.size > 1 else "The edge"
    return card("SimilarityGraph", facts, card_table(title, [graph.kind, graph.kind, "weight", ""], rows))
