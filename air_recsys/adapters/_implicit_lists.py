"""Lists as all of implicit's models give them; ties are those of `air_recsys.models.ranking`."""

from __future__ import annotations

import copy
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.adapters import _implicit_files
from air_recsys.adapters._implicit_input import check_ids, check_rows, checked_candidates, list_length
from air_recsys.exceptions import DataWarning
from air_recsys.models.ranking.top_items import top_items
from air_recsys.storage.threads import threads


class Asked(NamedTuple):
    """What a list is asked for, once it is checked."""

    ids: Any  # an id or several
    n: int  # at most the number of candidates
    filtered: Any  # ids to leave out, or None
    chosen: np.ndarray | None  # the only candidates, ascending

    def answer(self, found: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lists as implicit returns them, (n,) for one id and (b, n) for several."""
        return (found[0], scores[0]) if np.isscalar(self.ids) else (found, scores)


class GivesLists:
    """The questions for lists of implicit's recommenders, their checks, and the form of the answers."""

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = False,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Recommend as every model of implicit does; see ``implicit.als.AlternatingLeastSquares.recommend``.

        Lists have at most as many items as the model, and as `items`; those of several users from all items are filled
        with the id -1, as implicit's evaluation reads N places. Scores that differ by rounding alone tie, see
        `air_recsys.models.ranking.ties`; the item with the lower id comes first. What is left out, liked and filtered
        items, comes last where nothing else is left, with the lowest number of its type as score. With
        `recalculate_user` only `user_items` and the number of `userid` count.

        Raises
        ------
        IndexError
            For ids that are not in the model, negative ones included.
        ValueError
            If `user_items` is not a csr_matrix, or has not one row for each user, or has too many columns.
        NotFittedError
            Before `fit`.
        """
        model = copy.copy(self)  # what is learned at this moment, whatever another thread writes
        n_users, n_items = model._sizes()
        if not recalculate_user:
            check_ids("userid", userid, n_users)
        chosen = checked_candidates("items", filter_items, items, n_items)
        check_rows(userid, user_items, (n_users, n_items), read=filter_already_liked_items or recalculate_user)
        asked = Asked(userid, list_length(N, chosen, n_items), filter_items, chosen)
        liked = user_items if filter_already_liked_items else None
        ids, scores = asked.answer(*model._recommended(asked, liked, user_items if recalculate_user else None))
        if np.isscalar(userid) or items is not None:
            return ids, scores
        short, lowest = ((0, 0), (0, N - ids.shape[1])), np.finfo(scores.dtype).min
        return np.pad(ids, short, constant_values=-1), np.pad(scores, short, constant_values=lowest)

    def similar_users(
        self, userid: Any, N: int = 10, filter_users: Any = None, users: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The users most alike to some, itself first; ids and similarities. See `similar_items`."""
        model = copy.copy(self)
        n_users, _ = model._sizes()
        check_ids("userid", userid, n_users)
        chosen = checked_candidates("users", filter_users, users, n_users)
        return model._similar("user", Asked(userid, list_length(N, chosen, n_users), filter_users, chosen), None)

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,
        filter_items: Any = None,
        items: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The items most alike to some, itself first; ids and similarities, as in all of implicit.

        Raises
        ------
        IndexError
            For ids that are not in the model, negative ones included.
        NotFittedError
            Before `fit`.
        NotImplementedError
            With `recalculate_item`, of a model that takes no new items.
        """
        model = copy.copy(self)
        _, n_items = model._sizes()
        if not recalculate_item:
            check_ids("itemid", itemid, n_items)
        chosen = checked_candidates("items", filter_items, items, n_items)
        asked = Asked(itemid, list_length(N, chosen, n_items), filter_items, chosen)
        return model._similar("item", asked, model.recalculate_item(itemid, item_users) if recalculate_item else None)

    @classmethod
    def load(cls, fileobj_or_path: Any) -> Self:
        """Read a model that `save` wrote; no code in the file is run.

        Raises
        ------
        ModelFileError
            If the file is not such a model.
        """
        return _implicit_files.read(fileobj_or_path, cls.__name__, cls._restored)

    @classmethod
    def _restored(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """The model of a file, or `ValueError`."""
        raise NotImplementedError

    def recalculate_item(self, itemid: Any, item_users: Any) -> np.ndarray:
        """The factors of items from the users that like them."""
        raise NotImplementedError(f"{type(self).__name__} takes no new items: expected recalculate_item=False")

    def _sizes(self) -> tuple[int, int]:
        """The numbers of users and items, or raise `NotFittedError`."""
        raise NotImplementedError

    def _recommended(self, asked: Asked, liked: Any, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """The lists of some users, (b, n) each, without the items `liked`; with `rows` of users who have those."""
        raise NotImplementedError

    def _similar(self, side: str, asked: Asked, solved: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Those most alike to some users or items, or to the factors `solved`, as implicit returns them."""
        raise NotImplementedError


def best_items(
    users: np.ndarray, items: np.ndarray, offsets: np.ndarray, n: int, seen: sp.csr_matrix | None, n_threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The lists of `air_recsys.models.ranking.top_items.top_items`, by `n_threads` threads (0: one a core)."""
    with threads(n_threads or None):
        return top_items(users, items, offsets, n, seen=seen)


def recommended(
    users: np.ndarray, items: np.ndarray, asked: Asked, liked: sp.csr_matrix | None, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The ids and scores of the n best items of each user, (b, n) each; what is left out comes last."""
    _tell_empty(users, "users")
    shape = (len(users), len(items))
    seen = None
    if liked is not None:
        seen = sp.csr_matrix((np.ones(liked.nnz, dtype=bool), liked.indices, liked.indptr), shape=shape)
    offsets = _without(asked.filtered, len(items), items.dtype)
    candidates = asked.chosen
    if candidates is not None:
        items, offsets, seen = items[candidates], offsets[candidates], None if seen is None else seen[:, candidates]
    places, scores = best_items(users, items, offsets, asked.n, seen, threads)
    scores = filled(places, scores, len(items))
    return _named(places, candidates), scores


def alike(
    queries: np.ndarray, others: np.ndarray, asked: Asked, own: np.ndarray | None, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """The ids and cosines of the n rows of `others` most alike to each query, (b, n) each.

    Rows have the length 1 or 0. `own` are the ids of the queries, each of which comes first of those that tie with it.
    """
    _tell_empty(queries, "users or items")
    n, filtered, candidates = asked.n, asked.filtered, asked.chosen
    offsets = _without(filtered, len(others), others.dtype)
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


def _tell_empty(rows: np.ndarray, kind: str) -> None:
    if empty := np.count_nonzero(~rows.any(axis=1)):
        told = f"{empty} of {len(rows)} {kind} have no likes: all scores are 0, in the order of the ids"
        warnings.warn(told, DataWarning, stacklevel=5)


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
