r"""The users of a fitted `GraphRanker`, trained and new ones: what scores them, and their lists by position.

Regression and factors serve any list of items. So a new user needs its items alone, and a trained user who is folded
in gets the same scores again; all that was trained stays as it is, with the degrees, trends and shares of the items.

New likes of trained users, of new users and of new items leave the regression of known items as it is. Column j of H,
for a new item j, is the regression on the strongest neighbours of the item; H is symmetric, so it is the row of the
item, too. With the weights :math:`h_{ij}` of known neighbours i, and the factors :math:`x_u` of the users u who have
the item, from its known items, the parts of the new item are

.. math:: p_j = \sum_i |h_{ij}| p_i / \sum_i |h_{ij}|, \qquad q_j = \sum_u x_u / |\sum_u x_u|

All factors of items then take further steps of their training, as many as the share of the new likes is of its steps:
in a stream of likes, lists lose much where the factors stay, and nothing where the regression does. The factors of
users are what their items make them. New items that are folded in are the same without steps: their users count them,
and scores are divided by the lengths over all items, of which only the new ones are answered.

Items without likes whose features are known take part in no training and in no length: their scores follow from those
of other items by `air_recsys.models.content`, until they have likes and become new items. For users without likes
whose features are known lists are made by the shares of the users who have each item, and the same sum of how far the
likes of other users are from these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.ids import IdIndex
from air_recsys.data.interactions import Interactions
from air_recsys.data.likes import DISLIKED
from air_recsys.exceptions import DataError
from air_recsys.metrics.checks import Csr
from air_recsys.models.content import Content, most_liked_items, some_with_likes
from air_recsys.models.forgetting import Left, kept
from air_recsys.models.graph_ranker.factors import ItemFactors, continued_factors, user_factors
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    counted,
    entries_beside,
    interaction_pattern,
    item_gains,
    ones_of,
    own_items,
    strengths,
    with_kinds,
)
from air_recsys.models.graph_ranker.lists import best_lists, lists_of
from air_recsys.models.graph_ranker.regression import columns_of_items, normalised_items, regression_scorer
from air_recsys.models.graph_ranker.scorers import (
    ColdItems,
    FactorScorer,
    ProductScorer,
    ScaledColumns,
    Scorer,
    WeightedScorers,
)
from air_recsys.models.learned import Factors
from air_recsys.models.new_rows import check_signs
from air_recsys.models.partial_fit import merge
from air_recsys.models.ranking.lists import shares_of_users
from air_recsys.models.state import FittedState

_SCORED = 300  # users, or items, by whose scores the features of the others are judged
_SHARES = (0.02, 0.5)  # of the items that may be new in lists by which their place is found


class RankerState(NamedTuple):
    """A fitted `GraphRanker`, ready to score."""

    fitted: FittedState
    settings: RankerSettings
    scorers: WeightedScorers
    own: Csr  # how much each item of a user counts, (n_users, number of items scored)
    first: int = 0  # the first item that is answered: of those scored all, or new ones alone
    pairs: Csr | None = None  # the items of users that lists leave out; None: those of `own`

    described: UserShares | None = None  # of users without items

    def scores(self, users: np.ndarray) -> np.ndarray:
        """The scores of all items for some users, (b, n_items), by features of those without items."""
        scores = self.scorers.scores(users)[:, self.first :]
        if self.described is not None and (others := ~self.with_items(users)).any():
            scores[others] = self.described.of(users[others])
        return scores

    def best(
        self, users: np.ndarray, n: int, seen: Csr | None, allowed: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lists of some users, see `best_lists`."""
        if self.first:
            allowed = self.first + (np.arange(self.fitted.data.n_items) if allowed is None else allowed)
            if seen is not None:
                shape = len(users), self.scorers.n_items
                seen = sp.csr_array((seen.data, seen.indices + self.first, seen.indptr), shape=shape)
        items, scores = best_lists(self.scorers, users, n, seen=seen, allowed=allowed)
        if self.described is not None and (others := np.flatnonzero(~self.with_items(users))).size:
            hidden = None if seen is None else seen[others]
            found = lists_of(self.described.of(users[others]), n, 1.0, hidden, allowed)
            items[others], scores[others] = found
        return np.where(items < 0, -1, items - self.first), scores

    def seen(self, users: np.ndarray) -> Csr:
        """1 for each item that some users have, (b, n_items)."""
        own = (self.own if self.pairs is None else self.pairs)[users]
        return ones_of(own[:, self.first :] if self.first else own, self.fitted.data.n_items)

    def item_ids(self) -> np.ndarray:
        """The ids of all items scored."""
        ids = self.fitted.data.item_ids
        return np.concatenate([self.fitted.origin.data.item_ids, ids]) if self.first else ids

    def listed_scores(self, users: np.ndarray) -> np.ndarray:
        """What lists are made by, (b, n_items): scores, of users without items the share who have each item."""
        scores = self.scores(users)
        scores[~self.answered()[users]] = shares_of_users(self.fitted)
        return scores

    def probabilities(self, users: np.ndarray) -> np.ndarray:
        """The probabilities of `GraphRanker.predict_proba` of all items for some users, (b, n_items)."""
        assert self.fitted.calibration is not None
        return self.fitted.calibration.of_scores(self.scorers.scores(users), self.own[users])[:, self.first :]

    def with_items(self, users: np.ndarray | None = None) -> np.ndarray:
        """Whether each user, or each of some, has any item that is not cold; of others the scorers say nothing."""
        cold, own = self.scorers.cold, self.own if users is None else self.own[users]
        return np.diff((own if cold is None else own[:, cold.known]).indptr) > 0

    def answered(self) -> np.ndarray:
        """Whether scores tell of each user, by items or by features, (n_users,)."""
        with_items = self.with_items()
        return with_items if self.described is None else np.ones_like(with_items)

    def popularity(self) -> WeightedScorers:
        """The scores of one user of whom nothing is known: the share of the users who have each item."""
        shares = shares_of_users(self.fitted)
        one = np.ones((1, 1), dtype=np.float32)
        columns = ScaledColumns(shares[None].astype(np.float32), np.ones(shares.size))
        scorer = ProductScorer(sp.csr_array(one), columns, one[0])
        return WeightedScorers({"popular": scorer}, {"popular": 1.0}, self.fitted.data.n_items)


