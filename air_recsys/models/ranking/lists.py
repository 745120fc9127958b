"""Lists of items for users by their ids: the table of `recommend`, whatever finds the best items."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from air_recsys.data.ids import IdIndex, asked_ids
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.models.ranking.top_items import as_arrays, top_items_of
from air_recsys.models.ratings import Clip
from air_recsys.models.state import FittedState
from air_recsys.storage.validation import check_integer

_BLOCK_ENTRIES = 16_000_000  # entries of the lists of a block; scores have blocks of their own
_SOURCES = pd.Series(["popular", "model"]).array
FindBest = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # users to items and products + item biases, (b, n)


class Popular(NamedTuple):
    """The list of a user of whom nothing is known."""

    items: np.ndarray  # (n,), best first; -1 where no item is left
    scores: np.ndarray  # (n,)


def recommend_with(
    best: FindBest,
    state: FittedState,
    user_ids: Any,
    n: int,
    *,
    clips: Clip,
    popular: Callable[[], Popular],
    served: np.ndarray | None = None,
) -> pd.DataFrame:
    """The table of `Recommender.recommend` from a search for the best items of known users.

    n is at most the number of items; `popular` returns the list of unknown users, of n places, where there are any.
    With `served`, (n_users,) of bool, known users at False get that list too.
    """
    queried = asked_ids(user_ids, "user")
    if queried.dtype == object and (missing := np.flatnonzero(pd.isna(queried))).size:
        raise DataError(f"expected user ids, found {missing.size} missing, the first at position {missing[0]}")
    state.data.users.check_type(queried)
    block = max(1, _BLOCK_ENTRIES // n)
    starts = range(0, max(1, queried.size), block)
    popular = cache(popular)
    blocks = (queried[start : start + block] for start in starts)
    frames = [_recommend_block(best, state, ids, popular, clips, served) for ids in blocks]
    if len(frames) == 1:
        return frames[0]
    # An empty column has no type of its own and would spoil that of the others.
    return pd.concat([frame for frame in frames if not frame.empty] or frames[:1], ignore_index=True)


def best_items_of(
    state: FittedState,
    users: np.ndarray,
    *,
    n: int,
    exclude_seen: bool,
    device: torch.device,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The n best items of some users, of those that are allowed, and products + item biases, (b, n) each."""
    if allowed is not None and not allowed.size:
        return np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
    seen = state.statistics.seen[users] if exclude_seen else None
    if allowed is not None and seen is not None:
        seen = sp.csr_array(seen[:, allowed])
    found, scores = top_items_of(catalogue_of(state, device, allowed), state.factors.user_factors[users], n, seen)
    return among(allowed, found), scores


def list_scores(state: FittedState, users: np.ndarray, products: np.ndarray, clips: Clip) -> np.ndarray:
    """The scores of the lists of some users from their products + item biases, (b, n)."""
    offsets = state.factors.user_biases[users, None] + state.factors.mean
    return state.limited(products.astype(np.float64) + offsets, clips)


def catalogue_of(state: FittedState, device: torch.device, allowed: np.ndarray | None = None) -> Catalogue:
    """The items of a model to be ranked; all of them, on a CPU, are kept, as a service asks often."""

    def make(some: Any = slice(None)) -> Catalogue:
        factors = state.factors
        _, items, offsets = as_arrays(factors.user_factors[:0], factors.item_factors[some], factors.item_biases[some])
        return Catalogue(items, offsets, device)

    if allowed is not None:
        return make(allowed)
    same = state.origin.factors.item_factors is state.factors.item_factors
    return (state.origin if same else state).once("catalogue", make) if device.type == "cpu" else make()


def best_rated(state: FittedState, n: int, allowed: np.ndarray | None = None) -> Popular:
    """The n items with the highest damped mean rating, of those that are allowed; of equal ones the most rated.

    All likes are equal, so there it is the most liked ones.
    """
    return _first(state.statistics.damped_item_means, state.statistics.item_counts, n, allowed)


def most_liked(state: FittedState, n: int, allowed: np.ndarray | None = None) -> Popular:
    """The n items that most users have, of those that are allowed, and the share of the users who have each."""
    counts = state.statistics.item_counts
    return _first(counts / state.data.n_users, counts, n, allowed)


def _first(scores: np.ndarray, counts: np.ndarray, n: int, allowed: np.ndarray | None) -> Popular:
    among_them = np.arange(scores.size) if allowed is None else allowed
    order = among_them[np.lexsort((-counts[among_them], -scores[among_them]))][:n]
    items = np.pad(order, (0, n - order.size), constant_values=-1)
    return Popular(items, scores[items])


def _recommend_block(
    best: FindBest,
    state: FittedState,
    ids: np.ndarray,
    popular: Callable[[], Popular],
    clips: Clip,
    served: np.ndarray | None,
) -> pd.DataFrame:
    users = state.data.users.lookup(ids)
    known = users >= 0
    if served is not None:
        known &= served[users]
    found, products = best(users[known])
    of_known = list_scores(state, users[known], products, clips)
    if known.all():
        return recommendation_frame(ids, state.data.item_ids, found, of_known, known)
    items, scores = (np.tile(each, (users.size, 1)) for each in popular())
    items[known], scores[known] = found, of_known
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


def allowed_items(index: IdIndex, items: Any = None, exclude: Any = None) -> np.ndarray | None:
    """The positions of the items of which lists may be made, ascending; None where all may."""
    if items is None and exclude is None:
        return None
    allowed = np.full(len(index), items is None)
    if items is not None:
        allowed[_positions(index, items)] = True
    if exclude is not None:
        allowed[_positions(index, exclude)] = False
    return np.flatnonzero(allowed)


def list_length(n: int, n_items: int, allowed: np.ndarray | None = None) -> int:
    """The length of lists: n, or what there is to recommend where that is less; at least 1."""
    return min(check_integer("n", n, minimum=1), max(n_items if allowed is None else allowed.size, 1))


def among(allowed: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
    """Items by their positions among the allowed ones; -1, for no item, stays.

    Examples
    --------
    >>> among(np.array([3, 7]), np.array([[1, 0, -1]]))
    array([[ 7,  3, -1]])
    """
    return positions if allowed is None or not allowed.size else np.where(positions >= 0, allowed[positions], -1)


def _positions(index: IdIndex, ids: Any) -> np.ndarray:
    queried = asked_ids(ids, index.kind)
    index.check_type(queried)
    places = index.lookup(queried)
    if (places < 0).any():
        raise UnknownIdError(index.kind, queried[places < 0].tolist(), "leave it out")
    return places
