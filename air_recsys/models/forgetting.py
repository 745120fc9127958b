"""What is left of a model from which users, items and pairs were removed: see `Recommender.forget`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.columns import pair_columns
from air_recsys.data.frames import as_pandas
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, quoted
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.learned import Factors
from air_recsys.models.state import FittedState


class Left(NamedTuple):
    """What is left of the data of a model."""

    data: Interactions
    users: np.ndarray  # the positions that they had, ascending
    items: np.ndarray
    lost_by_users: np.ndarray  # positions in `data` of those that lost ratings
    lost_by_items: np.ndarray


def kept(state: FittedState, left: Left) -> FittedState:
    """A state of what is left, its rows as they were."""
    rows = {"user": left.users, "item": left.items}
    factors = [array[rows[side]] for array, side in zip(state.factors.arrays(), ["user", "item"] * 2, strict=True)]
    snapshots = {
        epoch: each._replace(user_graph=_of(each.user_graph, left.users), item_graph=_of(each.item_graph, left.items))
        for epoch, each in (state.ending.snapshots or {}).items()
    }
    return replace(
        state,
        data=left.data,
        factors=Factors._make([*factors, state.factors.mean]),
        user_graph=_of(state.user_graph, left.users),
        item_graph=_of(state.item_graph, left.items),
        equations=None if state.equations is None else state.equations.of_rows(left.data, left.users, left.items),
        ending=state.ending._replace(snapshots=snapshots),
        scale=state.rating_scale,
        named={
            side: graph.subgraph(graph.ids[rows[side]]).with_ratings(left.data) for side, graph in state.named.items()
        },
        spread=None,  # whose hidden ratings are of all users
        n_new_items=int(np.count_nonzero(left.items >= state.data.n_items - state.n_new_items)),
    )


def _of(graph: SimilarityGraph | None, rows: np.ndarray) -> SimilarityGraph | None:
    """A graph over some rows of a model, of which it may have the first alone."""
    return None if graph is None else graph.subgraph(graph.ids[rows[rows < len(graph)]])


def left_of(data: Interactions, users: Any, items: Any, pairs: Any, words: tuple[str, str] = ("user", "item")) -> Left:
    """What is left of some data; `DataError` where nothing is to be removed, or nothing left."""
    mask, asked = np.ones(data.n_ratings, dtype=bool), 0
    if pairs is not None:
        places = _places_of(data, pairs, words)
        mask, asked = ~np.isin(data.pair_index, places), places.size
    stay = []
    for index, ids, of_ratings in ((data.users, users, data.user_index), (data.items, items, data.item_index)):
        gone = np.empty(0, dtype=np.int64) if ids is None else index.places(ids)
        stays = ~np.isin(np.arange(len(index)), gone)
        mask &= stays[of_ratings]
        stay.append(np.flatnonzero(stays))
        asked += gone.size
    if not asked:
        raise DataError("expected users, items or pairs to forget, found none")
    if not mask.any():
        raise DataError("expected ratings that are left, found none: nothing would be left to know")
    lost = (np.unique(index[~mask]) for index in (data.user_index, data.item_index))
    touched = [np.flatnonzero(np.isin(rows, each)) for rows, each in zip(stay, lost, strict=True)]
    return Left(data.select(mask).over(*stay), *stay, *touched)


def _places_of(data: Interactions, pairs: Any, words: tuple[str, str]) -> np.ndarray:
    """The places of pairs in the matrix, as `Interactions.pair_index` counts them."""
    table = as_pandas(pairs.to_frame() if isinstance(pairs, Interactions) else pairs)
    if not isinstance(table, pd.DataFrame):
        rows = list(table) if isinstance(table, Iterable) else [table]
        if not all(isinstance(row, tuple | list | np.ndarray) and len(row) == 2 for row in rows):
            raise DataError(f"expected pairs of a user and an item, found {quoted(rows)}")
        table = pd.DataFrame(rows, columns=["user", "item"])
    user, item = pair_columns(table, words)
    users, items = data.users.places(table[user]), data.items.places(table[item])
    places = users * np.int64(data.n_items) + items
    absent = np.flatnonzero(~np.isin(places, data.pair_index))
    if absent.size:
        first = " and ".join(quoted(table[side].tolist()[absent[0]]) for side in (user, item))
        raise DataError(f"expected pairs that the model has, found {absent.size} that it lacks, the first of {first}")
    return places
