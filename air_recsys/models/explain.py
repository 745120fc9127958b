r"""`explain`: one score of a fitted model as an `Explanation`.

A score is :math:`\mu + b_u + c_i + p \cdot q`, and its last summand comes from rated items, similar users and the
choice of items; `objective_contributions` and `posterior_scores` of `air_recsys.models.engines` say how much of it
from which. Nothing here is causal: it says how the fitted equations add up, with all other users and all items held
fixed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import DataError, ParameterError, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.explanation import Contributions, Explanation
from air_recsys.models.pairs import times_of
from air_recsys.models.ratings import Clip, is_binary
from air_recsys.models.reasons import tastes
from air_recsys.models.rows import Side, Sources
from air_recsys.models.state import FittedState, RowEquations
from air_recsys.storage.validation import check_integer


def explain(
    state: FittedState,
    equations: RowEquations,
    pair: tuple[Hashable, Hashable],
    n: int,
    labels: Labels | None,
    *,
    clips: Clip,
    similarities: Similarities,
    timestamp: Any = None,
) -> Explanation:
    """The explanation of the score of a pair (user id, item id); see `AIR.explain`.

    `similarities` are the graphs of users and of items that `similar_users` and `similar_items` look at.
    """
    check_integer("n", n, minimum=1)
    user, item = state.data.users.place(pair[0]), state.data.items.place(pair[1])
    names, factors = check_labels(labels, state.data.item_ids), state.factors
    from_sources = equations.contributions(state, user, item)
    tables = Tables(state, from_sources.sources, n, names, clips, similarities)
    rated = from_sources.sources.rated
    rated_items, similar_users = np.split(from_sources.of_sources, [rated.size])
    of_users = np.zeros(0) if state.kernel_residuals is None else state.kernel_residuals.by_users(user, item)[0]
    offsets = factors.mean, float(factors.user_biases[user]), float(factors.item_biases[item])
    personal = float(factors.user_factors[user] @ factors.item_factors[item].astype(np.float64))
    place, times = (np.array([user]), np.array([item])), times_of(state, timestamp, 1)
    of_time = 0.0 if times is None or state.drift is None else float(state.drift.at(*place, times)[0][0])
    if times is not None and state.carried is not None:
        of_time += float((state.carried.scores(*place, times) - state.carried.scores(*place))[0])
    carried = np.zeros(rated.size) if state.carried is None else state.carried.shares(user, item, rated)
    own = (rated == item) & (state.alone != "item")  # places of new items are no places of rated ones
    own_rating = float(rated_items[own, 0].sum() + carried[own].sum())
    by_others = 0.0  # who rated similar items, or what users alike say of a user without ratings
    if state.carried is not None and (state.kernel_residuals is not None or not rated.size):
        by_others = state.carried.score(user, item) - float(carried.sum())
    unlimited = sum(offsets) + personal + of_time + float(carried.sum()) + by_others
    return Explanation(
        *pair,
        label_of(names, pair[1]),
        float(state.scores(*place, clips, times)[0]),
        *offsets,
        pattern=from_sources.pattern,
        near_items=tables.near_items(item, np.where(own, 0.0, carried)),
        user_features=tables.features("user", from_sources.of_user_features),
        own_rating=own_rating,
        rated_items=tables.items(item, rated_items, np.flatnonzero(~own)),
        similar_users=tables.alike(user, item) if of_users.any() else tables.users(user, item, similar_users),
        graph_edges=tables.edges(*from_sources.item_edges, from_sources.gains, from_sources.scores),
        item_features=tables.features("item", from_sources.of_item_features),
        time=of_time,
        remainder=personal - from_sources.explained + by_others - float(of_users.sum()),
        clipping=float(state.limited(np.array(unlimited), clips)) - unlimited,
    )


Labels = Mapping[Any, str] | pd.Series
Similarities = tuple[SimilarityGraph | None, SimilarityGraph | None]
SIMILARITY = "similarity"
"""The name of what a given graph says, among the features."""


class Tables:
    """Builds the tables for one user.

    They have at most n rows. `similarities` say how similar users are, and items: what `similar_users` and
    `similar_items` show.
    """

    def __init__(
        self,
        state: FittedState,
        sources: Sources,
        n: int,
        names: dict[Hashable, Any] | None,
        clips: Clip,
        similarities: Similarities,
    ) -> None:
        self._state, self._sources, self._n, self._names, self._clips = state, sources, n, names, clips
        self._similar_users, self._similar_items = similarities
        self._item_ids = state.origin.data.item_ids  # of sources: the rated items are trained ones

    def items(self, item: int, contributions: np.ndarray, others: np.ndarray) -> Contributions:
        """The rated items at the places `others`; `contributions` (N, 2) in all and by the item graph."""
        best = self._largest(contributions[others, 0])
        return _table(self._of_items(item, others[best]), contributions[others], best)

    def _of_items(self, item: int, best: np.ndarray) -> dict[str, Any]:
        """The columns of some rated items, by their positions among these."""
        own, rated = self._sources, self._sources.rated[best]
        binary = self._state.origin.once("binary", lambda: is_binary(self._state.origin.data.ratings))
        usual = float(np.median(own.ratings)) if best.size else 0.0
        known = None if self._state.alone == "item" else self._similar_items  # a new item has no edges
        return {
            "item": self._item_ids[rated],
            "label": self._named(rated),
            "rating": own.ratings[best],
            "deviation": own.deviations[best],
            "taste": tastes(own.ratings[best], own.deviations[best], usual, self._state.rating_scale, binary),
            "weight": _of_edges(known, np.full_like(rated, item), rated),
        }

    def near_items(self, item: int, contributions: np.ndarray) -> Contributions:
        """The rated items that the item graph ties to the item; `contributions` (N,), 0 for all others."""
        tied = np.flatnonzero(contributions)
        best = tied[self._largest(contributions[tied])]
        return replace(_table(self._of_items(item, best), contributions[:, None], best), count=tied.size)

    def users(self, user: int, item: int, contributions: np.ndarray) -> Contributions:
        """The similar users; `contributions` (K, 2) in all and by the item graph."""
        best = self._largest(contributions[:, 0])
        state, others = self._state.of_side("item"), self._sources.neighbors[best]  # which knows who rated the item
        data = state.data
        given = data.item_index == item
        columns = {
            "user": data.user_ids[others],
            "weight": _of_edges(self._similar_users, np.full_like(others, user), others),
            "rating": _ratings(data.user_index[given], data.ratings[given], others),
            "score": state.scores(others, np.full_like(others, item), self._clips),
        }
        return _table(columns, contributions, best)

    def alike(self, user: int, item: int) -> Contributions:
        """The users that are similar by what was given, and what they add as kernels say."""
        assert self._state.kernel_residuals is not None
        found, alike = self._state.kernel_residuals.by_users(user, item)
        others = np.flatnonzero(found)
        self._sources = self._sources._replace(neighbors=others)
        table = self.users(user, item, np.column_stack([found[others], np.zeros(others.size)]))
        places = self._state.origin.data.users.lookup(table.rows["user"].to_numpy())
        return replace(table, rows=table.rows.assign(weight=alike[places]))

    def edges(self, adjacency: sp.csr_array, strength: float, gains: np.ndarray, scores: np.ndarray) -> Contributions:
        """The edges of the item graph, from what each item counts and the user's score of each, (n_items,)."""
        edges = adjacency.tocoo()
        contributions = strength * edges.data * gains[edges.row] * scores[edges.col]
        best = self._largest(contributions)
        ends, starts = edges.row[best], edges.col[best]
        columns = {
            "item": self._item_ids[ends],
            "label": self._named(ends),
            "neighbor": self._item_ids[starts],
            "neighbor_label": self._named(starts),
            "weight": _of_edges(self._similar_items, ends, starts),
            "rating": _ratings(self._sources.rated, self._sources.ratings, starts),
        }
        return _table(columns, contributions[:, None], best)

    def features(self, side: Side, contributions: np.ndarray) -> Contributions:
        """The features of the user, or of the item, that say something of it; `contributions` (g + d,).

        What the places in a given graph say is one sum, under the name "similarity".
        """
        features = self._state.features(side)
        names = [] if features is None else features.names
        if len(contributions) > len(names):
            own, of_graph = np.split(contributions, [len(names)])
            names, contributions = [*names, SIMILARITY], np.append(own, of_graph.sum())
        names = np.array(names, dtype=object)
        best = self._largest(contributions)
        return _table({"feature": names[best]}, contributions[:, None], best)

    def _largest(self, contributions: np.ndarray) -> np.ndarray:
        """The positions of the n largest absolute values, largest first."""
        sizes = np.abs(contributions)
        chosen = np.argpartition(-sizes, self._n)[: self._n] if sizes.size > self._n else np.arange(sizes.size)
        return chosen[np.lexsort((chosen, -sizes[chosen]))]

    def _named(self, items: np.ndarray) -> list[str | None] | None:
        return None if self._names is None else [label_of(self._names, id) for id in self._item_ids[items].tolist()]