class UserShares(NamedTuple):
    """The share of users like a user without likes who have each item, see `air_recsys.models.content`."""

    features: np.ndarray  # of the users that are asked for, (n_users, g)
    weights: Callable[[np.ndarray], np.ndarray]  # of the likes of users that these follow from
    likes: Csr  # theirs, (n, n_items)
    shares: np.ndarray  # of all users, (n_items,)
    cold: ColdItems | None

    def of(self, users: np.ndarray) -> np.ndarray:
        """The shares for some users, (b, n_items)."""
        weights = self.weights(self.features[users].astype(np.float64)).T  # (b, n)
        found = weights @ self.likes + (1 - weights.sum(axis=1, keepdims=True)) * self.shares
        return found if self.cold is None else self.cold.among(found[:, self.cold.known])


def settings_of(state: FittedState) -> RankerSettings:
    """The settings that a fitted model was given or has selected."""
    return RankerSettings.of_values(state.chosen.values)


def ready_state(state: FittedState) -> RankerState:
    """A fitted model ready to score, made once."""
    return state.once("ranking", lambda: _ready(state))


def _ready(state: FittedState) -> RankerState:
    if state.alone == "item":
        return _of_items(state, _beside(state.origin, state.data))
    pattern, settings, data = _pattern_of(state), settings_of(state), state.data
    own = own_items(pattern, data, settings)
    if state.trained is not None:
        return _of_users(state, own)
    trend, cold, pairs = item_gains(data, settings), _cold_items(state), _pairs_of(data)
    beside = None if pairs is None else entries_beside(own, pairs)
    items, weights, served = _items_of(state), state.item_weights, own
    if cold is not None:
        known = cold.known
        pattern, served, trend = sp.csr_array(pattern[:, known]), sp.csr_array(own[:, known]), trend[known]
        beside = None if beside is None else sp.csr_array(beside[:, known])
        items = ItemFactors(items.sources[known], items.targets[known])
        weights = None if weights is None else _among(weights, known)

    scorers: dict[str, Scorer] = {}
    if settings.factor_weight:
        users = state.factors.user_factors
        scorers["factor"] = FactorScorer.of(users, items, settings.factor_temperature, trend)
    if settings.regression_weight:
        assert weights is not None
        scorers["regression"] = regression_scorer(pattern, served, weights, trend, settings)
    if beside is not None:
        scorers = {name: each.for_users(served, beside) for name, each in scorers.items()}
    weighted = WeightedScorers(scorers, settings.weights, data.n_items, cold=cold)
    return RankerState(state, settings, weighted, own, pairs=pairs, described=_user_shares(state, cold))


