"""How well a learned graph agrees with known groups."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score

from air_recsys.graphs import SimilarityGraph


def group_recovery(graph: SimilarityGraph, groups: np.ndarray) -> tuple[float, float]:
    """Return AUC and NMI of a graph against the true groups of its nodes.

    AUC is that of the edge weight (0 without an edge) as a score for "same group", over all pairs of nodes; NMI is
    that of the Louvain communities against the groups.

    Parameters
    ----------
    graph : SimilarityGraph
    groups : ndarray of int, shape (n,)

    Examples
    --------
    >>> two_pairs = SimilarityGraph([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], range(4))
    >>> group_recovery(two_pairs, np.array([0, 0, 1, 1]))
    (1.0, 1.0)
    """
    pairs = np.triu_indices(groups.size, k=1)
    same = (groups[:, None] == groups)[pairs]
    auc = float(roc_auc_score(same, graph.to_scipy().toarray()[pairs]))
    communities = graph.communities().to_numpy()
    return auc, float(normalized_mutual_info_score(groups, communities))