def check_labels(labels: Labels | None, item_ids: np.ndarray) -> dict[Hashable, Any] | None:
    """Labels as a dictionary, or raise an error unless they map ids to names, of one of the items at least."""
    if labels is not None and not isinstance(labels, (Mapping, pd.Series)):
        raise ParameterError(f"labels must be a mapping or a Series of item id to name, found {type(labels).__name__}")
    names = None if labels is None else dict(labels.items())
    if names and not any(id in names for id in item_ids.tolist()):
        found = f"such as {quoted(next(iter(names)))}, where items are such as {quoted(item_ids.item(0))}"
        raise DataError(f"expected titles of the model's items, found those of none of them, {found}")
    return names


def label_of(names: dict[Hashable, Any] | None, id: Hashable) -> str | None:
    """The name of an item; its id as text where it has none."""
    if names is None:
        return None
    name = names.get(id)
    return str(id) if name is None or pd.isna(name) else str(name)


def _of_edges(graph: SimilarityGraph | None, ends: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The weights of the edges between pairs of nodes, 0 where there is none."""
    if graph is None or not ends.size:
        return np.zeros(ends.size)
    return np.asarray(graph.to_scipy()[ends, starts], dtype=np.float64)


def _ratings(index: np.ndarray, ratings: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The ratings at the wanted indices, NaN where there is none."""
    return pd.Series(ratings, index=index).reindex(wanted).to_numpy()


def _table(columns: dict[str, Any], contributions: np.ndarray, best: np.ndarray) -> Contributions:
    """A table with the columns that there are; `contributions` has one column, or the part by the graph too."""
    columns |= dict(zip(("contribution", "by_graph"), contributions[best].T, strict=False))
    rows = pd.DataFrame({name: values for name, values in columns.items() if values is not None})
    return Contributions(rows, float(contributions[:, 0].sum()), len(contributions))
