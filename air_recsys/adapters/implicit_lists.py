"""Lists as all of implicit's models give them; ties are those of `air_recsys.models.ranking`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.models.ranking.top_items import top_items
from air_recsys.nn.devices import in_workers

_USERS_AT_A_TIME = 512
_MANY_USERS = 64  # for fewer, threads cost more than they save


def best_items(
    users: np.ndarray, items: np.ndarray, offsets: np.ndarray, n: int, seen: sp.csr_matrix | None, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lists of `air_recsys.models.ranking.top_items.top_items`, by `n_threads` threads (0: one a core).

    Each thread ranks its own users and waits for no other, which is faster than several threads for the same users,
    and much faster on a busy machine.
    """
    if len(users) < _MANY_USERS:
        return top_items(users, items, offsets, n, seen=seen)

    def ranked(start: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(start, start + _USERS_AT_A_TIME)
        return top_items(users[rows], items, offsets, n, seen=None if seen is None else seen[rows])

    lists = in_workers(ranked, range(0, len(users), _USERS_AT_A_TIME), n_threads or os.cpu_count() or 1)
    ids, scores = (np.concatenate(column) for column in zip(*lists, strict=True))
    return ids, scores


def recommended(
    users: np.ndarray, items: np.ndarray, n: int, liked: sp.csr_matrix | None, filtered: Any, chosen: Any, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and scores of the n best items of each user, (b, n) each; what is left out comes last.

    Parameters
    ----------
    users, items : ndarray, shapes (b, r), (n_items, r)
    n : int
        At most the number of candidates.
    liked : csr_matrix, optional
        One row per user and at most n_items columns; stored entries are left out.
    filtered, chosen : array_like of int, optional
        Items that are left out for all users, and the only candidates.
    threads : int

    Examples
    --------
    >>> liked = sp.csr_matrix([[1.0]])
    >>> recommended(np.ones((1, 1)), np.array([[3.0], [1.0], [1.0]]), 2, liked, None, None, 1)[0]
    array([[1, 2]], dtype=int32)
    """
    shape = (len(users), len(items))
    seen = None
    if liked is not None:
        seen = sp.csr_matrix((np.ones(liked.nnz, dtype=bool), liked.indices, liked.indptr), shape=shape)
    offsets = _without(filtered, len(items), items.dtype)
    candidates = None if chosen is None else np.sort(np.array(chosen))
    if candidates is not None:
        items, offsets, seen = items[candidates], offsets[candidates], None if seen is None else seen[:, candidates]
    places, scores = best_items(users, items, offsets, n, seen, threads)
    scores = filled(places, scores, len(items))
    return _named(places, candidates), scores


def alike(
    queries: np.ndarray, others: np.ndarray, n: int, own: np.ndarray | None, filtered: Any, chosen: Any, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and cosines of the n rows of `others` most alike to each query, (b, n) each.

    Parameters
    ----------
    queries, others : ndarray, shapes (b, r), (m, r)
        Of length 1 or 0, in double precision.
    n : int
    own : ndarray of int, optional, shape (b,)
        The id of each query, which comes first of those that tie with it.
    filtered, chosen : array_like of int, optional
        Ids that are left out, and the only candidates.
    threads : int

    Examples
    --------
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> alike(rows[[2]], rows, 2, np.array([2]), None, None, 1)[0]
    array([[2, 0]], dtype=int32)
    """
    offsets = _without(filtered, len(others), others.dtype)
    candidates = None if chosen is None else np.array(chosen)
    if candidates is not None:
        others, offsets = others[candidates], offsets[candidates]
    places, scores = best_items(queries, others, offsets, n, None, threads)
    scores = filled(places, scores, len(others))
    ids = _named(places, candidates)
    if own is not None:
        left_out = set() if filtered is None else set(np.atleast_1d(filtered).tolist())
        here = range(len(offsets)) if candidates is None else set(candidates.tolist())
        for row, one in zip(ids, own.tolist(), strict=True):
            if one in here and one not in left_out:
                place = np.flatnonzero(row == one)[:1] if one in row else n - 1
                row[:] = [one, *np.delete(row, place)]
    return ids, scores


def _without(filtered: Any, size: int, dtype: np.dtype) -> np.ndarray:
    offsets = np.zeros(size, dtype)
    if filtered is not None:
        offsets[np.asarray(filtered, dtype=np.int64)] = -np.inf
    return offsets


def _named(places: np.ndarray, candidates: np.ndarray | None) -> np.ndarray:
    return places.astype(np.int32) if candidates is None else candidates[places]  # the types of implicit's ids


def filled(places: np.ndarray, scores: np.ndarray, size: int) -> np.ndarray:
    """Fill lists that are too short with what was left out, in place, and return scores with the lowest number there.

    implicit gives all lists the same length.
    """
    short = np.flatnonzero((places < 0).any(axis=1))
    for row in short:
        listed = places[row] >= 0
        others = np.setdiff1d(np.arange(size), places[row][listed])
        places[row] = np.r_[places[row][listed], others[: (~listed).sum()]]
    return np.where(np.isneginf(scores), np.finfo(scores.dtype).min, scores)
