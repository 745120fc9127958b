"""`SimilarityGraph`: a learned graph with the caller's ids, its analysis, pruning, comparison and export."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.ids import as_id_array
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import comparison, neighbors, pruning, questions, spectral
from air_recsys.graphs.analysis import AnalysedGraph, graph_card
from air_recsys.graphs.nodes import Nodes
from air_recsys.graphs.questions import Answer
from air_recsys.storage.validation import check_integer, check_real
from air_recsys.storage.writers import writer


class SimilarityGraph(AnalysedGraph):
    """An undirected weighted graph over users or items; a larger weight means more similar.

    A graph never changes: methods such as `top` or `ego` return another one, with the ids, attributes and labels of
    its nodes.

    Parameters
    ----------
    adjacency : sparse array or ndarray, shape (n, n)
        Symmetric, non-negative; the diagonal is ignored, and so are weights below a millionth of the largest.
    ids : iterable of hashable
        The id of each node, in the order of the rows.
    kind : str
        Kind of the nodes, "user" or "item", for messages, columns and the repr.
    attributes : DataFrame, optional
        Properties of the nodes (titles, genres, drug names), indexed by id or with a column of ids named `kind`, in
        any order. Nodes that it lacks get missing values.
    label : str, optional
        The column of `attributes` that names the nodes.
    support : sparse array, shape (n, n), optional
        Symmetric: what orders the edges of equal weight of a node, more of it first, such as how many users rated both
        items. Then, and without it, the first in the order of the ids comes first.
    ratings : Interactions, optional
        What `why` and `place` know of who rated what; graphs of a model have it.

    Raises
    ------
    DataError
        Unless the matrix is square, symmetric, finite, non-negative and as long as `ids`; and if the attributes have
        none of the ids, or one of them twice.
    ParameterError
        If `label` is not a column of the attributes.

    Examples
    --------
    >>> graph = SimilarityGraph([[0, 2, 1], [2, 0, 0], [1, 0, 0]], ["a", "b", "c"], kind="item")
    >>> graph
    SimilarityGraph(3 items, 2 edges, 0 isolated, 1 component, weights 1..2)
    >>> graph.neighbors("a")
      item  weight
    0    b     2.0
    1    c     1.0
    >>> graph.laplacian().toarray()
    array([[ 3., -2., -1.],
           [-2.,  2.,  0.],
           [-1.,  0.,  1.]])
    """

    @classmethod
    def from_factors(
        cls,
        factors: Any,
        ids: Iterable[Hashable],
        k: int = 50,
        kind: str = "item",
        *,
        metric: Literal["cosine", "euclidean"] = "cosine",
        attributes: pd.DataFrame | None = None,
        label: str | None = None,
    ) -> Self:
        r"""The graph of the k nearest rows of some factors, from an exact search in blocks.

        Two nodes have an edge if one of them is among the min(k, n - 1) nearest of the other.

        Parameters
        ----------
        factors : array_like, shape (n, r)
            Factors, such as ``model.item_factors_``; they are compared in float32.
        ids, kind, attributes, label
            See the class.
        k : int
        metric : {"cosine", "euclidean"}
            A weight is the cosine of two rows (no edge if it is <= 0), or, with :math:`\sigma_i` the
            distance of i's k-th neighbour, :math:`\exp(-|x_i - x_j|^2 / (\sigma_i \sigma_j))`.

        Raises
        ------
        DataError
            If factors are not finite, or not one row per id.

        Examples
        --------
        >>> SimilarityGraph.from_factors([[1, 0], [3, 0.1], [0, 1]], ["x", "y", "z"], k=1).neighbors("x").round(3)
          item  weight
        0    y   0.999
        """
        nodes = as_id_array(ids)
        adjacency = neighbors.nearest_neighbors_graph(neighbors.as_factors(factors, len(nodes)), k, metric)
        return cls(adjacency, nodes, kind, attributes=attributes, label=label)

    def with_attributes(self, attributes: pd.DataFrame, label: str | None = None) -> Self:
        """The same graph with other attributes; see the class for parameters and errors.

        Examples
        --------
        >>> graph = SimilarityGraph([[0, 2], [2, 0]], [7, 8], "item")
        >>> graph.with_attributes(pd.DataFrame({"item": [8], "title": ["Plums"]}), label="title").neighbors(7)
           item  label  weight
        0     8  Plums     2.0
        """
        return type(self)(
            self._adjacency,
            self.ids,
            self.kind,
            attributes=attributes,
            label=label,
            support=self.support,
            ratings=self.ratings,
        )

    def with_ratings(self, ratings: Interactions | None) -> Self:
        """The same graph, which knows these ratings of its nodes; see the class."""
        same = copy(self)
        same.ratings = ratings
        return same

    def __repr__(self) -> str:
        weights = self._adjacency.data
        n_components = int(spectral.component_of_each(self._adjacency).max(initial=-1)) + 1
        facts = [
            _counted(len(self), self.kind),
            _counted(self.n_edges, "edge"),
            f"{np.count_nonzero(np.diff(self._adjacency.indptr) == 0)} isolated",
            _counted(n_components, "component"),
        ]
        if weights.size:
            facts.append(f"weights {weights.min():.3g}..{weights.max():.3g}")
        if self.label is not None:
            facts.append(f"labelled by {self.label!r}")
        return f"SimilarityGraph({', '.join(facts)})"

    def _repr_html_(self) -> str:
        """The card that a notebook shows: sizes, and the strongest edges."""
        return graph_card(self)

    # ---------------------------------------------------------------- fewer nodes, fewer edges

    def subgraph(self, ids: Iterable[Hashable]) -> Self:
        """The graph of some nodes, in that order, with all edges between them.

        Raises
        ------
        UnknownIdError
            With the nearest ids.
        DataError
            If an id is given twice.
        """
        return self._of_rows(self._nodes.rows(as_id_array(ids)))

    def ego(self, id: Hashable, hops: int = 1) -> Self:
        """The graph of a node and all nodes within `hops` steps of it, with the edges between them.

        Errors are those of `subgraph`.

        Examples
        --------
        >>> path = SimilarityGraph([[0, 1, 0], [1, 0, 1], [0, 1, 0]], ["a", "b", "c"])
        >>> path.ego("a").ids.tolist(), path.ego("a", hops=2).ids.tolist()
        (['a', 'b'], ['a', 'b', 'c'])
        """
        reached = np.zeros(len(self), dtype=bool)
        reached[self._nodes.row(id)] = True
        for _ in range(check_integer("hops", hops)):
            further = reached | (self._adjacency @ reached > 0)
            if np.array_equal(further, reached):
                break
            reached = further
        return self._of_rows(np.flatnonzero(reached))

    def top(self, k: int) -> Self:
        """The graph where every node keeps its k strongest edges, of equal ones as `neighbors` does.

        As with `mass`, an edge stays if either of its ends keeps it. So the graph stays symmetric, and a node can have
        more than k edges.

        Examples
        --------
        >>> triangle = SimilarityGraph([[0, 3, 2], [3, 0, 1], [2, 1, 0]], ["a", "b", "c"])
        >>> triangle.top(1).edge_list()
          source target  weight
        0      a      b     3.0
        1      a      c     2.0
        """
        return self._with(pruning.strongest(self._adjacency, check_integer("k", k, minimum=1), self._support))

    def threshold(self, weight: float) -> Self:
        """The graph of the edges with at least that weight: at most 1, or the largest weight where that is more."""
        most = max(1.0, self._adjacency.data.max(initial=0))
        return self._with(pruning.above(self._adjacency, check_real("weight", weight, maximum=most)))

    def mass(self, share: float) -> Self:
        """The graph where every node keeps the fewest of its edges that hold a share of its weight.

        An edge stays if either of its ends keeps it. Learned graphs give most of a node's weight to few edges: a node
        keeps many edges only if its weight is spread over many.

        Parameters
        ----------
        share : float
            In (0, 1]; 1 keeps all edges.

        Examples
        --------
        >>> square = SimilarityGraph([[0, 8, 0, 1], [8, 0, 1, 0], [0, 1, 0, 8], [1, 0, 8, 0]], ["a", "b", "c", "d"])
        >>> square.mass(0.5).edge_list()
          source target  weight
        0      a      b     8.0
        1      c      d     8.0
        """
        checked = check_real("share", share, maximum=1, strict=True)
        return self._with(pruning.holding(self._adjacency, checked, self._support))

    # ---------------------------------------------------------------- side information and other graphs

    def similarity_to(self, side_information: Any) -> pd.Series:
        """How well the graph agrees with side information about its nodes.

        Parameters
        ----------
        side_information : Series, DataFrame, ndarray or sparse matrix
            Labels: a Series indexed by id, or a 1-D array in the order of `ids`. Similarities: a DataFrame with the
            same ids as index and columns, or an (n, n) matrix; its symmetric part counts. Features: any other
            DataFrame indexed by id, or an (n, f) array; the similarity of two nodes is the Jaccard index where all
            features are 0 or 1, else the cosine. Nodes without information (not in the index, missing values, only
            features of 0) are left out.

        Returns
        -------
        Series of float
            * top_10: the mean similarity of a node to its ten strongest neighbours, averaged over nodes with
              neighbours (for labels: the share with the node's own label),
            * all_pairs: the mean similarity of all pairs, the value of a graph without information,
            * spearman: rank correlation of weight (0 without an edge) and similarity over all pairs,
            * for labels in its place: homophily, the share of the weight on edges within a label; auc, of the weight
              as a score for "same label" over all pairs; nmi, normalised mutual information of Louvain communities
              and labels.

            Beyond 2,000 nodes "all pairs" are two million pairs drawn with a fixed seed. A figure without a meaning is
            NaN, such as the correlation with similarities that are all equal.

        Raises
        ------
        DataError
            For side information of another size, or about fewer than two nodes.

        Examples
        --------
        >>> pairs = SimilarityGraph([[0, 3, 1, 0], [3, 0, 0, 0], [1, 0, 0, 2], [0, 0, 2, 0]], ["a", "b", "c", "d"])
        >>> pairs.similarity_to(pd.Series(["x", "x", "y", "y"], index=["a", "b", "c", "d"])).round(3).to_dict()
        {'top_10': 0.75, 'all_pairs': 0.333, 'homophily': 0.833, 'auc': 1.0, 'nmi': 1.0}
        """
        side = comparison.read_side(side_information, self._nodes)
        return pd.Series(comparison.agreement(self._adjacency, side), name="agreement")

    def compare(self, other: SimilarityGraph) -> pd.Series:
        """The agreement of this graph with another one over the same ids, in any order.

        Returns
        -------
        Series of float
            edges, other_edges, shared_edges; jaccard, the shared edges among those of either; spearman, the rank
            correlation of the weights over the edges of either (0 for an edge that one lacks); nmi, normalised mutual
            information of both graphs' Louvain communities. A figure without a meaning is
            NaN, such as the correlation of weights that are all equal.

        Raises
        ------
        DataError
            If the ids are not the same.
        """
        rows = other._nodes.index.lookup(self.ids)
        if len(other) != len(self) or (rows < 0).any():
            raise DataError(
                f"expected a graph over the same ids, found {np.count_nonzero(rows < 0)} of {len(self)} missing in "
                f"a graph of {len(other)}"
            )
        shared = comparison.shared(self._adjacency, other._of_rows(rows)._adjacency)
        return pd.Series(shared, name="comparison")

    # ---------------------------------------------------------------- questions

    def why(self, first: Hashable, second: Hashable) -> Answer:
        """Why two nodes are alike: their edge, who rated both and how far these agree, and what they share.

        Returns
        -------
        Answer
            Its `text`, and `tables`: "features", the traits of both (`air_recsys.graphs.naming.traits_of`), the rarest
            first; and where the graph knows ratings "raters", those of both nodes with their two ratings. Agreement is
            the cosine of these ratings, each less the mean of its rater.

        Raises
        ------
        UnknownIdError
        DataError
            If both are the same node.

        Examples
        --------
        >>> graph = SimilarityGraph([[0, 2, 1], [2, 0, 0], [1, 0, 0]], ["a", "b", "c"], kind="item")
        >>> graph.why("a", "b").text
        'a and b are alike by 2: number 1 of the 2 neighbours of a, number 1 of the 1 neighbours of b.'
        >>> graph.why("b", "c").text
        'No edge joins b and c.'
        """
        return questions.why(self, first, second)

    def between(self, first: Any, second: Any, n: int = 10) -> Answer:
        """What lies between two groups: the edges that join them, and the nodes that are similar to both.

        Parameters
        ----------
        first, second : list of hashable, int or str
            Ids, or a community of `communities` by its number or by its name.
        n : int
            Most rows of a table.

        Returns
        -------
        Answer
            Its tables are "edges", the strongest first, and one named after the kind: nodes with edges to both groups,
            with the sums of their weights to each and the group that they are in, by the smaller sum.

        Examples
        --------
        >>> path = SimilarityGraph([[0, 2, 0], [2, 0, 1], [0, 1, 0]], ["a", "b", "c"], kind="item")
        >>> path.between(["a"], ["c"]).tables["items"].to_dict("records")
        [{'item': 'b', 'group': '', 'to_first': 2.0, 'to_second': 1.0}]
        """
        return questions.between(self, (first, second), check_integer("n", n, minimum=1))

    def place(
        self, features: Mapping[str, Any] | None = None, ratings: Mapping[Any, float] | None = None, n: int = 10
    ) -> Answer:
        """Where a new node belongs, by its features, its first ratings, or both: the nearest nodes and communities.

        Parameters
        ----------
        features : mapping, optional
            Values of columns of `attributes`; a weight is the Jaccard index of traits, rare ones counting more.
        ratings : mapping, optional
            Ratings by the id of the rater (of an item the user); a weight is the cosine with the ratings of a node,
            all less the means of their raters. Both kinds of weights are averaged.
        n : int

        Examples
        --------
        >>> genres = pd.DataFrame({"genre": ["War"] * 6 + ["Comedy"] * 6})
        >>> graph = SimilarityGraph(np.kron(np.eye(2), np.ones((6, 6))), range(12), "item", attributes=genres)
        >>> graph.place({"genre": "Comedy"}).text
        'Nearest to 6, 7, 8; community Comedy (100%).'
        """
        return questions.place(self, features, ratings, check_integer("n", n, minimum=1))

    # ---------------------------------------------------------------- to a page

    def to_html(self, path: str | os.PathLike[str], *, title: str | None = None, max_nodes: int = 10_000) -> Path:
        """Write the graph as one page to explore in a browser, without a network.

        For more than `max_nodes` nodes the page shows the communities, and the neighbourhoods of single nodes.
        """
        return writer("html")(path, self, title=title, max_nodes=max_nodes)

    # ---------------------------------------------------------------- internals

    def _with(self, adjacency: sp.csr_array) -> Self:
        return self._of(self._nodes, adjacency, self.support)

    def _of_rows(self, rows: np.ndarray) -> Self:
        support = None if self.support is None else self.support[rows][:, rows]
        return self._of(self._nodes.take(rows), self._adjacency[rows][:, rows], support)

    def _of(self, nodes: Nodes, adjacency: sp.csr_array, support: sp.csr_array | None) -> Self:
        more = {"attributes": nodes.attributes, "label": nodes.label, "support": support, "ratings": self.ratings}
        return type(self)(adjacency, nodes.ids, nodes.kind, **more)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)
