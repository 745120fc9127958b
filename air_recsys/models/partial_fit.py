"""New ratings for a fitted model, by fold-in instead of training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph
from air_recsys.ids import IdIndex
from air_recsys.interactions import Interactions
from air_recsys.models.fold_in import RowSolver, Ties, stored_rows
from air_recsys.models.posterior_rows import grown

if TYPE_CHECKING:
    from air_recsys.models.air import AIR


def update(model: AIR, new: Interactions) -> None:
    """Take new ratings into a model: the steps of `AIR.partial_fit`."""
    merged = merge(model.interactions_, new)
    users = np.unique(merged.users.lookup(new.user_ids)[new.user_index])
    n_known = model.interactions_.n_items
    draft = _grown(model, merged)
    _solve(draft, model, "user", users, n_known)
    if merged.n_items > n_known:
        _solve(draft, model, "item", np.arange(n_known, merged.n_items), merged.n_users)
        _solve(draft, model, "user", users, merged.n_items)
    model.__dict__ = draft.__dict__


def merge(before: Interactions, new: Interactions) -> Interactions:
    """Return all ratings, the new ones first in rights; known ids keep their indices."""
    user_ids, item_ids = _union(before.users, new.users), _union(before.items, new.items)
    users, items = IdIndex(user_ids, "user"), IdIndex(item_ids, "item")
    return Interactions(
        np.concatenate([before.user_index, users.lookup(new.user_ids)[new.user_index]]),
        np.concatenate([before.item_index, items.lookup(new.item_ids)[new.item_index]]),
        np.concatenate([before.ratings, new.ratings]),
        user_ids,
        item_ids,
        weights=_weights(before, new),
        duplicates="last",
        allow_negative=True,
    )


def _union(known: IdIndex, new: IdIndex) -> list:
    return [*known.ids.tolist(), *new.ids[known.lookup(new.ids) < 0].tolist()]


def _weights(before: Interactions, new: Interactions) -> np.ndarray | None:
    if before.weights is None and new.weights is None:
        return None
    return np.concatenate(
        [np.ones(data.n_ratings) if data.weights is None else data.weights for data in (before, new)]
    )


def _grown(model: AIR, merged: Interactions) -> AIR:
    """Return a copy of the model with room for all users and items."""
    draft = object.__new__(type(model))
    draft.__dict__ = {**model.__dict__}
    for name in ("_statistics", "_solvers", "user_similarities_", "item_similarities_"):
        draft.__dict__.pop(name, None)
    draft.interactions_ = merged
    if model._spread is not None:
        draft._spread = grown(model._spread, merged.n_users, merged.n_items)
    for kind, ids in (("user", merged.user_ids), ("item", merged.item_ids)):
        for name in (f"{kind}_factors_", f"{kind}_biases_"):
            array = getattr(model, name)
            room = np.zeros((len(ids) - len(array), *array.shape[1:]), array.dtype)
            setattr(draft, name, np.concatenate([array, room]))
        graph = getattr(model, f"{kind}_graph_")
        if graph is not None and len(graph) < len(ids):
            adjacency = graph.to_scipy().copy()
            adjacency.resize((len(ids), len(ids)))
            setattr(draft, f"{kind}_graph_", SimilarityGraph(adjacency, ids, kind))
    return draft


def _solve(draft: AIR, model: AIR, side: Literal["user", "item"], rows: np.ndarray, n_others: int) -> None:
    """Solve rows of a side of the draft from their ratings of the first `n_others` of the other side."""
    ratings, weights = _rows_of(draft.interactions_, side, rows, n_others)
    if draft._spread is None:
        ties = _ties(draft, model, rows) if side == "user" else None
        found = _solver(draft, model, side).solve(ratings, weights=weights, ties=ties)
    else:
        found, draft._spread = draft._spread.row_solver(draft, side).take_in(rows, ratings, weights)
    getattr(draft, f"{side}_factors_")[rows] = found.factors
    getattr(draft, f"{side}_biases_")[rows] = found.biases


def _solver(draft: AIR, model: AIR, side: Literal["user", "item"]) -> RowSolver:
    """Return the model's solver against the other side of the draft, which has grown and moved."""
    other, solver = "item" if side == "user" else "user", model.row_solver(side)
    offsets = getattr(draft, f"{other}_biases_") + draft.global_mean_
    others = getattr(draft, f"{other}_factors_")
    return RowSolver(others, offsets, solver.penalty, solver.bias_decay, solver.unobserved_weight)


def _rows_of(
    data: Interactions, side: Literal["user", "item"], rows: np.ndarray, n_others: int
) -> tuple[sp.csr_array, np.ndarray | None]:
    """Return the ratings of some rows (ascending) of a side with the first `n_others` of the other, and weights."""
    own, other = (data.user_index, data.item_index) if side == "user" else (data.item_index, data.user_index)
    chosen = np.isin(own, rows) & (other < n_others)
    pairs = np.searchsorted(rows, own[chosen]), other[chosen]
    weights = None if data.weights is None else data.weights[chosen]
    return stored_rows(pairs, data.ratings[chosen], weights, (rows.size, n_others))


def _ties(draft: AIR, model: AIR, users: np.ndarray) -> Ties | None:
    if draft.user_graph_ is None:
        return None
    edges = draft.user_graph_.to_scipy()[users]
    return Ties(model._energy_weight("user"), edges.sum(axis=1), edges @ draft.user_factors_)
