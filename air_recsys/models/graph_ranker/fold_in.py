r"""Users that a `GraphRanker` was not trained on, from their items alone; all that was trained stays as it is.

The regression, the item graph, the factors of the items and their popularity serve any list of items. For the
term of the users a new one chooses its strongest co-occurrences with the trained users, by the weights of the user
graph: with N(u) the items of the new user, N(v) those of a trained one and N(c) the trained users of an item,

.. math:: a_{uv} = \Big(\sum_{c \in N(u) \cap N(v)} |N(c)|^{-a} \big/ \sqrt{|N(u)|\,|N(v)|}\Big)^{power}

A trained user has edges that it chose and edges that others chose; a new one has the first alone. That is all that
differs between a trained user and the same user folded in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import UnknownIdError
from air_recsys.graphs.cooccurrence import scaled, strongest_products
from air_recsys.metrics.checks import Csr
from air_recsys.models.explain import Labels
from air_recsys.models.graph_ranker import smoothings
from air_recsys.models.graph_ranker.explanation import ListExplanation, explain
from air_recsys.models.graph_ranker.factors import user_factors
from air_recsys.models.graph_ranker.lists import best_lists
from air_recsys.models.graph_ranker.ranker_state import RankerState
from air_recsys.models.graph_ranker.regression import item_degrees
from air_recsys.models.graph_ranker.smoothings import RankerSettings, Term, divided, interaction_pattern
from air_recsys.models.graph_ranker.times.recency import interaction_times, of_later_items
from air_recsys.models.new_rows import as_rows, check_signs
from air_recsys.models.ranking.lists import allowed_items, list_length, most_liked, recommendation_frame


class FoldedUsers:
    """New users of a `GraphRanker`: what `GraphRanker.fold_in` returns.

    Attributes
    ----------
    user_ids : ndarray, shape (n,)
        The ids of the new users; the numbers of the rows where they came as a matrix.
    """

    def __init__(self, ranker: RankerState, ratings: Any) -> None:
        data = Interactions.from_frame(ratings, allow_negative=True) if isinstance(ratings, pd.DataFrame) else ratings
        rows, _ = as_rows(ranker.fitted.data, data, None, "user")
        check_signs(ranker.fitted, rows.data)
        if isinstance(data, Interactions):
            self.user_ids, own = data.user_ids, ranker.fitted.data.users.lookup(data.user_ids)
        else:
            rows = sp.csr_array(rows, copy=True)
            rows.eliminate_zeros()  # as in `as_likes`
            self.user_ids = np.arange(rows.indptr.size - 1)
            own = np.full(self.user_ids.size, -1)
        ones = np.ones(rows.nnz, dtype=np.float32)
        self._ranker = ranker
        self._pattern = sp.csr_array((ones, rows.indices, rows.indptr), shape=rows.shape)
        self._own = of_later_items(self._pattern, _times(ranker, data), ranker.settings.user_half_life)
        self._terms = new_terms(ranker, self._pattern, self._own, own)

    def scores(self, users: Any = slice(None)) -> np.ndarray:
        """Return the scores of all items for some of the users, by position, or for all; shape (b, n_items).

        They order the items of a user and cannot be compared between users. All are 0 for a user without items.
        """
        asked, n_items = np.arange(self.user_ids.size)[users], self._ranker.fitted.data.n_items
        return smoothings.blend(self._terms, self._ranker.settings.weights, asked, n_items)

    def recommend(
        self, n: int = 10, exclude_seen: bool = True, *, items: Any = None, exclude: Any = None
    ) -> pd.DataFrame:
        """Return the best n items of each new user, as `GraphRanker.recommend` does; popular ones without any item.

        Parameters
        ----------
        n : int
            Fewer rows come back for a user with fewer items left.
        exclude_seen : bool
            Leave out the items of the user's own list.
        items, exclude : id, array_like or set of ids, optional
            As in `GraphRanker.recommend`.

        Returns
        -------
        DataFrame
            Columns user, item, score, rank and source.
        """
        state, n_users = self._ranker.fitted, self.user_ids.size
        data = state.data
        allowed = allowed_items(data.items, items, exclude)
        n = list_length(n, data.n_items, allowed)
        best, scores = (np.tile(each, (n_users, 1)) for each in most_liked(state, n, allowed))  # of those without any
        known = np.diff(self._pattern.indptr) > 0
        users = np.flatnonzero(known)
        seen = self._pattern[users] if exclude_seen else None
        best[users], scores[users] = best_lists(
            self._terms, self._ranker.settings.weights, users, n, data.n_items, seen=seen, allowed=allowed
        )
        return recommendation_frame(self.user_ids, data.item_ids, best, scores, known)

    def explain(
        self, user_id: Hashable, item_id: Hashable, n: int = 10, *, labels: Labels | None = None
    ) -> ListExplanation:
        """Return what each item of a new user adds to a score, as `GraphRanker.explain`.

        Raises
        ------
        UnknownIdError
            For a user who was not folded in, and for an unknown item.
        """
        place = np.flatnonzero(self.user_ids == user_id)
        if not place.size:
            raise UnknownIdError("user", [user_id])
        user = int(place[0])
        own = self._own[[user]]
        return explain(self._ranker, self._terms, (user_id, item_id), (user, own), n, labels)


def _times(ranker: RankerState, new: Any) -> Csr | None:
    """Return the times of the items of new users, (b, n_items), or None."""
    times = interaction_times(new) if isinstance(new, Interactions) else None
    if times is None:
        return None
    timed = times.tocoo()
    columns = ranker.fitted.data.items.lookup(new.item_ids)[timed.col]
    return sp.csr_array((timed.data, (timed.row, columns)), shape=(new.n_users, ranker.fitted.data.n_items))


def new_terms(ranker: RankerState, pattern: Csr, counted: Csr, own: np.ndarray) -> dict[str, Term]:
    """Return the terms of a ranker for new users.

    Parameters
    ----------
    ranker : RankerState
    pattern : csr_array, shape (b, n_items)
        1 for every item of a new user.
    counted : csr_array, shape (b, n_items)
        How much each of them counts in the scores of regression and factors.
    own : ndarray of int, shape (b,)
        The position of each new user among the trained ones, -1 for a stranger: nobody is its own neighbour.
    """
    settings, fitted = ranker.settings, ranker.fitted

    def trained() -> Csr:
        return interaction_pattern(fitted.data)

    def popularity() -> np.ndarray:
        return fitted.once("popularity of items", lambda: smoothings.popularity(trained()))

    def degrees() -> np.ndarray:
        return fitted.once("degrees of items", lambda: item_degrees(trained(), settings))

    makers: dict[str, Callable[[], Csr | np.ndarray]] = {
        "item": lambda: divided(pattern, popularity(), settings.item_source),
        "user": lambda: _edges(trained(), pattern, own, settings),
        "factor": lambda: user_factors(counted, ranker.sources),
        "regression": lambda: divided(counted, degrees(), settings.regression_source),
    }
    return {name: term.for_users(makers[name]()) for name, term in ranker.terms.items()}


def _edges(trained: Csr, pattern: Csr, own: np.ndarray, settings: RankerSettings) -> Csr:
    """Return the edges that new users choose among the trained ones, (b, n_users)."""
    if not pattern.nnz:
        return sp.csr_array((pattern.shape[0], trained.shape[0]), dtype=np.float32)
    exponent = settings.user_exponent / 2
    new = scaled(divided(pattern, smoothings.popularity(trained), exponent), 0.5, 0)
    chosen = strongest_products(new, scaled(trained, 0.5, exponent), settings.user_neighbors, own)
    return smoothings.raised(chosen, settings.user_power)
