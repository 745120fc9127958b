"""New ratings for a fitted model, by fold-in instead of training."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.data.described.sides import as_given, ids_of
from air_recsys.data.doubts import doubts_about_new
from air_recsys.data.features import Features, as_table
from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions, Kinds
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.given import later_of, with_later
from air_recsys.models.learned import Factors
from air_recsys.models.new_rows import check_finite, check_names, check_on_scale, checked_features, stored_rows
from air_recsys.models.rows import Side
from air_recsys.models.state import FittedState

_STEPS = 8  # of Newton, of rows with limits
OLDER = "{} new ratings are older than the known ones of their pairs, which stay"


Both = tuple[Any, Any]  # of users and of items
_NEITHER: Both = (None, None)


def updated(
    state: FittedState, new: Interactions, features: Both = _NEITHER, similarities: Both = _NEITHER
) -> FittedState:
    """A state with new ratings taken in: the steps of `AIR.partial_fit`."""
    state.row_solver("user")  # refuses what cannot be folded in
    check_on_scale(state, new.ratings)
    if state.drift is not None:
        if new.timestamps is None:
            raise DataError("expected new ratings with timestamps, as in the training, found none")
        state.drift.checked(new.timestamps, new.n_ratings)
    merged, older = merge(state.data, new, features, similarities)
    if n_older := np.count_nonzero(older):
        warnings.warn(OLDER.format(n_older), DataWarning, stacklevel=3)
    rated, n_known = merged.users.lookup(new.user_ids)[new.user_index[~older]], state.data.n_items
    users = np.union1d(rated, np.arange(state.data.n_users, merged.n_users))
    return solved_in_turn(state, _grown(state, merged), users, np.arange(n_known, merged.n_items), n_known)


def solved_in_turn(
    before: FittedState, draft: FittedState, users: np.ndarray, items: np.ndarray, n_known: int
) -> FittedState:
    """Solve users of a draft on the first `n_known` items, then items that came later, then those users once more."""
    n_users, n_items = draft.data.n_users, draft.data.n_items
    passes: list[tuple[Side, np.ndarray, int]] = [("user", users, n_items)]
    if items.size:
        passes = [("user", users, n_known), ("item", items, n_users), *passes]
    for side, rows, n_others in passes:
        draft = _solved(before, draft, side, rows, n_others) if rows.size else draft
    return draft


def check_rows(state: FittedState, matrix: Interactions) -> None:
    """Raise `DataError` for a matrix that does not begin with the ids of the model: its ids are 0, 1, ..."""
    for own, ids in ((state.data.users, matrix.user_ids), (state.data.items, matrix.item_ids)):
        if not np.array_equal(own.ids, ids[: len(own)]):
            raise DataError(
                f"expected a matrix that begins with the {len(own)} {own.kind}s of the model, found {ids.size}, with "
                "their numbers as ids: Interactions.from_csr(matrix, user_ids, item_ids) names them"
            )


def of_new_rows(state: FittedState, data: Interactions, side: Side) -> FittedState:
    """A state of new rows of a side alone, solved from `data`, with all else held fixed."""
    state.row_solver(side)  # refuses what cannot be folded in
    check_on_scale(state, data.ratings)
    if state.drift is not None and data.timestamps is not None:
        state.drift.checked(data.timestamps, data.n_ratings)
    assert state.equations is not None
    n_rows, n_others = (data.n_users, data.n_items) if side == "user" else (data.n_items, data.n_users)
    factors, biases = (_padded(rows[:0], n_rows) for rows in state.factors.of(side))
    changed: dict[str, Any] = {
        f"{side}_graph": None,
        "data": data,
        "factors": state.factors._replace(**{f"{side}_factors": factors, f"{side}_biases": biases}),
        "equations": state.equations.of_new_rows(side, data.n_users, data.n_items),
        "ending": state.ending._replace(snapshots=None),  # which are of other rows
        "named": {},
        "trained": state,
    }
    return _solved(state, replace(state, **changed), side, np.arange(n_rows), n_others)


def with_unseen(state: FittedState) -> FittedState:
    """A state in which users and items without ratings are what their features say, where these are known.

    An objective has trained them already, by their edges.
    """
    if state.equations is None or not state.equations.sees_pattern:
        return state
    sides: tuple[tuple[Side, np.ndarray], ...] = ("user", state.data.user_index), ("item", state.data.item_index)
    for side, index in sides:
        if state.features(side) is not None:
            unseen = np.setdiff1d(np.arange(len(state.index(side))), index)
            n_others = state.data.n_items if side == "user" else state.data.n_users
            state = _solved(state, state, side, unseen, n_others) if unseen.size else state
    return state


def merge(
    before: Interactions, new: Interactions, features: Both = _NEITHER, similarities: Both = _NEITHER
) -> tuple[Interactions, np.ndarray]:
    """All ratings, of a pair the latest, and what is known of new ids; and which new ones are older and not taken."""
    if any(new.n_features):
        raise DataError("expected features as tables beside the new ratings, found interactions that have some")
    sides = (before.users, before.items, new.user_ids), (before.items, before.users, new.item_ids)
    if all((own.lookup(ids) < 0).all() and (other.lookup(ids) >= 0).all() for own, other, ids in sides):
        raise DataError("expected users and items, found known items as users and known users as items: exchange them")
    users, of_users = _joined(before.users, new.users, before.user_features, features[0], similarities[0])
    items, of_items = _joined(before.items, new.items, before.item_features, features[1], similarities[1])
    old, late = _again(before, new)
    taken = ~(older := are_older(before, new))
    stays: Any = slice(None)
    if taken[late].any():
        stays = np.ones(before.n_ratings, dtype=bool)
        stays[old[taken[late]]] = False
    times = None
    if before.timestamps is not None and new.timestamps is not None:
        times = np.concatenate([before.timestamps[stays], new.timestamps[taken]])
    has_weights = before.weights is not None or new.weights is not None
    relations = None
    if before.relations is not None or new.relations is not None:
        relations = np.concatenate([_relations(before)[stays], _relations(new)[taken]])
    merged = Interactions(
        np.concatenate([before.user_index[stays], users.lookup(new.user_ids)[new.user_index[taken]]]),
        np.concatenate([before.item_index[stays], items.lookup(new.item_ids)[new.item_index[taken]]]),
        np.concatenate([before._ratings[stays], new._ratings[taken]]),
        users,
        items,
        timestamps=times,
        weights=np.concatenate([_weights(before)[stays], _weights(new)[taken]]) if has_weights else None,
        relations=relations,
        duplicates=None,
        allow_negative=True,
        copy=False,
    )
    merged.user_features, merged.item_features = of_users, of_items
    merged.kinds = _merged_kinds(before, new, users, items)
    return merged, older


def _merged_kinds(before: Interactions, new: Interactions, users: IdIndex, items: IdIndex) -> Kinds | None:
    """Events of other kinds over the ids of all, of a pair and a kind the latest."""
    if before.kinds is None:
        if new.kinds is not None:
            raise DataError("expected new interactions of one kind, as in the training, found several")
        return None
    found = before.kinds.each(lambda each: each.among(users, items))
    if new.kinds is None:
        return found
    check_names(before.kinds, new.kinds)
    later = {name: merge(before.kinds.beside[name], each)[0] for name, each in new.kinds.beside.items()}
    return found._replace(beside={**found.beside, **later})


def _joined(
    trained: IdIndex, new: IdIndex, known: Features | None, table: Any, similarity: Any
) -> tuple[IdIndex, Features | None]:
    """All ids of a side, and what is known of them; the features of trained ones stay."""
    trained.check_type(new.ids)
    for _, doubt in doubts_about_new(trained, new.ids):
        warnings.warn(doubt, DataWarning, stacklevel=5)
    whole = trained.joined(new.ids)
    if similarity is not None:
        whole = whole.joined(ids_of(as_given(trained.kind, similarity)))
        whole = whole if table is None else whole.joined(as_table(table, trained.kind, np.empty(0)).index.to_numpy())
        later = later_of(known, trained, whole.ids[len(trained) :], similarity, stacklevel=6)
        assert known is not None
        known = with_later(known, later, len(whole) - len(trained))
    if table is None:
        return whole, None if known is None else known.grown(len(whole))
    rows = as_table(table, trained.kind, np.empty(0))
    whole = whole.joined(rows.index.to_numpy())
    features = checked_features(known, trained.kind).grown(len(whole))
    found, places = features.encoding.encode_new(rows, trained.kind), whole.lookup(rows.index.to_numpy())
    is_new = places >= len(trained)
    features.values[places[is_new]] = found[is_new]
    return whole, features


def are_older(before: Interactions, new: Interactions) -> np.ndarray:
    """Which new ratings are older than the known one of their pair."""
    older = np.zeros(new.n_ratings, dtype=bool)
    if before.timestamps is not None and new.timestamps is not None:
        old, late = _again(before, new)
        older[late] = new.timestamps[late] < before.timestamps[old]
    return older


def _again(before: Interactions, new: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the pairs that both have, in each."""
    users = before.users.lookup(new.user_ids)[new.user_index]
    items = before.items.lookup(new.item_ids)[new.item_index]
    both, asked = np.flatnonzero((users >= 0) & (items >= 0)), np.zeros(before.n_users, dtype=bool)
    asked[users[both]] = True
    theirs = np.flatnonzero(asked[before.user_index])
    known = before.user_index[theirs] * np.int64(before.n_items) + before.item_index[theirs]
    pairs = users[both] * before.n_items + items[both]
    _, old, late = np.intersect1d(known, pairs, assume_unique=True, return_indices=True)
    return theirs[old], both[late]


