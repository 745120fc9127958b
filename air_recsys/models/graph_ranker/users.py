r"""The users of a fitted `GraphRanker`, trained and new ones: what scores them, and their lists by position.

Regression and factors serve any list of items. So a new user needs its items alone, and a trained user who is folded
in gets the same scores again; all that was trained stays as it is.

New likes of trained users, of new users and of new items leave the regression of known items as it is. Column j of H,
for a new item j, is the regression on the strongest neighbours of the item; H is symmetric, so it is the row of the
item, too. With the weights :math:`h_{ij}` of known neighbours i, and the factors :math:`x_u` of the users u who have
the item, from its known items, the parts of the new item are

.. math:: p_j = \sum_i |h_{ij}| p_i / \sum_i |h_{ij}|, \qquad q_j = \sum_u x_u / |\sum_u x_u|

All factors of items then take further steps of their training, as many as the share of the new likes is of its steps:
in a stream of likes, lists lose much where the factors stay, and nothing where the regression does. The factors of
users are what their items make them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, UnknownIdError
from air_recsys.metrics.checks import Csr
from air_recsys.models.explain import Labels
from air_recsys.models.forgetting import Left, kept
from air_recsys.models.graph_ranker.explanation import ListExplanation, explain
from air_recsys.models.graph_ranker.factors import ItemFactors, continued_factors, user_factors
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    interaction_pattern,
    interaction_times,
    item_gains,
    ones_of,
    own_items,
    with_half_life,
)
from air_recsys.models.graph_ranker.lists import best_lists
from air_recsys.models.graph_ranker.regression import columns_of_items, normalised_items, regression_scorer
from air_recsys.models.graph_ranker.scorers import FactorScorer, ProductScorer, Scorer, WeightedScorers
from air_recsys.models.learned import Factors
from air_recsys.models.new_rows import as_rows, check_signs
from air_recsys.models.partial_fit import merge
from air_recsys.models.ranking.allowed import allowed_items, list_length
from air_recsys.models.ranking.lists import most_liked, popular_lists, recommendation_frame
from air_recsys.models.state import FittedState


class RankerState(NamedTuple):
    """A fitted `GraphRanker`, ready to score."""

    fitted: FittedState
    settings: RankerSettings
    scorers: WeightedScorers  # of the trained users
    own: Csr  # how much each item of a user counts, (n_users, n_items)

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, (b, n_items)."""
        return self.scorers.scores(users)

    def listed_scores(self, users: np.ndarray) -> np.ndarray:
        """What lists are made by, (b, n_items): scores, of users without items how many have each item."""
        scores = self.scores(users)
        scores[~self.with_items()[users]] = self.fitted.statistics.item_counts
        return scores

    def probabilities(self, users: np.ndarray) -> np.ndarray:
        """The probabilities of `GraphRanker.predict_proba` of all items for some users, (b, n_items)."""
        assert self.fitted.calibration is not None
        return self.fitted.calibration.of_scores(self.scores(users), self.own[users])

    def with_items(self) -> np.ndarray:
        """Whether each user has any item, (n_users,); of those without any the scores say nothing."""
        return np.diff(self.own.indptr) > 0

    def popularity(self) -> WeightedScorers:
        """The scores of one user of whom nothing is known: the share of the users who have each item."""
        shares = self.fitted.statistics.item_counts / self.fitted.data.n_users
        one = np.ones((1, 1), dtype=np.float32)
        scorer = ProductScorer(sp.csr_array(one), shares[None].astype(np.float32), one[0])
        return WeightedScorers({"popular": scorer}, {"popular": 1.0}, self.fitted.data.n_items)


def settings_of(state: FittedState) -> RankerSettings:
    """The settings that a fitted model was given or has selected."""
    return RankerSettings.of_values(state.chosen.values)


def ready_state(state: FittedState) -> RankerState:
    """A fitted model ready to score, made once."""
    return state.once("ranking", lambda: _ready(state))


def _ready(state: FittedState) -> RankerState:
    pattern, settings, data = interaction_pattern(state.data), settings_of(state), state.data
    own, trend = own_items(pattern, data, settings), item_gains(data, settings)

    def factors() -> Scorer:
        assert state.source_factors is not None
        items = ItemFactors(state.source_factors, state.factors.item_factors)
        return FactorScorer.of(state.factors.user_factors, items, settings.factor_temperature, trend)

    def regression() -> Scorer:
        assert state.item_weights is not None
        return regression_scorer(pattern, own, state.item_weights, trend, settings)

    makers: dict[str, Callable[[], Scorer]] = {"factor": factors, "regression": regression}
    scorers = {name: makers[name]() for name in settings.weights}
    return RankerState(state, settings, WeightedScorers(scorers, settings.weights, data.n_items), own)


