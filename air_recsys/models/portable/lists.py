"""The numbers of the lists of new users of a `GraphRanker`, see `air_recsys.models.graph_ranker.users`."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import ParameterError
from air_recsys.models.graph_ranker.pattern import interaction_pattern, item_gains
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.graph_ranker.regression import item_degrees


def portable_lists(model: GraphRanker) -> dict[str, Any]:
    """Return what the scores of a new user and their contributions follow from.

    Returns
    -------
    dict
        regression (n (n + 1) / 2,) : the lower triangle of H, row after row, or None where it does not count
        left, right (n,) : what rows and columns of H are multiplied by; regression_weight
        sources, targets (n, r) : the factors, or None; factor_weight, temperature
        gains (n,) : what exponentials of the factors are multiplied by, or None

    Raises
    ------
    ParameterError
        Where the regression is that of more items than one matrix of all pairs is inverted for.
    """
    state, settings = model._fitted(), model.settings_
    found: dict[str, Any] = {"kind": "lists"} | dict.fromkeys(
        ("regression", "left", "right", "sources", "targets", "gains")
    )
    found |= {"regression_weight": settings.regression_weight, "factor_weight": settings.factor_weight}
    found["temperature"], gains = settings.factor_temperature, np.exp(item_gains(state.data, settings))
    if settings.regression_weight:
        if not isinstance(state.item_weights, np.ndarray):
            raise ParameterError(
                f"expected a regression of all pairs of items, found one of neighbours of {state.data.n_items} items"
            )
        degrees = item_degrees(interaction_pattern(state.data), settings)
        found["regression"] = state.item_weights[np.tril_indices(state.data.n_items)]
        found["left"], found["right"] = (
            degrees**-settings.regression_source,
            degrees**-settings.regression_target * gains,
        )
    if settings.factor_weight:
        found["sources"], found["targets"], found["gains"] = state.source_factors, state.factors.item_factors, gains
    return found
