"""Pairs of a user and an item by their ids, and the scores of those that hold an unknown one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import pair_columns
from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import IdIndex, asked_ids
from air_recsys.data.interactions import Interactions, is_matrix
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError, quoted
from air_recsys.metrics import ranking_report
from air_recsys.models.rows import SIDES
from air_recsys.models.state import FittedState
from air_recsys.storage.validation import check_choice

Unknown = Literal["warn", "mean", "error"]
UNKNOWN: tuple[Unknown, ...] = ("warn", "mean", "error")
_SOURCES = pd.Series(["model", "user mean", "item mean", "mean"]).array


def pair_indices(
    state: FittedState, user_ids: np.ndarray, item_ids: np.ndarray, unknown: Unknown, stacklevel: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """The indices of both sides of each pair, -1 for an unknown id; see `Recommender.predict`."""
    check_choice("unknown", unknown, UNKNOWN)
    if unknown != "mean":
        state.data.users.check_type(user_ids, all_of_them=True)
        state.data.items.check_type(item_ids, all_of_them=True)
    users, items = state.data.users.lookup(user_ids), state.data.items.lookup(item_ids)
    if users.size != items.size and 1 not in (users.size, items.size):
        raise DataError(f"expected as many users as items, found {users.size} and {items.size}")
    told = []
    if unknown != "mean":
        sides = (state.data.users, user_ids, users), (state.data.items, item_ids, items)
        told = [_told(*side, unknown) for side in sides if (side[2] < 0).any()]
    users, items = np.broadcast_arrays(users, items)
    if told and users.size:
        n_unknown = np.count_nonzero((users < 0) | (items < 0))
        found = f"{n_unknown} of {users.size} pairs get a mean rating, as {' and '.join(told)}"
        warnings.warn(f"{found}; predict_table says which", DataWarning, stacklevel=stacklevel)
    return users, items


def prediction_table(
    user_ids: np.ndarray, item_ids: np.ndarray, pairs: tuple[np.ndarray, np.ndarray], **columns: np.ndarray
) -> pd.DataFrame:
    """The table of `Recommender.predict_table`: ids, columns of values, and where each score comes from."""
    users, items = pairs
    of_pairs = {side: np.broadcast_to(own, users.shape) for side, own in (("user", user_ids), ("item", item_ids))}
    # A list finds its own type.
    named = {side: own.tolist() if own.dtype == object else own for side, own in of_pairs.items()}
    source = np.where(users >= 0, np.where(items >= 0, 0, 1), np.where(items >= 0, 2, 3))
    return pd.DataFrame(named | columns | {"source": _SOURCES.take(source)})


def times_of(state: FittedState, timestamps: Any, size: int) -> np.ndarray | None:
    """The times of so many pairs, None where none are given; `DataError` where the model cannot read them."""
    if timestamps is None:
        return None
    if state.drift is None:
        raise DataError("expected no timestamps, as the model was trained without time='drift', found some")
    return state.drift.checked(timestamps, size)


def fallback_scores(state: FittedState, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The mean training rating of the side that is known, of all ratings where neither is."""
    of_users, of_items = (state.of_side(side).statistics for side in SIDES)
    by_item = np.where(items >= 0, of_items.item_means[items], of_items.mean)
    return np.where(users >= 0, of_users.user_means[users], by_item)


def asked_pairs(user_ids: Any, item_ids: Any) -> tuple[np.ndarray, np.ndarray]:
    """The ids of both sides of the pairs that a caller asks for, or those of a table that stands for both."""
    if item_ids is None:
        table = as_pandas(user_ids)
        if not isinstance(table, pd.DataFrame):
            found = type(table).__name__
            raise DataError(f"expected users and items, or a table with the columns user and item, found one {found}")
        user_ids, item_ids = (table[name] for name in pair_columns(table))
    return asked_ids(user_ids, "user"), asked_ids(item_ids, "item")


def _told(index: IdIndex, ids: np.ndarray, places: np.ndarray, unknown: Unknown) -> str:
    """The text of a warning of the unknown ids of a side; `UnknownIdError` where these are an error."""
    absent = places < 0
    found = list(dict.fromkeys(ids[absent].tolist()))
    near = ", ".join(quoted(each) for each in index.nearest(found[0]))
    if unknown == "error" or absent.all():
        known = f"the nearest known are {near}" if near else f"known are such as {quoted(index.ids.tolist()[0])}"
        raise UnknownIdError(
            index.kind, found, f"{known}; unknown='mean' (in the shell --unknown mean) predicts a mean instead"
        )
    nearest = f", nearest known: {near}" if near else ""
    return f"{len(found)} {index.kind} id(s) are unknown ({quoted(found[0])}{nearest})"


LIST_LENGTH = 10


def pairs_of(
    state: FittedState, test: Interactions, given: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The positions of the pairs of other data, read from `given`, -1 for unknown ids, and times that the model reads.

    Examples
    --------
    >>> from air_recsys import GlobalMean
    >>> state = GlobalMean().fit([[1.0, 2.0]])._fitted()
    >>> pairs_of(state, Interactions.from_dense([[5.0, np.nan, 4.0]]))
    (array([0, 0]), array([ 0, -1]), None)
    """
    for own, ids in ((state.data.users, test.user_ids), (state.data.items, test.item_ids)):
        if is_matrix(given) and not np.array_equal(own.ids, ids):
            raise DataError(
                f"expected a matrix over the {len(own)} {own.kind}s of the model in their order, found {ids.size}: "
                "cross-validation needs a table with one rating per row, which has ids"
            )
        own.check_type(ids, all_of_them=True)
    users = state.data.users.lookup(test.user_ids)[test.user_index]
    items = state.data.items.lookup(test.item_ids)[test.item_index]
    if state.drift is None or test.timestamps is None:
        return users, items, None
    return users, items, state.drift.checked(test.timestamps, users.size)


def list_ndcg(
    state: FittedState, test: Interactions, score_block: Callable[[np.ndarray], np.ndarray], given: Any
) -> float:
    """The mean NDCG of lists of 10 unseen items, over the users with a known and unseen item in other data.

    Values do not count. `score_block` takes positions of users, (b,), and returns their scores of all items.
    """
    users, items, _ = pairs_of(state, test, given)
    known = (users >= 0) & (items >= 0)
    users, items = users[known], items[known]
    new = ~np.isin(users * state.data.n_items + items, state.data.pair_index)
    if not new.any():
        raise DataError(
            f"expected items that users of the model have not taken before, found none in {test.n_ratings} pairs"
        )
    shape = state.data.n_users, state.data.n_items
    relevant = sp.csr_array((np.ones(np.count_nonzero(new)), (users[new], items[new])), shape=shape)
    length = min(LIST_LENGTH, state.data.n_items)
    return float(ranking_report(score_block, relevant, state.statistics.seen, k=length)["ndcg_at_k"])
