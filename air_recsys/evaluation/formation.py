"""How communities form while a graph is learned: how many, how clear, and what they share with other divisions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from sklearn.metrics import normalized_mutual_info_score

from air_recsys.graphs import SimilarityGraph


def formation(graphs: Mapping[int, SimilarityGraph], known: Mapping[str, np.ndarray] | None = None) -> pd.DataFrame:
    """Return a row for every step of a training, in the order of the steps.

    Columns: step; edges; communities, of two nodes or more (Louvain); modularity of these; last, their normalised
    mutual information (NMI) with those of the last step; and for each name of `known` the NMI with that division.
    Isolated nodes do not count for NMI.

    Parameters
    ----------
    graphs : mapping of int to SimilarityGraph
        The same nodes at steps of a training.
    known : mapping of str to ndarray, shape (n,), optional
        Divisions of the nodes.

    Examples
    --------
    >>> two = SimilarityGraph(np.kron(np.eye(2), np.ones((3, 3))), range(6))
    >>> formation({0: SimilarityGraph(np.ones((6, 6)), range(6)), 9: two}, {"true": np.repeat([0, 1], 3)})
       step  edges  communities  modularity  last  true
    0     0     15            1         0.0   0.0   0.0
    1     9      6            2         0.5   1.0   1.0
    """
    labels = {step: graphs[step].communities().to_numpy() for step in sorted(graphs)}
    last = labels[max(labels)]
    rows = []
    for step, own in labels.items():
        adjacency = graphs[step].to_scipy()
        joined = np.diff(adjacency.indptr) > 0
        divisions = {"last": last} | dict(known or {})
        rows.append(
            {
                "step": step,
                "edges": graphs[step].n_edges,
                "communities": int(np.count_nonzero(np.bincount(own) > 1)),
                "modularity": modularity(graphs[step], own),
                **{name: _nmi(own[joined], other[joined]) for name, other in divisions.items()},
            }
        )
    return pd.DataFrame(rows)


def modularity(graph: SimilarityGraph, labels: np.ndarray) -> float:
    """Return the share of the weight inside of groups, less what chance gives nodes of these degrees; 0 without edges.

    Examples
    --------
    >>> modularity(SimilarityGraph(np.kron(np.eye(2), np.ones((3, 3))), range(6)), np.repeat([0, 1], 3))
    0.5
    """
    entries = graph.to_scipy().tocoo()
    total = entries.data.sum()
    if not total:
        return 0.0
    inside = entries.data[labels[entries.row] == labels[entries.col]].sum() / total
    shares = np.bincount(labels, np.bincount(entries.row, entries.data, labels.size)) / total
    return float(inside - (shares**2).sum())


def _nmi(labels: np.ndarray, others: np.ndarray) -> float:
    return float(normalized_mutual_info_score(labels, others)) if labels.size else 0.0
