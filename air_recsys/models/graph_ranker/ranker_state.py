"""What a fitted `GraphRanker` scores with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.graphs import SimilarityGraph
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker import regression, smoothings
from air_recsys.models.graph_ranker.factors import over_factors
from air_recsys.models.graph_ranker.smoothings import RankerSettings, Term, interaction_pattern
from air_recsys.models.graph_ranker.times.recency import own_items
from air_recsys.models.rows import Side
from air_recsys.models.state import FittedState


class RankerState(NamedTuple):
    """A fitted `GraphRanker`, ready to score."""

    fitted: FittedState
    settings: RankerSettings
    sources: np.ndarray  # of the factors, (n_items, r)
    terms: Mapping[str, Term]  # that count, by name
    own: Csr  # how much each item of a user counts, (n_users, n_items)


def ranker_settings(state: FittedState) -> RankerSettings:
    """Return the settings in the last row of the history, which are those chosen."""
    # Files from before the regression, and from before the factors were trained, have no settings of these.
    defaults = RankerSettings(regression_weight=0.0, factor_temperature=0.0)._asdict()
    chosen = state.history.iloc[-1]
    values: dict[str, Any] = {name: type(default)(chosen.get(name, default)) for name, default in defaults.items()}
    return RankerSettings(**values)


def sources_before(state: FittedState) -> np.ndarray:
    """Return the sources of files from before the factors were trained: those of items were axes times powers."""
    counts = smoothings.popularity(interaction_pattern(state.data))
    power = float(state.history.iloc[-1]["factor_target"]) - 0.5
    return state.factors.item_factors * smoothings.to_power(counts, power)[:, None]


def ready_state(state: FittedState) -> RankerState:
    """Return a fitted model ready to score, made once."""
    return state.once("ranking", lambda: _ranker_state(state))


def ranker_scores(state: FittedState, users: np.ndarray) -> np.ndarray:
    """Return the scores of all items for some users, shape (b, n_items)."""
    ranking = ready_state(state)
    return smoothings.blend(ranking.terms, ranking.settings.weights, users, state.data.n_items)


def with_items(state: FittedState) -> np.ndarray:
    """Return whether each user has any item, (n_users,); of those without any the scores say nothing."""
    return state.once("users with items", lambda: np.diff(state.statistics.seen.indptr) > 0)


def listed_scores(state: FittedState, users: np.ndarray) -> np.ndarray:
    """Return what lists are made by, (b, n_items): scores, of users without items how many have each item."""
    scores = ranker_scores(state, users)
    scores[~with_items(state)[users]] = state.statistics.item_counts
    return scores


def ranker_graph(state: FittedState, side: Side) -> SimilarityGraph:
    """Return the graph of users or of items, made when it is first asked for: data and settings are all it needs."""
    stored = state.graph(side)
    return state.once(f"{side} graph", lambda: _new_graph(state, side)) if stored is None else stored


def _new_graph(state: FittedState, side: Side) -> SimilarityGraph:
    pattern, settings = interaction_pattern(state.data), ranker_settings(state)
    make, power = (
        (smoothings.user_graph, settings.user_power)
        if side == "user"
        else (smoothings.item_graph, settings.item_power)
    )
    return SimilarityGraph(
        smoothings.raised(make(pattern, settings), power),
        state.data.user_ids if side == "user" else state.data.item_ids,
        side,
    )


def _ranker_state(state: FittedState) -> RankerState:
    pattern, settings, factors = interaction_pattern(state.data), ranker_settings(state), state.factors
    own, trend = own_items(pattern, state.data, settings), factors.item_biases
    assert state.source_factors is not None

    def adjacency(side: Side) -> Csr:
        return sp.csr_array(ranker_graph(state, side).to_scipy(), dtype=np.float32)

    def regression_of() -> Term:
        assert state.item_weights is not None
        return regression.over_regression(pattern, own, state.item_weights, trend, settings)

    makers: dict[str, Callable[[], Term]] = {
        "item": lambda: smoothings.over_items(pattern, adjacency("item"), settings),
        "user": lambda: smoothings.over_users(pattern, adjacency("user"), settings),
        "factor": lambda: over_factors(factors.user_factors, factors.item_factors, settings.factor_temperature, trend),
        "regression": regression_of,
    }
    return RankerState(state, settings, state.source_factors, {name: makers[name]() for name in settings.weights}, own)
