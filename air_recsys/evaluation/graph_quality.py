"""How well a learned graph agrees with known groups, how its communities form, and what exposure makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.louvain import louvain
from air_recsys.graphs.neighbors import cosine_neighbors
from air_recsys.graphs.postprocess import with_pattern
from air_recsys.graphs.questions import rated_rows
from air_recsys.graphs.spectral import by_size

N_BANDS = 10
_N_NEIGHBORS = 20  # of the graphs by pattern and by values
_N_SHUFFLED = 20  # for what chance gives


def group_recovery(graph: SimilarityGraph, groups: np.ndarray) -> tuple[float, float]:
    """AUC and NMI of a graph against the true groups of its nodes.

    AUC is that of the edge weight (0 without an edge) as a score for "same group", over all pairs of nodes; NMI is
    that of the Louvain communities against the groups.
    """
    from sklearn.metrics import roc_auc_score

    pairs = np.triu_indices(groups.size, k=1)
    same = (groups[:, None] == groups)[pairs]
    auc = float(roc_auc_score(same, graph.to_scipy().toarray()[pairs]))
    communities = graph.communities().to_numpy()
    return auc, _nmi(groups, communities)


def formation(graphs: Mapping[int, SimilarityGraph]) -> pd.DataFrame:
    """A row for every step of a training, in the order of the steps.

    Columns: step; edges; communities, of two nodes or more (Louvain); modularity of these; and last, their normalised
    mutual information (NMI) with those of the last step. Isolated nodes do not count for NMI.
    """
    labels = {step: graphs[step].communities().to_numpy() for step in sorted(graphs)}
    last = labels[max(labels)]
    rows = []
    for step, own in labels.items():
        adjacency = graphs[step].to_scipy()
        joined = np.diff(adjacency.indptr) > 0
        rows.append(
            {
                "step": step,
                "edges": graphs[step].n_edges,
                "communities": int(np.count_nonzero(np.bincount(own) > 1)),
                "modularity": modularity(graphs[step], own),
                "last": _nmi(own[joined], last[joined]) if joined.any() else 0.0,
            }
        )
    return pd.DataFrame(rows)


def modularity(graph: SimilarityGraph, labels: np.ndarray) -> float:
    """The share of the weight inside of groups, less what chance gives nodes of these degrees; 0 without edges."""
    entries = graph.to_scipy().tocoo()
    total = entries.data.sum()
    if not total:
        return 0.0
    inside = entries.data[labels[entries.row] == labels[entries.col]].sum() / total
    shares = np.bincount(labels, np.bincount(entries.row, entries.data, labels.size)) / total
    return float(inside - (shares**2).sum())


class Exposure(NamedTuple):
    """Other divisions of the nodes, and how much of the communities each of them explains.

    Attributes
    ----------
    nmi : dict of str to float
        Normalised mutual information of the communities with the bands, with the communities of the pattern, with
        those of the values alone (ratings less the means of user and item, cosine), and with themselves shuffled.
    """

    counts: np.ndarray  # (n,), number of ratings of each node
    means: np.ndarray  # (n,), mean of its ratings, NaN without any
    bands: np.ndarray  # (n,), bands of the number of ratings, 0 the fewest, of about as many nodes each
    pattern: np.ndarray  # (n,), communities of the graph by who rated what alone
    pattern_edges: sp.csr_array  # (n, n), that graph
    nmi: dict[str, float]


def exposure(graph: SimilarityGraph, ratings: Interactions, communities: pd.Series | None = None) -> Exposure:
    """How much of the communities of a graph follows from who rated what.

    Parameters
    ----------
    graph : SimilarityGraph
        Of kind "item" or "user", over ids of `ratings`.
    communities : Series of int, optional
        Indexed by id; by default those of the graph. Nodes of a negative one do not count.

    Raises
    ------
    DataError
        If the graph is of another kind, or has ids without a place in the ratings.

    Examples
    --------
    >>> table = pd.DataFrame({"user": [0, 0, 1, 1, 2, 2, 3, 3], "item": [*"abababcd"], "rating": [5.0, 3.0] * 4})
    >>> graph = SimilarityGraph([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [*"abcd"], kind="item")
    >>> found = exposure(graph, Interactions.from_frame(table))
    >>> found.counts.tolist(), found.bands.tolist(), round(found.nmi["pattern"], 6)
    ([3, 3, 1, 1], [1, 1, 0, 0], 1.0)
    """
    rows = rated_rows(graph, ratings)
    labels = (graph.communities() if communities is None else communities).loc[graph.ids].to_numpy()
    counts, means = counts_and_means(rows)
    edges = with_pattern(sp.csr_array((counts.size, counts.size)), rows, _N_NEIGHBORS)  # of the pattern alone
    bands, pattern = bands_of(counts), _divided(edges)
    others = {"bands": bands, "pattern": pattern, "values": _value_communities(rows, means)}
    inside = labels >= 0
    nmi = {name: _nmi(labels[inside], other[inside]) for name, other in others.items()}
    return Exposure(counts, means, bands, pattern, edges, nmi | {"shuffled": _by_chance(labels[inside])})


def counts_and_means(rows: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """The number of entries of each row, and their mean, NaN without any; shapes (n,)."""
    counts = np.diff(rows.indptr).astype(np.int64)
    sums = np.asarray(rows.sum(axis=1), dtype=np.float64).ravel()
    return counts, np.divide(sums, counts, out=np.full(counts.size, np.nan), where=counts > 0)


def bands_of(counts: np.ndarray) -> np.ndarray:
    """Bands of about as many nodes each, equal counts together, 0 the fewest; shape (n,)."""
    edges = np.quantile(counts, np.arange(1, N_BANDS) / N_BANDS)
    return np.unique(np.searchsorted(edges, counts), return_inverse=True)[1]


def _divided(adjacency: sp.csr_array) -> np.ndarray:
    """The communities of a graph; nodes without edges are one together, as nothing tells them apart."""
    labels = louvain(adjacency, 1.0, 0)
    labels[np.diff(adjacency.indptr) == 0] = labels.max(initial=0) + 1
    return by_size(labels)


def _value_communities(rows: sp.csr_array, means: np.ndarray) -> np.ndarray:
    """The communities by how nodes were rated: what is above or below the means of both sides."""
    entries = rows.tocoo()
    rest = entries.data - means[entries.row]
    sums = np.bincount(entries.col, rest) / np.maximum(np.bincount(entries.col), 1)
    values = sp.csr_array((rest - sums[entries.col], (entries.row, entries.col)), shape=entries.shape)
    return _divided(cosine_neighbors(values, _N_NEIGHBORS))


def _nmi(labels: np.ndarray, others: np.ndarray) -> float:
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(labels, others))


def _by_chance(labels: np.ndarray) -> float:
    rng = np.random.default_rng(0)
    return float(np.mean([_nmi(labels, rng.permutation(labels)) for _ in range(_N_SHUFFLED)]))