def lists_of_users(
    model: Any,
    users: np.ndarray,
    n: int,
    *,
    rows: Csr | None = None,
    seen: Csr | None = None,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The n items with the highest scores of trained or of new users, best first, and these scores.

    By the positions of users and items, for hosts that know no other ids. A user without any item gets the items that
    most users have.

    With `rows`, (b, n_items), 1 for every item of a new user, the users are folded in, and of `users` only the number
    counts. `seen`, (b, n_items), stores items to leave out, none of them 0; `allowed` are the items that a list may
    hold, ascending. Places without an item have -1 and -inf.
    """
    ranker = ready_state(model._fitted())
    n_items = ranker.fitted.data.n_items
    length = min(n, n_items if allowed is None else allowed.size)
    scorers = ranker.scorers if rows is None else ranker.scorers.for_users(rows)
    places = users if rows is None else np.arange(users.size)
    known = ranker.with_items()[users] if rows is None else np.diff(rows.indptr) > 0
    items, scores = np.full((users.size, n), -1), np.full((users.size, n), -np.inf)

    def rank(some: np.ndarray, scorers: WeightedScorers, places: np.ndarray) -> None:
        hidden = None if seen is None else seen[some]
        found = best_lists(scorers, places, length, seen=hidden, allowed=allowed)
        items[some, :length], scores[some, :length] = found

    rank(np.flatnonzero(known), scorers, places[known])
    others = np.flatnonzero(~known)
    if others.size:
        rank(others, ranker.popularity(), np.zeros(others.size, dtype=np.int64))
    return items, scores


class FoldedUsers:
    """New users of a `GraphRanker`: what `GraphRanker.fold_in` returns.

    Attributes
    ----------
    user_ids : ndarray, shape (n,)
        The ids of the new users; the numbers of the rows where they came as a matrix.
    """

    def __init__(self, ranker: RankerState, data: Any) -> None:
        rows, _ = as_rows(ranker.fitted.data, data, None, "user")
        check_signs(ranker.fitted, rows.data)
        if isinstance(data, Interactions):
            self.user_ids = data.user_ids
        else:
            rows = sp.csr_array(rows, copy=True)
            rows.eliminate_zeros()  # as in `as_likes`
            self.user_ids = np.arange(rows.indptr.size - 1)
        self._fitted = ranker.fitted
        self._pattern = ones_of(rows, ranker.fitted.data.n_items)
        self._own = with_half_life(self._pattern, _times(ranker.fitted, data), ranker.settings.user_half_life)
        self._scorers = ranker.scorers.for_users(self._own)

    def scores(self, users: Any = slice(None)) -> np.ndarray:
        """The scores of all items for some of the users, by position, or for all; shape (b, n_items).

        They order the items of a user and cannot be compared between users. All are 0 for a user without items.
        """
        return self._scorers.scores(np.arange(self.user_ids.size)[users])

    def recommend(
        self, n: int = 10, exclude_seen: bool = True, *, items: Any = None, exclude: Any = None
    ) -> pd.DataFrame:
        """The best n items of each new user, as `GraphRanker.recommend` does; popular ones without any item.

        Parameters
        ----------
        n : int
            Fewer rows come back for a user with fewer items left.
        exclude_seen : bool
            Leave out the items of the user's own list.
        items, exclude : optional
            As in `Recommender.recommend`.

        Returns
        -------
        DataFrame
            Columns user, item, score, rank and source.
        """
        state, n_users = self._fitted, self.user_ids.size
        allowed = allowed_items(state.data.items, items, exclude, state.data.users, self.user_ids)
        n, known = list_length(n, allowed.n_left), np.diff(self._pattern.indptr) > 0
        best, scores = np.empty((n_users, n), np.int64), np.empty((n_users, n))
        users, others = np.flatnonzero(known), np.flatnonzero(~known)
        if others.size:
            best[others], scores[others] = popular_lists(partial(most_liked, state, n), allowed, others)
        for start in range(0, users.size, allowed.n_together(n)):
            some = users[start : start + allowed.n_together(n)]
            left_out = allowed.left_out(some, self._pattern[some] if exclude_seen else None)
            best[some], scores[some] = best_lists(self._scorers, some, n, seen=left_out, allowed=allowed.common)
        return recommendation_frame(self.user_ids, state.data.item_ids, best, scores, known)

    def explain(
        self, user_id: Hashable, item_id: Hashable, n: int = 10, *, labels: Labels | None = None
    ) -> ListExplanation:
        """What each item of a new user adds to a score, as `GraphRanker.explain`.

        Raises
        ------
        UnknownIdError
            For a user who was not folded in, and for an unknown item.
        """
        place = np.flatnonzero(self.user_ids == user_id)
        if not place.size:
            raise UnknownIdError("user", [user_id])
        user = int(place[0])
        return explain(self._scorers, self._fitted.data, (user_id, item_id), (user, self._own[[user]]), n, labels)


def _times(state: FittedState, new: Any) -> Csr | None:
    """The times of the items of new users, (b, n_items), or None."""
    times = interaction_times(new) if isinstance(new, Interactions) else None
    if times is None:
        return None
    timed = times.tocoo()
    columns = state.data.items.lookup(new.item_ids)[timed.col]
    return sp.csr_array((timed.data, (timed.row, columns)), shape=(new.n_users, state.data.n_items))


def with_likes(state: FittedState, new: Interactions) -> FittedState:
    """A state with new likes taken in."""
    check_signs(state, new.ratings)
    settings, data = settings_of(state), merge(state.data, new)
    if data.timestamps is None and (settings.user_half_life or settings.item_trend):
        raise DataError("expected new likes with timestamps, as in the training, found none")
    n_steps = _steps_due(int(state.chosen.values["n_steps"]), state.data.n_ratings, data.n_ratings)
    n_new_items = state.n_new_items + data.n_items - state.data.n_items
    return _followed(replace(state, named={}, n_new_items=n_new_items), data, n_steps)


def without_likes(state: FittedState, left: Left) -> FittedState:
    """A state of what is left: users as their items make them, and new items as theirs, where one lost a like."""
    draft = kept(state, left)
    n_first = left.data.n_items - draft.n_new_items
    rows = left.items[:n_first] if (left.lost_by_items >= n_first).any() else left.items
    weights, sources = state.item_weights, state.source_factors
    assert sources is not None
    if weights is not None and rows.size < state.data.n_items:
        outer = np.ix_(rows, rows)
        weights = weights[outer] if isinstance(weights, np.ndarray) else sp.csr_array(weights[outer])
    factors = draft.factors._replace(item_factors=draft.factors.item_factors[: rows.size])
    return _followed(replace(draft, factors=factors, item_weights=weights, source_factors=sources[rows]), left.data)


def _followed(state: FittedState, data: Interactions, n_steps: int = 0) -> FittedState:
    """A state of other likes, of whose items those of its weights and factors are the first."""
    settings, pattern, weights = settings_of(state), interaction_pattern(data), state.item_weights
    own = own_items(pattern, data, settings)
    assert state.source_factors is not None
    items = ItemFactors(state.source_factors, state.factors.item_factors)
    if data.n_items > len(items.sources):
        columns = _new_columns(pattern, settings, len(items.sources))
        weights = None if weights is None else _grown(weights, columns)
        items = _grown_factors(items, columns, pattern, own)
    if n_steps:
        items = continued_factors(pattern, items, n_steps, data.n_ratings)
    users = user_factors(own, items.sources)
    factors = Factors(users, items.targets, np.zeros(data.n_users), np.zeros(data.n_items), 0.0)
    return replace(state, data=data, factors=factors, item_weights=weights, source_factors=items.sources)


def _steps_due(n_trained: int, before: int, after: int) -> int:
    """The steps of the factors that are due between two numbers of likes: for each share of them, that of the steps.

    Many small updates have as many as a large one.

    Examples
    --------
    >>> _steps_due(100, 1000, 1001), _steps_due(100, 1000, 1100)
    (0, 10)
    >>> sum(_steps_due(100, n, n + 1) for n in range(1000, 1100))
    10
    """
    return int(n_trained * np.log(after)) - int(n_trained * np.log(before))


def _new_columns(pattern: Csr, settings: RankerSettings, n_known: int) -> Csr:
    """The columns of H of the items from `n_known` on, (n_items, n_new)."""
    normalised = normalised_items(pattern, settings.regression_exponent, settings.regression_share)
    return columns_of_items(normalised, np.arange(n_known, pattern.shape[1]), settings.regression_penalty)


def _grown(weights: Csr | np.ndarray, columns: Csr) -> Csr | np.ndarray:
    """H with columns, and rows, for new items."""
    n_known, n_items = weights.shape[0], columns.shape[0]
    if isinstance(weights, np.ndarray):
        grown = np.zeros((n_items, n_items), dtype=weights.dtype)
        grown[:n_known, :n_known] = weights
        grown[:, n_known:] = columns.toarray()
        grown[n_known:, :n_known] = grown[:n_known, n_known:].T
        return grown
    known = columns[:n_known]
    return sp.csr_array(sp.block_array([[weights, known], [known.T, columns[n_known:]]], format="csr"))


def _grown_factors(items: ItemFactors, columns: Csr, pattern: Csr, own: Csr) -> ItemFactors:
    """The factors of the known items and of new ones."""
    n_known = len(items.sources)
    of_known = abs(columns[:n_known]).T  # (n_new, n_known)
    totals = np.maximum(np.asarray(of_known.sum(axis=1), dtype=np.float64), np.finfo(np.float32).tiny)
    sources = (of_known @ items.sources) / totals[:, None]
    users = user_factors(sp.csr_array(own[:, :n_known]), items.sources)
    targets = user_factors(sp.csr_array(pattern[:, n_known:].T), users)
    added = ItemFactors(sources.astype(np.float32), targets)
    return ItemFactors(*(np.concatenate(parts) for parts in zip(items, added, strict=True)))
