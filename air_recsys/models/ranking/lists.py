"""Lists of items for users by their ids: the table of `recommend`, whatever finds the best items."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.models.carried import CarriedResiduals
from air_recsys.models.ranking.allowed import Allowed, among
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.models.ranking.top_items import as_arrays, top_items_of
from air_recsys.models.ratings import Clip
from air_recsys.models.state import FittedState
from air_recsys.storage.lazy import torch
from air_recsys.storage.threads import in_workers

_CARRIED = 1_000_000  # scores that the item graph adds to, held at a time
_SOURCES = pd.Series(["popular", "model"]).array
# Users, and their places among those asked for, to items and products + item biases, (b, n).
FindBest = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
FindPopular = Callable[[np.ndarray | None], "Popular"]  # of the positions of items that are allowed; None for all


class Popular(NamedTuple):
    """The list of a user of whom nothing is known."""

    items: np.ndarray  # (n,), best first; -1 where no item is left
    scores: np.ndarray  # (n,)


def recommend_with(
    best: FindBest,
    state: FittedState,
    asked: np.ndarray,
    n: int,
    *,
    allowed: Allowed,
    clips: Clip,
    popular: FindPopular,
    served: np.ndarray | None = None,
    stacklevel: int = 3,
) -> pd.DataFrame:
    """The table of `Recommender.recommend` from a search for the best items of known users.

    n is at most the number of items; `popular` returns a list of unknown users, of n places, where there are any. With
    `served`, (n_users,) of bool, known users at False get that list too.
    """
    if asked.dtype == object and (missing := np.flatnonzero(pd.isna(asked))).size:
        raise DataError(f"expected user ids, found {missing.size} missing, the first at position {missing[0]}")
    state.data.users.check_type(asked)
    if (unknown := state.data.users.lookup(asked) < 0).any():
        found, known = quoted(asked[unknown].item(0)), quoted(state.data.user_ids.item(0))
        told = f"{np.count_nonzero(unknown)} of {asked.size} users are unknown, such as {found} (known are such as "
        warnings.warn(f"{told}{known}): what is popular is listed", DataWarning, stacklevel=stacklevel)
    block = allowed.n_together(n)
    starts = range(0, max(1, asked.size), block)
    lists = partial(popular_lists, popular, allowed)
    blocks = (np.arange(start, min(start + block, asked.size)) for start in starts)
    frames = [_recommend_block(best, state, asked[rows], rows, lists, clips, served) for rows in blocks]
    if len(frames) == 1:
        return frames[0]
    # An empty column has no type of its own and would spoil that of the others.
    return pd.concat([frame for frame in frames if not frame.empty] or frames[:1], ignore_index=True)


def popular_lists(popular: FindPopular, allowed: Allowed, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Items and scores, (b, n) each, of users of whom nothing is known, by their places among those asked for."""
    if allowed.has_own:
        found = [popular(allowed.of(row)) for row in rows]
        return np.array([each.items for each in found]), np.array([each.scores for each in found])
    items, scores = (np.tile(each, (rows.size, 1)) for each in popular(allowed.common))
    return items, scores