def _pairs_of(data: Interactions) -> Csr | None:
    """The items that lists leave out; None where these are all that count."""
    if data.kinds is None:
        return None
    disliked = {name: interaction_pattern(each) for name, each in data.kinds.beside.items() if name == DISLIKED}
    return with_kinds(interaction_pattern(data), disliked, {DISLIKED: 1.0}, 0.0)


def _items_of(state: FittedState) -> ItemFactors:
    assert state.source_factors is not None
    return ItemFactors(state.source_factors, state.factors.item_factors)


def _among(weights: Csr | np.ndarray, items: np.ndarray) -> Csr | np.ndarray:
    """The weights of a regression among some items."""
    outer = np.ix_(items, items)
    return weights[outer] if isinstance(weights, np.ndarray) else sp.csr_array(weights[outer])


def _blank_items(state: FittedState, data: Interactions) -> np.ndarray:
    """Which items of data that begin with those of a state have no factors there; none without features."""
    blank = np.zeros(data.n_items, dtype=bool)
    if state.features("item") is not None:
        targets = state.factors.item_factors
        blank[len(targets) :] = True
        blank[: len(targets)] = ~targets.any(axis=1)
    return blank


def _liked_items(data: Interactions) -> np.ndarray:
    return np.bincount(data.item_index, minlength=data.n_items) > 0


def _cold_items(state: FittedState) -> ColdItems | None:
    """The items without likes whose scores follow from features; None where there are none."""
    content, features = Content.of_values("item", state.chosen.values), state.features("item")
    places = np.flatnonzero(_blank_items(state, state.data) & ~_liked_items(state.data))
    if content is None or features is None or not places.size:
        return None
    known, values = np.setdiff1d(np.arange(state.data.n_items), places), features.values.astype(np.float64)
    sources = most_liked_items(state.data)
    weights = content.reach * content.solver(values[sources])(values[places])
    return ColdItems(places, known, np.searchsorted(known, sources), weights)


def _user_shares(state: FittedState, cold: ColdItems | None) -> UserShares | None:
    content, features = Content.of_values("user", state.chosen.values), state.features("user")
    if content is None or features is None:
        return None
    users, shares, values = some_with_likes(state.data), shares_of_users(state), features.values
    likes = interaction_pattern(state.data)[users]
    return UserShares(values, content.solver(values[users].astype(np.float64)), likes, shares, cold)


def _of_users(state: FittedState, own: Csr) -> RankerState:
    """New users alone, by how much each of their items counts."""
    trained, features, pairs = ready_state(state.origin), state.features("user"), _pairs_of(state.data)
    described = trained.described
    if described is not None and features is not None:
        described = described._replace(features=features.values)
    scorers = trained.scorers.for_users(own, None if pairs is None else entries_beside(own, pairs))
    return RankerState(state, trained.settings, scorers, own, pairs=pairs, described=described)


def _of_items(state: FittedState, whole: FittedState) -> RankerState:
    """New items alone, by a state that has them after the others."""
    return ready_state(whole)._replace(fitted=state, first=state.origin.data.n_items, described=None)


