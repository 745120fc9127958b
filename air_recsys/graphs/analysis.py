"""`AnalysedGraph`: neighbours, degrees, components, communities and the Laplacian of a graph; its notebook card."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse import csgraph

from air_recsys.data.ids import IdIndex
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.graphs import naming, spectral
from air_recsys.graphs.louvain import louvain
from air_recsys.graphs.naming import traits_of
from air_recsys.graphs.spectral import spectral_communities
from air_recsys.graphs.weighted import WeightedGraph
from air_recsys.storage.markup import bar, card, card_table
from air_recsys.storage.validation import check_choice, check_integer, check_real

_N_EDGES = 5


class AnalysedGraph(WeightedGraph):
    """The analysis in `SimilarityGraph`; use that class."""

    def neighbors(self, id: Hashable, n: int = 10) -> pd.DataFrame:
        """The n nodes most similar to `id`, strongest first, as columns named after the kind and "weight".

        If a column names the nodes, the column "label" is between the two. A node with fewer than n edges has fewer
        rows. Of equal weights the one with more support comes first, see `SimilarityGraph`, then the first in the
        order of the ids.

        Raises
        ------
        UnknownIdError
            If no node has that id; the message names the nearest ids.
        """
        check_integer("n", n, minimum=1)
        row = self._nodes.row(id)
        span = slice(self._adjacency.indptr[row], self._adjacency.indptr[row + 1])
        others, weights = self._adjacency.indices[span], self._adjacency.data[span]
        support = np.zeros(others.size) if self._support is None else self._support[span]
        order = np.lexsort((others, np.negative(support), np.negative(weights)))[:n]
        columns: dict[str, Any] = {self.kind: self.ids[others[order]]}
        if self.label is not None:
            columns["label"] = self._nodes.take(others[order]).labels()
        return pd.DataFrame(columns | {"weight": weights[order]})

    def degrees(self, weighted: bool = True) -> pd.Series:
        """The sum of every node's weights (or the number of its edges), indexed by id."""
        counts = np.diff(self._adjacency.indptr).astype(np.int64)
        return self._nodes.series(self._adjacency.sum(axis=1) if weighted else counts, "degree")

    def components(self) -> pd.Series:
        """The connected component of every node, 0 being the largest, as int indexed by id."""
        return self._nodes.series(spectral.component_of_each(self._adjacency), "component")

    def communities(
        self,
        random_state: int = 0,
        resolution: float = 1.0,
        *,
        method: Literal["louvain", "spectral"] = "louvain",
        n_communities: int | None = None,
    ) -> pd.Series:
        """The community of every node, 0 being the largest, as int indexed by id.

        Parameters
        ----------
        random_state : int
            Louvain visits the nodes in a random order; k-means starts at random.
        resolution : float
            For Louvain: values above 1 favour smaller communities.
        method : {"louvain", "spectral"}
            Communities of large modularity; or k-means on eigenvectors of the normalised
            Laplacian, see `air_recsys.graphs.spectral.spectral_communities`. Nodes without edges stand alone in both.
        n_communities : int, optional
            For "spectral": the number of communities, nodes without edges not counted; by default the largest gap
            between two eigenvalues decides.

        Raises
        ------
        ParameterError
            If a parameter is out of range or belongs to the other method.

        Examples
        --------
        >>> pairs = AnalysedGraph([[0, 5, 1, 0], [5, 0, 0, 1], [1, 0, 0, 5], [0, 1, 5, 0]], ["a", "b", "c", "d"])
        >>> pairs.communities(method="spectral").tolist()
        [0, 0, 1, 1]
        """
        seed = check_integer("random_state", random_state)
        check_real("resolution", resolution, strict=True)
        if check_choice("method", method, ("louvain", "spectral")) == "louvain":
            if n_communities is not None:
                raise ParameterError(f"Louvain finds the number of communities itself, found {n_communities=}")
            if (resolution, seed) not in self._divided:
                self._divided[resolution, seed] = louvain(self._adjacency, resolution, seed)
            return self._nodes.series(self._divided[resolution, seed].copy(), "community")
        if resolution != 1:
            raise ParameterError(f"resolution is for Louvain: set n_communities, found {resolution=}")
        if n_communities is not None:
            check_integer("n_communities", n_communities, minimum=1)
        return self._nodes.series(spectral_communities(self._adjacency, n_communities, seed), "community")

    def describe_communities(
        self, communities: pd.Series | None = None, known: pd.Series | None = None
    ) -> pd.DataFrame:
        """A row for every community: its size, its name, and the evidence for the name.

        A community is named by at most two traits of its members (a genre, a decade, a flag, see
        `air_recsys.graphs.naming.traits_of`) that are over-represented: held by a fifth of the members or more, with
        a hypergeometric p-value below 0.01 after correction for all that was compared. If there is no such trait, the
        best known members name it.

        Parameters
        ----------
        communities : Series of int, optional
            Community of each node, indexed by id, by default those of `communities`. Nodes with a negative number are
            left out.
        known : Series of float, optional
            How well known each node is, indexed by id, such as its number of ratings; by default its sum of weights.

        Returns
        -------
        DataFrame
            community, size, name; trait, the first of the name (None without one), with share and share_of_all, of
            the members and of all nodes that have it, its log_odds ratio and its corrected p_value; members, the
            names of the five best known.

        Raises
        ------
        DataError
            If a Series lacks a node.

        Examples
        --------
        >>> import numpy as np
        >>> genres = pd.DataFrame({"genre": ["War"] * 6 + ["Comedy"] * 6})
        >>> graph = AnalysedGraph(np.kron(np.eye(2), np.ones((6, 6))), range(12), "item", attributes=genres)
        >>> graph.describe_communities()[["size", "name", "share", "share_of_all"]].to_dict("records")[0]
        {'size': 6, 'name': 'War', 'share': 1.0, 'share_of_all': 0.5}
        """
        labels = self._values(self.communities() if communities is None else communities, "communities")
        weights = self._values(self.degrees() if known is None else known, "known")
        traits = traits_of(self._nodes.attributes, self.label)
        return naming.describe(labels.astype(np.int64), traits, self._nodes.labels().tolist(), weights)

    def _values(self, values: pd.Series, name: str) -> np.ndarray:
        """The values of a Series in the order of the nodes."""
        rows = IdIndex(values.index, self.kind).lookup(self.ids)
        if (rows < 0).any():
            raise DataError(f"expected {name} of all {self.kind}s, found none of {self.ids[rows < 0].tolist()[0]!r}")
        return values.to_numpy()[rows]

    def laplacian(self, normalized: bool = False) -> sp.csr_array:
        """L = D - A with D = diag(A 1), or I - D^-1/2 A D^-1/2 (0 for isolated nodes); shape (n, n)."""
        if not len(self):
            return self.to_scipy()
        return sp.csr_array(csgraph.laplacian(self._adjacency, normed=normalized))

    def spectral_coordinates(self, n_dims: int = 2) -> np.ndarray:
        """Laplacian eigenmaps in [-1, 1], a box for every component; shape (n, n_dims).

        The same graph gives the same coordinates. See `air_recsys.graphs.spectral.eigenmaps`.
        """
        return spectral.eigenmaps(self._adjacency, check_integer("n_dims", n_dims, minimum=1))


def graph_card(graph: WeightedGraph) -> str:
    """Sizes and the strongest edges of a graph as HTML.

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
