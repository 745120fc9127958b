"""Items as a faiss index: the best items of a user are the nearest neighbours of a vector."""

from __future__ import annotations

import os
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.ids import asked_ids
from air_recsys.exceptions import ParameterError, UnknownIdError
from air_recsys.models.learned import Factors
from air_recsys.models.ranking import ties
from air_recsys.models.ranking.allowed import Allowed, list_length
from air_recsys.models.ranking.lists import best_rated, catalogue_of, recommend_with
from air_recsys.models.ranking.top_items import top_items_of
from air_recsys.models.ratings import Clip
from air_recsys.models.state import FittedState
from air_recsys.models.storage.files import write_atomically
from air_recsys.storage.validation import check_choice, import_extra

_BLOCK_ENTRIES = 4_000_000  # entries of gathered item factors in a block
_RESERVE = 8  # candidates more than needed: an index compares in float32, and may order almost equal ones wrongly


class FaissItems:
    r"""The items of a fitted model in a faiss index; made by `Recommender.to_faiss`.

    For one user the score of item i is :math:`p_u \cdot q_i + c_i` and a constant, so the best items are those with
    the largest inner product of the query :math:`x_u = (p_u, 1)` and the vector :math:`y_i = (q_i, c_i)`. With
    ``metric="l2"`` every item gets one more coordinate that brings all to one norm M, and queries a zero there:

    .. math:: y_i' = (y_i, \sqrt{M^2 - |y_i|^2}),\quad x_u' = (x_u, 0),\quad
              |x_u' - y_i'|^2 = |x_u|^2 + M^2 - 2\, x_u \cdot y_i

    so the nearest items, by distance or by cosine, are again the best ones. That is for services and kinds of index
    that know no inner product.

    The index finds candidates by factors and biases; their whole scores, with what the item graph carries to them,
    are then computed, and tie as in `air_recsys.models.ranking.ties`. Lists go by the score alone: those of a model of
    ratings by the expected rating, and not by taking and liking. An exact index ("Flat") gives what `recommend` gives,
    of a model of ratings with ``rank_by="rating"``: where single precision or the item graph may have hidden an item,
    all items are looked at. An approximate one may miss items, and may return fewer than n; how much it looks at is
    set on `index`, such as ``index.nprobe`` of an "IVF" index.

    The index is that of the model as it was: after a further training make a new one.

    Parameters
    ----------
    state : FittedState
        Of the model.
    metric : {"inner_product", "l2"}
    factory : str, optional
        What `faiss.index_factory` makes; None is "Flat".
    clips : bool or "binary"
        How the model limits its scores.

    Attributes
    ----------
    index : faiss.Index
        Over float32 vectors; an item's number is its position in `item_ids`.
    item_ids : ndarray, shape (n_items,)
    metric : str

    Source: Bachrach et al., Speeding Up the Xbox Recommender System Using a Euclidean Transformation for Inner-Product
    Spaces, RecSys 2014.

    Examples
    --------
    >>> from air_recsys import BiasModel
    >>> model = BiasModel().fit([[5.0, 1.0, np.nan], [4.0, np.nan, 2.0]])
    >>> items = model.to_faiss(metric="l2")
    >>> items.search([0, 1], n=1)["item"].tolist()
    [2, 1]
    """

    def __init__(
        self, state: FittedState, metric: str = "inner_product", factory: str | None = None, *, clips: Clip = False
    ) -> None:
        check_choice("metric", metric, ("inner_product", "l2"))
        if factory is not None and not isinstance(factory, str):
            raise ParameterError(f"factory must be a string of faiss.index_factory or None, found {factory!r}")
        self.metric = metric
        self.item_ids = state.data.item_ids
        self._state, self._clips = state, clips
        vectors = _item_vectors(state.factors, metric)
        self._largest_square = float((vectors.astype(np.float64) ** 2).sum(axis=1).max())
        self.index = _build(vectors, metric, "Flat" if factory is None else factory)
        self._is_exact = factory in (None, "Flat")
        self._catalogue = catalogue_of(state)

    def search(self, user_ids: Any, n: int = 10, exclude_seen: bool = True) -> pd.DataFrame:
        """The n items of the highest scores that the index finds of each user, as a table of `Recommender.recommend`.

        Parameters
        ----------
        user_ids : id or array_like of ids
            A user who was not in the training data gets the best rated items, as from `recommend`.
        n : int
            Fewer rows come back for a user with fewer items left.
        exclude_seen : bool
            Leave out items that the user has rated; the index is asked for as many more.

        Raises
        ------
        ParameterError
            If n is below 1.
        """
        length = list_length(n, len(self.item_ids))

        def best(users: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return self._best(users, length, exclude_seen)

        asked, popular = asked_ids(user_ids, "user"), partial(best_rated, self._state, length)
        every = Allowed(len(self.item_ids))
        return recommend_with(best, self._state, asked, length, allowed=every, clips=self._clips, popular=popular)

    def queries(self, user_ids: Any) -> np.ndarray:
        """The vectors to search the index with, where it runs elsewhere: by factors alone.

        Parameters
        ----------
        user_ids : id or array_like of ids

        Returns
        -------
        ndarray of float32, shape (n_users, r + 1), or (n_users, r + 2) with ``metric="l2"``

        Raises
        ------
        UnknownIdError
            For a user who was not in the training data and has no factors.
        """
        queried = asked_ids(user_ids, "user")
        users = self._state.data.users.lookup(queried)
        if (users < 0).any():
            raise UnknownIdError("user", queried[users < 0].tolist(), "only users of the training data have factors")
        return self._queries(users)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the index to a file for `faiss.read_index`, replacing an older one at once.

        The file knows positions only: keep `item_ids` beside it.

        Raises
        ------
        ModelFileError
            If there is no such folder, or `path` is one.
        """
        target = Path(path)
        write_atomically(target, _faiss().serialize_index(self.index).tobytes())
        return target

    def _queries(self, users: np.ndarray) -> np.ndarray:
        factors = self._state.factors.user_factors[users]
        ones = np.ones((len(users), 1))
        padding = [np.zeros_like(ones)] if self.metric == "l2" else []
        return np.hstack([factors, ones, *padding]).astype(np.float32)

    def _best(self, users: np.ndarray, n: int, exclude_seen: bool) -> tuple[np.ndarray, np.ndarray]:
        """The n best items that the index finds and their products + item biases, both (b, n)."""
        items, scores = np.full((len(users), n), -1, dtype=np.int64), np.full((len(users), n), -np.inf)
        n_seen = np.diff(self._state.statistics.seen.indptr)[users] if exclude_seen else np.zeros(len(users))
        wanted = n + n_seen + _RESERVE
        # A few sizes of search, each for all users that it is enough for: who has seen little asks for little.
        sizes = np.minimum(2 ** np.ceil(np.log2(wanted)).astype(np.int64), len(self.item_ids))
        for size in np.unique(sizes):
            equal = np.flatnonzero(sizes == size)
            held = int(size) * self.index.d  # entries of a user, and all items where the item graph adds to them
            held = held if self._state.carried is None else max(held, len(self.item_ids))
            block = max(1, _BLOCK_ENTRIES // held)
            for start in range(0, equal.size, block):
                rows = equal[start : start + block]
                items[rows], scores[rows] = self._search(users[rows], int(size), n, exclude_seen)
        return items, scores

    def _search(self, users: np.ndarray, size: int, n: int, exclude_seen: bool) -> tuple[np.ndarray, np.ndarray]:
        """Ask the index for `size` items of each user, and rank those that may be shown by their scores."""
        queries, catalogue, factors = self._queries(users), self._catalogue, self._state.factors
        _, items = self.index.search(queries, size)  # (b, size), -1 where it found none
        seen = self._state.statistics.seen[users] if exclude_seen else None
        hidden = (items < 0) if seen is None else (items < 0) | _are_seen(items, seen)
        own, found = factors.user_factors[users], np.where(items < 0, 0, items)
        reach, exact = catalogue.reach(own), catalogue.exact(own, found)
        others, added = np.full_like(reach, -np.inf), None
        if self._is_exact and size < len(catalogue):
            others = exact[:, -1] + self._error(queries) + catalogue.error(reach)
        if self._state.carried is not None:
            added = self._state.carried.rows(users)
            exact += np.take_along_axis(added, found, axis=1)
            others += added.max(axis=1)
        exact[hidden] = -np.inf
        sure, *best = ties.choose(exact, found, n, ties.tolerance_of(reach), others)
        scores, items = (each.copy() for each in best)
        items[np.isneginf(scores)] = -1
        scores = scores.astype(catalogue.numbers)  # as those of `top_items`
        if not sure.all():
            again = ~sure
            left_out = None if seen is None else seen[again]
            of_them = None if added is None else added[again]
            asked = factors.user_factors[users[again]]
            items[again], scores[again] = top_items_of(catalogue, asked, n, left_out, added=of_them)
        return items, scores

    def _error(self, queries: np.ndarray) -> np.ndarray:
        """The error of two comparisons of an exact index in all, in the unit of the scores; (b,).

        A product or half a squared distance of vectors x and y has an error of some units of roundoff of
        |x|^2 + |y|^2 for each coordinate.
        """
        squares = (queries.astype(np.float64) ** 2).sum(axis=1) + self._largest_square
        return 2 * (queries.shape[1] + 8) * np.finfo(np.float32).eps * squares


def _are_seen(items: np.ndarray, seen: Any) -> np.ndarray:
    """Whether items (b, k) are stored in the rows of `seen` (b, n_items); anything for the item -1."""
    n_users, n_items = seen.shape
    seen_pairs = np.repeat(np.arange(n_users), np.diff(seen.indptr)) * n_items + seen.indices
    return np.isin(np.arange(n_users)[:, None] * n_items + items, seen_pairs)


def _item_vectors(factors: Factors, metric: str) -> np.ndarray:
    vectors = np.column_stack([factors.item_factors, factors.item_biases]).astype(np.float64)  # (n_items, r + 1)
    if metric == "l2":
        squares = (vectors**2).sum(axis=1)
        vectors = np.column_stack([vectors, np.sqrt(squares.max() - squares)])
    return vectors.astype(np.float32)


def _build(vectors: np.ndarray, metric: str, factory: str) -> Any:
    faiss = _faiss()
    measure = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    try:
        index = faiss.index_factory(vectors.shape[1], factory, measure)
        index.train(vectors)
    except RuntimeError as error:
        reason = str(error).rpartition(": ")[2]  # after names of functions and files of faiss
        raise ParameterError(
            f"factory must be one that faiss can make of {len(vectors)} items, found {factory!r}: {reason}"
        ) from None
    index.add(vectors)
    return index


def _faiss() -> Any:
    with warnings.catch_warnings():
        # The types of its wrapper warn when Python 3.12 first sees them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return import_extra("faiss", "ann")
