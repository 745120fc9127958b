"""`portable_fold_in`: what a page or another program needs to take in new users by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError
from air_recsys.models.base import Recommender
from air_recsys.models.carried import CarriedResiduals
from air_recsys.models.engines.objective_rows import ObjectiveRows
from air_recsys.models.engines.posterior_rows import PosteriorRows, PosteriorSolver, draws_of_new_rows
from air_recsys.models.graph_ranker.inputs import counted, item_gains
from air_recsys.models.graph_ranker.ranker import GraphRanker
from air_recsys.models.graph_ranker.regression import item_degrees
from air_recsys.models.ratings import BINARY, is_binary
from air_recsys.models.rows import LeastSquaresRows, made_definite
from air_recsys.models.state import FittedState
from air_recsys.models.trained import TrainedRecommender

_MOST_VALUES = 20  # of ratings that are told apart


def portable_fold_in(model: Recommender) -> dict[str, Any]:
    """Numbers and arrays that the fold-in of a new user, its scores and their reasons follow from.

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
    """
    state = model._fitted()
    state.check_whole()
    if isinstance(model, GraphRanker):
        return portable_lists(model)
    if not isinstance(model, TrainedRecommender):
        raise ParameterError(f"expected a model that folds new users in, found {type(model).__name__}")
    solver: Any = state.row_solver("user")  # refuses rows that are tied to all others
    if isinstance(state.equations, PosteriorRows):
        found = portable_posterior(state, state.equations, solver)
    else:
        assert isinstance(state.equations, ObjectiveRows)
        found = portable_objective(state, state.equations, solver)
    return found | _scale(state, model.clip)


def _scale(state: FittedState, clip: Any) -> dict[str, Any]:
    low, high = (float(end) for end in state.rating_scale)
    values, limit = np.unique(state.data.ratings), "range" if clip else "none"
    if clip == BINARY:
        pushes = is_binary(state.data.ratings)
        limit = "pushed" if pushes else "none" if low == high else "range"
    few = values.size <= _MOST_VALUES
    return {"range": [low, high], "values": values.astype(float).tolist() if few else None, "limit": limit}


def portable_posterior(state: FittedState, equations: PosteriorRows, solver: PosteriorSolver) -> dict[str, Any]:
    """The numbers that the mean of a new user, its deviations and its contributions follow from.

    Returns
    -------
    dict
        unit, mean : of the ratings; log_degree : the mean logarithm of users' numbers of ratings
        items (s, n, d) : factors and bias of each item, by draw; one draw, the means, where covariances stand beside
        covariances (n, d (d + 1) / 2) : upper triangles, or None
        noise (n,) : variance of a rating of each item
        basis (m, k), weights (s, k + 2, d), precisions (s, d, d) : of the prior, of the m items that were trained
        factors (n, r), biases (n,), maps (s, d - 1, r), errors (s, d) : of draws alone, else None: what scores are
        made of, and the numbers that a new user is drawn with
        shifts, spreads (n,) : of models that know of time, else None: what items add to a rating at the end of the
        training, and the variance of what items and users add at any time
    strength, near_starts (n + 1,), near_items, near_weights : of models whose item graph carries residuals, else None:
        see `air_recsys.nn.residuals`; the items near each, one item after the other, and the edges to them
    near_features (n, g), lasting : features of the items whose products are a part beside the graph, and what ratings
        of one moment share, else None
    """
    if state.chosen.kernels is not None:
        raise ParameterError(
            "expected a model without kernels of given similarities, found one with them: fold_in solves it in Python"
        )
    arrays, n_items = equations.arrays, state.data.n_items
    draws = arrays.draws("user", np.arange(n_items), new=True)
    covariances = draws[0].covariances
    k, n_known = arrays.user_basis.shape[1], arrays.n_known("user")
    weights = np.stack([_with_a_degree(draw.weights) for draw in draws])
    weights = np.delete(weights, slice(k, k + n_known), axis=1)  # new users are average in what is known of users
    basis = arrays.user_basis.astype(np.float64)
    if len(draws) == 1 and k > weights.shape[2]:
        basis, weights = basis @ weights[0, :k], np.concatenate([np.eye(weights.shape[2]), weights[0, k:]])[None]
    found: dict[str, Any] = {
        "kind": "posterior",
        "unit": float(arrays.scales[0]),
        "mean": float(state.factors.mean),
        "log_degree": float(arrays.log_degrees[0]),
        "items": np.stack([draw.means for draw in draws]),
        "covariances": covariances,
        "noise": draws[0].noise,
        "basis": basis,
        "weights": weights,
        "precisions": np.stack([draw.precision for draw in draws]),
        **dict.fromkeys(("factors", "biases", "maps", "errors", "shifts", "spreads")),
        **dict.fromkeys(("strength", "near_starts", "near_items", "near_weights", "near_features", "lasting")),
    }
    if isinstance(state.carried, CarriedResiduals):
        near, found["strength"] = state.carried.processes.asked, state.carried.processes.strength
        found["near_features"], lasting = state.carried.processes.features, state.carried.processes.lasting
        found["lasting"] = None if lasting is None else lasting.strength
        found |= {"near_starts": near.indptr, "near_items": near.indices, "near_weights": near.data}
    if covariances is None:
        factors, maps = state.factors, np.stack(solver.maps)
        found |= {"factors": factors.item_factors, "biases": factors.item_biases, "maps": maps}
        found["errors"] = draws_of_new_rows(maps.shape[0], arrays.users.shape[-1])
    if equations.drift is not None:
        assert state.data.timestamps is not None
        items, stranger = np.arange(n_items), np.full(n_items, state.data.n_users)
        now = np.full(n_items, float(state.data.timestamps.max()))
        found["shifts"] = equations.drift.at(stranger, items, now)[0]
        found["spreads"] = equations.drift.variances(stranger, items)
    return found


def _with_a_degree(weights: np.ndarray) -> np.ndarray:
    """W (k, d) with a row of 0 for the degree where it has that of the constant alone."""
    return weights if len(weights) > 1 else np.concatenate([np.zeros_like(weights), weights])


_MOST_EDGES = 20_000
_LEAST = 1e-11  # eigenvalue of the equations without ratings, as a fraction of what is largest in those with one


def portable_objective(state: FittedState, equations: ObjectiveRows, solver: LeastSquaresRows) -> dict[str, Any]:
    """The numbers that the row of a new user and its contributions follow from.

    Returns
    -------
    dict
        factors (n, r) : of the items; offsets (n,) : what their scores start from; mean : the part of it of all items
        base (r, r) : the equations of a user without ratings; unobserved : what a pair without a rating weighs
        bias_decay : a number, or None for users without a bias
        pull (r, r), edge_strength : what the edges of the item graph add, for contributions
        edges (3, e) : both ends and the weight in the objective of each of these edges, the 20,000 strongest

    Raises
    ------
    ParameterError
        Where the equations of a user without ratings are singular.
    """
    factors = solver.others.astype(np.float64)
    base = made_definite(solver.penalty + solver.unobserved_weight * (factors.T @ factors))
    values = np.linalg.eigvalsh(base)
    if values[0] < _LEAST * max(values[-1], np.square(factors).sum(axis=1).max()):
        raise ParameterError(
            "expected a model whose new users are held by a weight decay or a prior, found equations that are "
            "singular without ratings: fold_in solves them in Python"
        )
    shared = equations.of_users(state)
    return {
        "kind": "objective",
        "mean": float(state.factors.mean),
        "factors": solver.others,
        "offsets": solver.offsets,
        "base": base,
        "unobserved": float(solver.unobserved_weight),
        "bias_decay": None if solver.bias_decay is None else float(solver.bias_decay),
        "pull": shared.pull,
        "edge_strength": float(shared.item_edges.strength),
        "edges": _strongest(shared.item_edges.adjacency),
    }


def _strongest(adjacency: sp.csr_array) -> np.ndarray:
    upper = sp.triu(adjacency, k=1).tocoo()
    best = np.argsort(np.negative(upper.data), kind="stable")[:_MOST_EDGES]
    return np.stack([upper.row[best], upper.col[best], upper.data[best]]).astype(np.float64)


def portable_lists(model: GraphRanker) -> dict[str, Any]:
    """The numbers that the scores of a new user and their contributions follow from.

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
        degrees = item_degrees(counted(state.data, settings), settings.regression_exponent, settings.regression_share)
        found["regression"] = state.item_weights[np.tril_indices(state.data.n_items)]
        found["left"], found["right"] = (
            degrees**-settings.regression_source,
            degrees**-settings.regression_target * gains,
        )
    if settings.factor_weight:
        found["sources"], found["targets"], found["gains"] = state.source_factors, state.factors.item_factors, gains
    return found
