r"""`explain`: one score of a fitted model as an `Explanation`.

A score is :math:`\mu + b_u + c_i + p \cdot q`, and its last summand comes from rated items, similar users and the
choice of items; `objective_contributions` and `posterior_contributions` of `air_recsys.models.engines.equations` say
how much of it from which. Nothing here is causal: it says how the fitted equations add up, with all other users and
all items held fixed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from air_recsys.models.explanation.explanation import Explanation
from air_recsys.models.explanation.tables import Labels, Similarities, Tables, check_labels, label_of
from air_recsys.models.limits import Clip
from air_recsys.models.pairs import times_of
from air_recsys.models.state import FittedState, RowEquations
from air_recsys.storage.validation import check_integer


def explain(
    state: FittedState,
    equations: RowEquations,
    pair: tuple[Hashable, Hashable],
    n: int,
    labels: Labels | None,
    *,
    clips: Clip,
    similarities: Similarities,
    timestamp: Any = None,
) -> Explanation:
    """Return where the score of a pair (user id, item id) comes from; see `AIR.explain`.

    `similarities` are the graphs of users and of items that `similar_users` and `similar_items` look at.
    """
    check_integer("n", n, minimum=1)
    user, item = state.data.users.place(pair[0]), state.data.items.place(pair[1])
    names, factors = check_labels(labels), state.factors
    from_sources = equations.contributions(state, user, item)
    tables = Tables(state, from_sources.sources, n, names, clips, similarities)
    rated_items, similar_users = np.split(from_sources.of_sources, [from_sources.sources.rated.size])
    offsets = factors.mean, float(factors.user_biases[user]), float(factors.item_biases[item])
    personal = float(factors.user_factors[user] @ factors.item_factors[item].astype(np.float64))
    place, times = (np.array([user]), np.array([item])), times_of(state, timestamp, 1)
    of_time = 0.0 if times is None or state.drift is None else float(state.drift.at(*place, times)[0][0])
    unlimited = sum(offsets) + personal + of_time
    return Explanation(
        *pair,
        label_of(names, pair[1]),
        float(state.scores(*place, clips, times)[0]),
        *offsets,
        pattern=from_sources.pattern,
        user_features=tables.features("user", from_sources.of_user_features),
        rated_items=tables.items(item, rated_items),
        similar_users=tables.users(user, item, similar_users),
        graph_edges=tables.edges(*from_sources.item_edges, from_sources.gains, from_sources.scores),
        item_features=tables.features("item", from_sources.of_item_features),
        time=of_time,
        remainder=personal - from_sources.explained,
        clipping=float(state.limited(np.array(unlimited), clips)) - unlimited,
    )