def _weights(data: Interactions) -> np.ndarray:
    return np.ones(data.n_ratings) if data.weights is None else data.weights


def _relations(data: Interactions) -> np.ndarray:
    return np.zeros(data.n_ratings, np.int8) if data.relations is None else data.relations


def _grown(state: FittedState, merged: Interactions) -> FittedState:
    """A copy of a state with rows for all users and items."""
    sizes, equations, factors = (merged.n_users, merged.n_items), state.equations, state.factors
    merged_ids = {"user": merged.user_ids, "item": merged.item_ids}
    return replace(
        state,
        data=merged,
        factors=Factors(
            _padded(factors.user_factors, sizes[0]),
            _padded(factors.item_factors, sizes[1]),
            _padded(factors.user_biases, sizes[0]),
            _padded(factors.item_biases, sizes[1]),
            factors.mean,
        ),
        user_graph=widened(state.user_graph, merged.user_ids),
        item_graph=widened(state.item_graph, merged.item_ids),
        equations=None if equations is None else equations.grown(*sizes),
        scale=state.rating_scale,
        named={
            side: graph.with_ratings(merged)
            for side, graph in state.named.items()
            if len(graph) == len(merged_ids[side])
        },
        n_new_items=state.n_new_items + merged.n_items - state.data.n_items,
    )


