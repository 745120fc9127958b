"""Lists of items for users by their ids: the table of `recommend`, whatever finds the best items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch

from air_recsys.metrics.ranking import top_k
from air_recsys.models.limits import Clip
from air_recsys.models.ranking.candidates import among, as_queried_ids
from air_recsys.models.ranking.catalogue import Catalogue
from air_recsys.models.ranking.top_items import as_arrays, top_items_of
from air_recsys.models.state import FittedState

_BLOCK_ENTRIES = 16_000_000  # entries of the lists of a block; scores have blocks of their own
FindBest = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # users to items and products + item biases, (b, n)


def recommend_with(
    best: FindBest, state: FittedState, user_ids: Any, n: int, *, clips: Clip, allowed: np.ndarray | None = None
) -> pd.DataFrame:
    """Return the table of `Recommender.recommend` from a search for the best items of known users.

    n is at most the number of items; `allowed` are those that unknown users may get, and `best` knows its own.
    """
    queried = as_queried_ids(user_ids)
    block = max(1, _BLOCK_ENTRIES // n)
    starts = range(0, max(1, queried.size), block)
    popular = popular_items(state, n, allowed)
    frames = [_recommend_block(best, state, queried[start : start + block], popular, clips) for start in starts]
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
    """Return the n best items of some users, of those that are allowed, and products + item biases, (b, n) each."""
    if allowed is not None and not allowed.size:
        return np.full((users.size, n), -1), np.full((users.size, n), -np.inf)
    seen = state.statistics.seen[users] if exclude_seen else None
    if allowed is not None and seen is not None:
        seen = sp.csr_array(seen[:, allowed])
    found, scores = top_items_of(catalogue_of(state, device, allowed), state.factors.user_factors[users], n, seen)
    return among(allowed, found), scores


def catalogue_of(state: FittedState, device: torch.device, allowed: np.ndarray | None = None) -> Catalogue:
    """Return the items of a model to be ranked; all of them, on a CPU, are kept, as a service asks often."""

    def make(some: Any = slice(None)) -> Catalogue:
        factors = state.factors
        _, items, offsets = as_arrays(factors.user_factors[:0], factors.item_factors[some], factors.item_biases[some])
        return Catalogue(items, offsets, device)

    if allowed is not None:
        return make(allowed)
    return state.once("catalogue", make) if device.type == "cpu" else make()


def popular_items(state: FittedState, n: int, allowed: np.ndarray | None = None) -> np.ndarray:
    """Return the n most rated items, of those that are allowed, (n,); -1 where no item is left."""
    counts = state.statistics.item_counts if allowed is None else state.statistics.item_counts[allowed]
    found = top_k(counts[None], min(n, counts.size))[0] if counts.size else np.empty(0, dtype=np.int64)
    return among(allowed, np.pad(found, (0, n - found.size), constant_values=-1))


def _recommend_block(
    best: FindBest, state: FittedState, ids: np.ndarray, popular: np.ndarray, clips: Clip
) -> pd.DataFrame:
    users, statistics, factors = state.data.users.lookup(ids), state.statistics, state.factors
    known, n = users >= 0, popular.size
    items, scores = np.empty((users.size, n), dtype=np.int64), np.empty((users.size, n))
    if not known.all():
        items[~known] = popular
        scores[~known] = statistics.item_means[items[~known]]
    items[known], products = best(users[known])
    offsets = factors.user_biases[users[known], None] + factors.mean
    scores[known] = state.limited(products.astype(np.float64) + offsets, clips)
    return recommendation_frame(ids, state.data.item_ids, items, scores, known)


def recommendation_frame(
    user_ids: np.ndarray, item_ids: np.ndarray, items: np.ndarray, scores: np.ndarray, known: np.ndarray
) -> pd.DataFrame:
    """Return the table of `Recommender.recommend` for lists of items; places with -1 are left out.

    Parameters
    ----------
    user_ids : ndarray, shape (b,)
        As from `air_recsys.ids.as_id_array`.
    item_ids : ndarray, shape (n_items,)
    items, scores : ndarray, shape (b, n)
    known : ndarray of bool, shape (b,)
        Whether the lists are the model's, and not what is popular.

    Examples
    --------
    >>> ids = np.array([11, 12])
    >>> recommendation_frame(ids, np.array([7, 8]), np.array([[1, 0], [0, -1]]), np.ones((2, 2)), ids > 11)
       user  item  score  rank   source
    0    11     8    1.0     1  popular
    1    11     7    1.0     2  popular
    2    12     7    1.0     1    model
    """
    rows, ranks = np.nonzero(items >= 0)
    users = user_ids[rows]
    sources = pd.Series(["popular", "model"]).array
    return pd.DataFrame(
        {
            "user": users.tolist() if users.dtype == object else users,  # a list finds its own type
            "item": item_ids[items[rows, ranks]],
            "score": scores[rows, ranks],
            "rank": ranks + 1,
            "source": sources.take(known[rows].astype(np.intp)),
        }
    )