def _pattern_of(state: FittedState) -> Csr:
    """How much every pair of a state counts, made once."""
    return state.once("pattern", lambda: counted(state.data, settings_of(state)))


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

    With `rows`, (b, n_items), the values of the items of new users, these are folded in, and of `users` only the
    number counts. `seen`, (b, n_items), stores items to leave out, none of them 0; `allowed` are the items that a list
    may hold, ascending. Places without an item have -1 and -inf.
    """
    ranker = ready_state(model._fitted())
    n_items = ranker.fitted.data.n_items
    length = min(n, n_items if allowed is None else allowed.size)
    own = None if rows is None else strengths(rows, ranker.settings.strength)
    scorers = ranker.scorers if own is None else ranker.scorers.for_users(own)
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


def of_new_users(state: FittedState, data: Interactions) -> FittedState:
    """A state of new users alone, by what they have of the items."""
    state.check_whole()
    check_signs(state, data.ratings)
    assert state.source_factors is not None
    settings = settings_of(state)
    own = own_items(counted(data, settings), data, settings)
    users = {"user_factors": user_factors(own, state.source_factors), "user_biases": np.zeros(data.n_users)}
    folded = replace(state, data=data, factors=state.factors._replace(**users), named={}, trained=state)
    folded.once("ranking", lambda: _of_users(folded, own))  # which the next question asks for
    return folded


def of_new_items(state: FittedState, data: Interactions) -> FittedState:
    """A state of new items alone, by who has them."""
    state.check_whole()
    check_signs(state, data.ratings)
    whole, first = _beside(state, data), state.data.n_items
    targets, biases = (each[first:] for each in whole.factors.of("item"))
    factors = whole.factors._replace(item_factors=targets, item_biases=biases)
    folded = replace(state, data=data, factors=factors, named={}, trained=state)
    folded.once("ranking", lambda: _of_items(folded, whole))
    return folded


def _beside(state: FittedState, new: Interactions) -> FittedState:
    """A state with new items of its users after its own, by position: an id may be that of a known item."""
    known, times = state.data, None
    new = _of_kind(new, known)
    if known.timestamps is not None and new.timestamps is not None:
        times = np.concatenate([known.timestamps, new.timestamps])
    data = Interactions(
        np.concatenate([known.user_index, new.user_index]),
        np.concatenate([known.item_index, known.n_items + new.item_index]),
        np.concatenate([known.ratings, new.ratings]),
        known.users,
        IdIndex(np.arange(known.n_items + new.n_items), "item"),
        timestamps=times,
        weights=None if known.weights is None or new.weights is None else np.concatenate([known.weights, new.weights]),
        duplicates=None,
        allow_negative=True,
    )
    if known.item_features is not None and new.item_features is not None:
        both = [known.item_features.values, new.item_features.values]
        data.item_features = replace(known.item_features.grown(data.n_items), values=np.concatenate(both))
    return _followed(state, data, new.n_ratings)


def _of_kind(new: Interactions, known: Interactions) -> Interactions:
    """New likes that have their values where the known ones have them, as weights or as ratings."""
    if (new.weights is None) == (known.weights is None):
        return new
    ratings, weights = (new.ratings, np.maximum(new.ratings, 0)) if new.weights is None else (new.weights, None)
    pairs = new.user_index, new.item_index
    how: dict[str, Any] = {"timestamps": new.timestamps, "weights": weights}
    how |= {"duplicates": None, "allow_negative": True, "empty": True}
    found = Interactions(*pairs, ratings, new.users, new.items, **how)
    found.item_features, found.kinds = new.item_features, new.kinds
    return found


def with_likes(
    state: FittedState, new: Interactions, user_features: Any = None, item_features: Any = None
) -> FittedState:
    """A state with new likes, and features of new rows, taken in."""
    state.check_whole()
    check_signs(state, new.ratings)
    data, older = merge(state.data, _of_kind(new, state.data), (user_features, item_features))
    n_steps = _steps_due(int(state.chosen.values["n_steps"]), state.data.n_ratings, data.n_ratings)
    n_new_items = state.n_new_items + data.n_items - state.data.n_items
    grown = replace(state, named={}, n_new_items=n_new_items)
    grown.once("pattern", lambda: _pattern_of(state))
    return _followed(grown, data, int(np.count_nonzero(~older)), n_steps)


def without_likes(state: FittedState, left: Left) -> FittedState:
    """A state of what is left: users as their items make them, and new items as theirs, where one lost a like."""
    draft = kept(state, left)
    n_first = left.data.n_items - draft.n_new_items
    rows = left.items[:n_first] if (left.lost_by_items >= n_first).any() else left.items
    weights, sources = state.item_weights, state.source_factors
    assert sources is not None
    if weights is not None and rows.size < state.data.n_items:
        weights = _among(weights, rows)
    factors = draft.factors._replace(item_factors=draft.factors.item_factors[: rows.size])
    return _followed(replace(draft, factors=factors, item_weights=weights, source_factors=sources[rows]), left.data)


def _followed(state: FittedState, data: Interactions, n_added: int | None = None, n_steps: int = 0) -> FittedState:
    """A state of other likes, of whose items those of its weights and factors are the first.

    The other likes are those of the state and, at their end, `n_added` ones; None for any others.
    """
    settings, weights = settings_of(state), state.item_weights
    if data.timestamps is None and (settings.user_half_life or settings.item_trend):
        raise DataError("expected new likes with timestamps, as in the training, found none")
    has_kinds = data.kinds is not None
    if n_added is None or settings.strength or has_kinds:  # a further value changes the mean of its user
        pattern = counted(data, settings)
    else:
        pattern = _with_added(_pattern_of(state), data, n_added)
    own = own_items(pattern, data, settings)
    items = _items_of(state)
    blank = _blank_items(state, data)
    liked = _liked_items(data) if blank.any() else ~blank
    new = np.union1d(np.flatnonzero(blank & liked), np.arange(len(items.sources), data.n_items))
    if new.size:
        normalised = normalised_items(pattern, settings.regression_exponent, settings.regression_share)
        columns = columns_of_items(normalised, new, settings.regression_penalty)  # of H, (n_items, n_new)
        weights = None if weights is None else _grown(weights, columns, new)
        items = _grown_factors(items, columns, pattern, own, new)
    if n_steps:
        items = _continued(items, pattern, ~blank | liked, n_steps, data.n_ratings)
    if n_added is None or n_steps or settings.user_half_life or has_kinds:
        users = user_factors(own, items.sources)
    else:  # the others have the items that they had
        users = np.zeros((data.n_users, items.sources.shape[1]), np.float32)
        users[: state.data.n_users] = state.factors.user_factors
        changed = np.unique(data.user_index[data.n_ratings - n_added :])
        users[changed] = user_factors(own[changed], items.sources)
    factors = Factors(users, items.targets, np.zeros(data.n_users), np.zeros(data.n_items), 0.0)
    found = replace(state, data=data, factors=factors, item_weights=weights, source_factors=items.sources)
    found.once("pattern", lambda: pattern)
    return found


def _with_added(pattern: Csr, data: Interactions, n_added: int) -> Csr:
    """The pattern of likes, to which the last `n_added` were added, from that of the others: they need no sort."""
    begin, shape = data.n_ratings - n_added, (data.n_users, data.n_items)
    pairs = data.user_index[begin:], data.item_index[begin:]
    indptr = np.pad(pattern.indptr, (0, data.n_users - pattern.shape[0]), mode="edge")
    before = sp.csr_array((pattern.data, pattern.indices, indptr), shape=shape)
    found = sp.csr_array(before + sp.csr_array((np.ones(n_added, np.float32), pairs), shape=shape))
    found.data[:] = 1
    return found


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


def _continued(items: ItemFactors, pattern: Csr, trained: np.ndarray, n_steps: int, seed: int) -> ItemFactors:
    """The factors after further steps; those of items that are not trained stay."""
    if trained.all():
        return continued_factors(pattern, items, n_steps, seed)
    found = ItemFactors(*(each.copy() for each in items))
    own = ItemFactors(*(each[trained] for each in items))
    for each, further in zip(
        found, continued_factors(sp.csr_array(pattern[:, trained]), own, n_steps, seed), strict=True
    ):
        each[trained] = further
    return found


def _grown(weights: Csr | np.ndarray, columns: Csr, new: np.ndarray) -> Csr | np.ndarray:
    """H with columns, and rows, for new items."""
    n_items, others = columns.shape[0], np.setdiff1d(np.arange(columns.shape[0]), new)
    weights = weights if others.size == weights.shape[0] else _among(weights, others)
    if isinstance(weights, np.ndarray):
        grown = np.zeros((n_items, n_items), dtype=weights.dtype)
        grown[np.ix_(others, others)] = weights
        grown[:, new] = columns.toarray()
        grown[np.ix_(new, others)] = grown[np.ix_(others, new)].T
        return grown
    known, places = columns[others], np.argsort(np.concatenate([others, new]))
    whole = sp.csr_array(sp.block_array([[weights, known], [known.T, columns[new]]], format="csr"))
    return whole if new[0] == others.size else sp.csr_array(whole[places][:, places])


def _grown_factors(items: ItemFactors, columns: Csr, pattern: Csr, own: Csr, new: np.ndarray) -> ItemFactors:
    """The factors of the known items and of new ones."""
    others = np.setdiff1d(np.arange(columns.shape[0]), new)
    known = ItemFactors(*(each[others] for each in items))
    of_known = abs(columns[others]).T  # (n_new, n_known)
    totals = np.maximum(np.asarray(of_known.sum(axis=1), dtype=np.float64), np.finfo(np.float32).tiny)
    sources = (of_known @ known.sources) / totals[:, None]
    users = user_factors(sp.csr_array(own[:, others]), known.sources)
    added = ItemFactors(sources.astype(np.float32), user_factors(sp.csr_array(pattern[:, new].T), users))
    places = np.argsort(np.concatenate([others, new]))
    return ItemFactors(*(np.concatenate(parts)[places] for parts in zip(known, added, strict=True)))


def of_likes(data: Interactions) -> Interactions:
    """Interactions without what features added after the last user and the last item with likes."""
    sizes = [
        len(index) if features is None else int(rows.max()) + 1
        for index, features, rows in (
            (data.users, data.user_features, data.user_index),
            (data.items, data.item_features, data.item_index),
        )
    ]
    return data if sizes == [data.n_users, data.n_items] else data.over(*map(np.arange, sizes))


def with_content(state: FittedState, data: Interactions, seed: int) -> FittedState:
    """A state of `of_likes` with all users and items of the data, and how those without likes follow from features."""
    rng, values, told = np.random.default_rng(seed), dict(state.chosen.values), ""
    if data.item_features is not None:
        sources, ranker = most_liked_items(data), ready_state(state)
        asked = rng.permutation(np.flatnonzero(ranker.with_items()))[:_SCORED]
        scores, seen = ranker.scorers.scores(asked)[:, sources], ranker.own[asked].toarray()[:, sources] > 0
        known = data.item_features.values[sources].astype(np.float64)
        if (of_items := Content.of(known, scores.T)) is not None:
            share = float(np.clip(1 - np.mean(_liked_items(data)), *_SHARES))
            of_items = of_items.placed(known, scores, seen, share, seed)
            values |= of_items.values_of("item")
            told += f"; features of items tell {of_items.gain:.0%} of scores, new ones count {of_items.reach:.2f}"
    if data.user_features is not None:
        likes = interaction_pattern(data)
        some, columns = some_with_likes(data), rng.permutation(np.flatnonzero(_liked_items(data)))[:_SCORED]
        known = data.user_features.values[some].astype(np.float64)
        values_of = likes[some][:, columns].toarray().astype(np.float64)
        if (of_users := Content.of(known, values_of, sure=True)) is not None:
            values |= of_users.values_of("user")
            told += f"; features of users tell {of_users.gain:.1%} of likes"
    n_new = data.n_users - state.data.n_users, data.n_items - state.data.n_items

    def padded(rows: np.ndarray, n_rows: int) -> np.ndarray:
        return np.pad(rows, [(0, n_rows), *[(0, 0)] * (rows.ndim - 1)])

    factors, weights = state.factors, state.item_weights
    if isinstance(weights, np.ndarray):
        weights = np.pad(weights, (0, n_new[1]))
    elif weights is not None:
        weights = weights.copy()
        weights.resize((data.n_items, data.n_items))
    users, items, user_biases, item_biases = map(padded, factors.arrays(), n_new * 2)
    assert state.source_factors is not None
    return replace(
        state,
        data=data,
        factors=Factors(users, items, user_biases, item_biases, factors.mean),
        item_weights=weights,
        source_factors=padded(state.source_factors, n_new[1]),
        chosen=replace(state.chosen, values=values, line=state.chosen.line + told.replace("%", " %")),
    )
