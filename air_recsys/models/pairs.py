"""Pairs of a user and an item by their ids, and the scores of those that hold an unknown one."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.ids import IdIndex
from air_recsys.models.state import FittedState
from air_recsys.validation import check_choice


def pair_indices(state: FittedState, user_ids: Any, item_ids: Any, unknown: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of both sides of each pair, -1 for an unknown id; see `Recommender.predict`."""
    check_choice("unknown", unknown, ("mean", "error"))
    users, items = _lookup(state.data.users, user_ids, unknown), _lookup(state.data.items, item_ids, unknown)
    if users.size != items.size and 1 not in (users.size, items.size):
        raise DataError(f"expected as many users as items, found {users.size} and {items.size}")
    users, items = np.broadcast_arrays(users, items)
    return users, items


def times_of(state: FittedState, timestamps: Any, size: int) -> np.ndarray | None:
    """Return the times of so many pairs, None where none are given; `DataError` where the model cannot read them."""
    if timestamps is None:
        return None
    if state.drift is None:
        raise DataError("expected no timestamps, as the model was trained without time='drift', found some")
    return state.drift.checked(timestamps, size)


def fallback_scores(state: FittedState, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Return the mean training rating of the side that is known, of all ratings where neither is."""
    statistics = state.statistics
    by_item = np.where(items >= 0, statistics.item_means[items], statistics.mean)
    return np.where(users >= 0, statistics.user_means[users], by_item)


def _lookup(index: IdIndex, ids: Any, unknown: str) -> np.ndarray:
    places = index.lookup(ids)
    if unknown == "error" and (places < 0).any():
        queried = np.atleast_1d(np.asarray(ids, dtype=object))
        raise UnknownIdError(index.kind, queried[places < 0].tolist(), "unknown='mean' predicts a mean instead")
    return places
