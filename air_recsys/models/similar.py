"""Similar users and items: the graphs of a model as people see them, and the nearest of one node.

A learned graph has a unit of its own, such as the adjacency whose Laplacian is in the objective. What people see is
one number for a pair, its similarity in 0..1 (`air_recsys.graphs.pruning`), in `similar_items`, `item_graph_`, pages,
files and `explain`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.described.sides import Described
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError
from air_recsys.graphs import SimilarityGraph
from air_recsys.graphs.pruning import support_of_ties, to_similarities
from air_recsys.models.fitted import FittedModel
from air_recsys.models.ranking.catalogue import unit_rows
from air_recsys.models.ranking.ties import best_of
from air_recsys.models.rows import SIDES, Side
from air_recsys.models.state import FittedState, lock_of
from air_recsys.storage.validation import check_choice, check_integer


class KnowsSimilarities(FittedModel):
    """A model with graphs of users and items, as similarities that people see."""

    @property
    def user_graph_(self) -> SimilarityGraph | None:
        """The similarities of users, those of `similar_users`; see `item_graph_`."""
        return self.shown_graph(self._fitted(), "user")

    @user_graph_.setter
    def user_graph_(self, graph: SimilarityGraph) -> None:
        with lock_of(self):
            self._state = self._fitted().with_similarities("user", graph)

    @property
    def item_graph_(self) -> SimilarityGraph | None:
        """The similarities of items, those of `similar_items`; None where the model learns no graph of them.

        Weights are similarities: the learned weight as a share of that of the most similar pair, which has 1, with
        four digits. One with labels can take its place; it is no part of a model file.
        """
        return self.shown_graph(self._fitted(), "item")

    @item_graph_.setter
    def item_graph_(self, graph: SimilarityGraph) -> None:
        with lock_of(self):
            self._state = self._fitted().with_similarities("item", graph)

    @property
    def shares_(self) -> dict[str, dict[str, float]]:
        """The share of each kernel in the similarity of a side that was given as a mapping, by "user" and "item"."""
        return {side: dict(each.shares) for side, each in self._described.items()}

    @property
    def described_line_(self) -> str:
        """These shares in words, and what was changed of structures; "" without descriptions."""
        told = [f"{side}s: {each.told()}" for side, each in self._described.items()]
        return "; ".join([*told, *(each.line for each in self._described.values() if each.line)])

    @property
    def _described(self) -> dict[str, Described]:
        origin = self._fitted().origin
        found = {side: origin.features(side) for side in SIDES}
        return {
            side: each.described for side, each in found.items() if each is not None and each.described is not None
        }

    @property
    def user_adjacency_(self) -> sp.csr_array | None:
        """The learned graph of the users in its own unit, (n_users, n_users); see `item_adjacency_`."""
        return _adjacency(self.learned_graph(self._fitted().of_side("user"), "user"))

    @property
    def item_adjacency_(self) -> sp.csr_array | None:
        """The learned graph of the items in its own unit, (n_items, n_items): A of the Laplacian in the objective.

        None where the model learns none. `item_graph_` shows it as similarities.
        """
        return _adjacency(self.learned_graph(self._fitted().of_side("item"), "item"))

    def learned_graph(self, state: FittedState, side: Side) -> SimilarityGraph | None:
        """The graph that was learned, in its own unit."""
        return state.graph(side)

    def shown_graph(self, state: FittedState, side: Side) -> SimilarityGraph | None:
        """The learned graph as similarities."""
        known = state.of_side(side)
        learned = self.learned_graph(known, side)
        if learned is None:
            return None
        if side in state.named:
            return state.named[side]
        if known is not state:
            return self.shown_graph(known, side)
        return state.once(f"{side} similarities", lambda: self._shown(state, learned, side))

    def _shown(self, state: FittedState, learned: SimilarityGraph, side: Side) -> SimilarityGraph:
        return similarity_graph(self.shown_edges(state, learned, side), state.data, side)

    def shown_edges(self, state: FittedState, learned: SimilarityGraph, side: Side) -> sp.csr_array:
        """The edges that similarities are made of, in any unit."""
        return learned.to_scipy()

    def similarities_of(self, learned: SimilarityGraph) -> SimilarityGraph:
        """A learned graph, such as that of a snapshot, as similarities, as `item_graph_` shows the last one.

        Parameters
        ----------
        learned : SimilarityGraph
            Of kind "user" or "item", over the nodes of the model.
        """
        state = self._fitted()
        side: Side = check_choice("the kind of the graph", learned.kind, SIDES)
        if not np.array_equal(learned.ids, state.index(side).ids):
            raise DataError(f"expected a graph of the model's {len(state.index(side))} {side}s in their order")
        return self._shown(state, learned, side)

    def similar_users(self, user_id: Hashable, n: int = 10) -> pd.DataFrame:
        """The n users most similar to one: see `similar_items`."""
        return self._similar("user", user_id, n)

    def similar_items(self, item_id: Hashable, n: int = 10) -> pd.DataFrame:
        """The n items most similar to one: from `item_graph_`, else by the cosine of the factors.

        Parameters
        ----------
        item_id : hashable
        n : int
            Fewer rows come back for an item with fewer edges.

        Returns
        -------
        DataFrame
            The columns item and weight, the similarity. In the graph it is in 0..1: 1 is the most similar pair of all,
            and 0.8 is a pair that is 0.8 times as similar. `explain`, the explorer and files show the same number.
            Of equal ones, to four digits, the item with more common raters comes first, then the first in the training
            data. A cosine of factors, of models without a graph, is in -1..1.

        Raises
        ------
        UnknownIdError
            For an id that the model does not know.

        Examples
        --------
        >>> from air_recsys import AIR
        >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
        >>> ratings[0, 0] = np.nan
        >>> model = AIR.for_completion(n_epochs=300, random_state=0, device="cpu").fit(ratings)
        >>> sorted(model.similar_items(0, n=3)["item"])
        [1, 2, 3]
        >>> float(model.item_graph_.edge_list()["weight"].max())
        1.0
        """
        return self._similar("item", item_id, n)

    def _similar(self, side: Side, id: Any, n: int) -> pd.DataFrame:
        state = self._fitted()
        graph = self.shown_graph(state, side)
        if graph is not None:
            return graph.neighbors(id, n)
        check_integer("n", n, minimum=1)
        index, factors = state.index(side), state.factors.of(side)[0]
        row = index.place(id)
        units = unit_rows(factors)
        cosine = units @ units[row]
        cosine[row] = -np.inf  # itself is not among them
        best, weights = (each[0, : cosine.size - 1] for each in best_of(cosine[None], min(n, cosine.size), 1.0))
        if not units[row].any():  # of whom nothing is known
            best, weights = best[:0], weights[:0]
        return pd.DataFrame({side: index.ids[best], "weight": weights})


def similarity_graph(adjacency: sp.csr_array, data: Interactions, side: Side) -> SimilarityGraph:
    """A graph of users or of items as people see it: weights as similarities, with the support of equal ones.

    Examples
    --------
    >>> data = Interactions.from_dense([[5.0, 1.0, 2.0], [4.0, np.nan, 3.0]])
    >>> edges = sp.csr_array([[0, 0.3, 0.3], [0.3, 0, 0.1], [0.3, 0.1, 0]])
    >>> similarity_graph(edges, data, "item").neighbors(0).to_dict("list")  # two users rated both 0 and 2
    {'item': [2, 1], 'weight': [1.0, 1.0]}
    """
    shown, ratings = to_similarities(adjacency), data.to_csr()
    rows = ratings if side == "user" else sp.csr_array(ratings.T)
    ids = data.user_ids if side == "user" else data.item_ids
    return SimilarityGraph(shown, ids, side, support=support_of_ties(shown, rows), ratings=data)


def _adjacency(graph: SimilarityGraph | None) -> sp.csr_array | None:
    return None if graph is None else graph.to_scipy()