def best_items_of(
    state: FittedState,
    users: np.ndarray,
    rows: np.ndarray,
    *,
    n: int,
    exclude_seen: bool,
    device: torch.device | None,
    allowed: Allowed,
) -> tuple[np.ndarray, np.ndarray]:
    """The n best items of some users, of those allowed, and scores without user bias and mean, (b, n) each."""
    if not allowed.n_left:
        return np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
    left_out = allowed.left_out(rows, state.statistics.seen[users] if exclude_seen else None)
    common = allowed.common
    if common is not None and left_out is not None:
        left_out = sp.csr_array(left_out[:, common])
    own, catalogue = state.factors.user_factors[users], catalogue_of(state, device, common)
    if state.carried is None:
        found, scores = top_items_of(catalogue, own, n, left_out)
        return among(common, found), scores
    carried, step = state.carried, max(1, _CARRIED // state.data.n_items)
    found, scores = np.empty((users.size, n), np.int64), np.empty((users.size, n))
    if users.size > step and isinstance(carried, CarriedResiduals):
        carried.expect(users.size)  # before threads ask for them

    def rank(start: int) -> None:
        block = slice(start, start + step)
        added = carried.rows(users[block])
        added = added if common is None else np.ascontiguousarray(added[:, common])
        hidden = None if left_out is None else left_out[block]
        found[block], scores[block] = top_items_of(catalogue, own[block], n, hidden, added=added)

    in_workers(rank, range(0, users.size, step), number=0 if device is None else 1)
    return among(common, found), scores


def list_scores(state: FittedState, users: np.ndarray, products: np.ndarray, clips: Clip) -> np.ndarray:
    """The scores of the lists of some users from their products + item biases, (b, n)."""
    offsets = state.factors.user_biases[users, None] + state.factors.mean
    return state.limited(products.astype(np.float64) + offsets, clips)


def catalogue_of(
    state: FittedState, device: torch.device | None = None, allowed: np.ndarray | None = None
) -> Catalogue:
    """The items of a model to be ranked; all of them, on a CPU, are kept, as a service asks often."""

    def make(some: Any = slice(None)) -> Catalogue:
        factors = state.factors
        _, items, offsets = as_arrays(factors.user_factors[:0], factors.item_factors[some], factors.item_biases[some])
        return Catalogue(items, offsets, device)

    if allowed is not None:
        return make(allowed)
    return state.of_side("item").once("catalogue", make) if device is None else make()


def best_rated(state: FittedState, n: int, allowed: np.ndarray | None = None) -> Popular:
    """The n items with the highest damped mean rating, of those that are allowed; of equal ones the most rated.

    All likes are equal, so there it is the most liked ones.
    """
    statistics = state.of_side("item").statistics
    return first_of(statistics.damped_item_means, statistics.item_counts, n, allowed)


def most_liked(state: FittedState, n: int, allowed: np.ndarray | None = None) -> Popular:
    """The n items that most users have, of those that are allowed, and the share of the users who have each."""
    shares = shares_of_users(state)
    return first_of(shares, shares, n, allowed)


def shares_of_users(state: FittedState) -> np.ndarray:
    """The share of the trained users who have each item, (n_items,)."""
    known = state.of_side("item")
    return known.statistics.item_counts / known.data.n_users


def first_of(scores: np.ndarray, counts: np.ndarray, n: int, allowed: np.ndarray | None) -> Popular:
    """The n items with the highest scores, of those that are allowed; of equal ones the highest count first."""
    among_them = np.arange(scores.size) if allowed is None else allowed
    order = among_them[np.lexsort((-counts[among_them], -scores[among_them]))][:n]
    items = np.pad(order, (0, n - order.size), constant_values=-1)
    return Popular(items, scores[items])


def _recommend_block(
    best: FindBest,
    state: FittedState,
    ids: np.ndarray,
    rows: np.ndarray,
    unknown: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    clips: Clip,
    served: np.ndarray | None,
) -> pd.DataFrame:
    users = state.data.users.lookup(ids)
    known = users >= 0
    if served is not None:
        known &= served[users]
    found, products = best(users[known], rows[known])
    of_known = list_scores(state, users[known], products, clips)
    if known.all():
        return recommendation_frame(ids, state.data.item_ids, found, of_known, known)
    items, scores = np.empty((users.size, found.shape[1]), np.int64), np.empty((users.size, found.shape[1]))
    items[known], scores[known] = found, of_known
    items[~known], scores[~known] = unknown(rows[~known])
    return recommendation_frame(ids, state.data.item_ids, items, scores, known)


def recommendation_frame(
    user_ids: np.ndarray, item_ids: np.ndarray, items: np.ndarray, scores: np.ndarray, known: np.ndarray
) -> pd.DataFrame:
    """The table of `Recommender.recommend` for lists of items; places with -1 are left out.

    `known` says whose lists are the model's, and not what is popular.
    """
    rows, ranks = np.nonzero(items >= 0)
    users = user_ids[rows]
    return pd.DataFrame(
        {
            "user": users.tolist() if users.dtype == object else users,  # a list finds its own type
            "item": item_ids[items[rows, ranks]],
            "score": scores[rows, ranks],
            "rank": ranks + 1,
            "source": _SOURCES.take(known[rows].astype(np.intp)),
        }
    )