def _padded(array: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([array, np.zeros((size - len(array), *array.shape[1:]), array.dtype)])


def widened(graph: SimilarityGraph | None, ids: np.ndarray) -> SimilarityGraph | None:
    """A graph with all of the ids, of which its own are the first; the others are isolated."""
    if graph is None or len(graph) == len(ids):
        return graph
    adjacency = graph.to_scipy().copy()
    adjacency.resize((len(ids), len(ids)))
    return SimilarityGraph(adjacency, ids, graph.kind)


def _solved(before: FittedState, draft: FittedState, side: Side, rows: np.ndarray, n_others: int) -> FittedState:
    """Solve rows of a side of the draft from their ratings of the first `n_others` of the other side."""
    for _ in range(1 if draft.data.relations is None else _STEPS):
        draft = _solved_once(before, draft, side, rows, n_others)
    return draft


def _solved_once(before: FittedState, draft: FittedState, side: Side, rows: np.ndarray, n_others: int) -> FittedState:
    assert draft.equations is not None
    ratings, weights = _rows_of(draft, side, rows, n_others)
    folded, equations = draft.equations.take_in(before, draft, side, rows, ratings, weights)
    check_finite(folded)
    factors, biases = (array.copy() for array in draft.factors.of(side))
    factors[rows], biases[rows] = folded.factors, folded.biases
    changed = {f"{side}_factors": factors, f"{side}_biases": biases}
    return replace(draft, factors=draft.factors._replace(**changed), equations=equations)


def _rows_of(
    state: FittedState, side: Side, rows: np.ndarray, n_others: int
) -> tuple[sp.csr_array, np.ndarray | None]:
    """The ratings of some rows (ascending) of a side with the first `n_others` of the other, and weights."""
    data = state.data
    own, other = (data.user_index, data.item_index) if side == "user" else (data.item_index, data.user_index)
    chosen = np.isin(own, rows) & (other < n_others)
    pairs = np.searchsorted(rows, own[chosen]), other[chosen]
    ratings, weights = state.as_measured()
    weights = None if weights is None else weights[chosen]
    return stored_rows(pairs, ratings[chosen], weights, (rows.size, n_others))
