"""`portable_fold_in`: what a page or another program needs to take in new users by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import ParameterError
from air_recsys.models.base import Recommender
from air_recsys.models.engines.equations.objective_rows import ObjectiveRows
from air_recsys.models.engines.equations.posterior_rows import PosteriorRows
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.limits import BINARY, is_binary
from air_recsys.models.portable.lists import portable_lists
from air_recsys.models.portable.objective import portable_objective
from air_recsys.models.portable.posterior import portable_posterior
from air_recsys.models.state import FittedState
from air_recsys.models.trained import TrainedRecommender

_MOST_VALUES = 20  # of ratings that are told apart


def portable_fold_in(model: Recommender) -> dict[str, Any]:
    """Return numbers and arrays that the fold-in of a new user, its scores and their reasons follow from.

    Parameters
    ----------
    model : Recommender

    Returns
    -------
    dict
        "kind" says which equations they are of: "posterior", "objective" or "lists", whose modules beside this one
        name the arrays, one row an item in the order of the model. Of models of ratings "range" is the scale, "values"
        the ratings that there are (None where they are many), and "limit" what `clip` does to scores: "none", "range"
        or "pushed".

    Raises
    ------
    NotFittedError
        Where the model is not fitted.
    ParameterError
        For a model whose new users do not follow from their own items by such equations.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> ratings = np.kron([[5.0, 1.0], [2.0, 4.0]], np.ones((3, 4)))
    >>> found = portable_fold_in(AIR.for_ratings(n_factors=2, random_state=0, device="cpu").fit(ratings))
    >>> found["kind"], found["range"], found["items"].shape  # one draw, 8 items, two factors and a bias
    ('posterior', [1.0, 5.0], (1, 8, 3))
    """
    state = model._fitted()
    if isinstance(model, GraphRanker):
        return portable_lists(model)
    if not isinstance(model, TrainedRecommender):
        raise ParameterError(f"expected a model that folds new users in, found {type(model).__name__}")
    solver = state.row_solver("user")  # refuses rows that are tied to all others
    found = _equations(state, solver)
    return found | _scale(state, model.clip)


def _equations(state: FittedState, solver: Any) -> dict[str, Any]:
    if isinstance(state.equations, PosteriorRows):
        return portable_posterior(state, state.equations, solver)
    assert isinstance(state.equations, ObjectiveRows)
    return portable_objective(state, state.equations, solver)


def _scale(state: FittedState, clip: Any) -> dict[str, Any]:
    low, high = (float(end) for end in state.rating_scale)
    values, limit = np.unique(state.data.ratings), "range" if clip else "none"
    if clip == BINARY:
        pushes = is_binary(state.data.ratings)
        limit = "pushed" if pushes else "none" if low == high else "range"
    few = values.size <= _MOST_VALUES
    return {"range": [low, high], "values": values.astype(float).tolist() if few else None, "limit": limit}
