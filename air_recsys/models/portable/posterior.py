"""The numbers of the fold-in by a posterior, see `air_recsys.models.engines.equations.posterior_rows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.models.engines.equations.posterior_rows import PosteriorRows, PosteriorSolver, draws_of_new_rows
from air_recsys.models.state import FittedState


def portable_posterior(state: FittedState, equations: PosteriorRows, solver: PosteriorSolver) -> dict[str, Any]:
    """Return what the mean of a new user, its deviations and its contributions follow from.

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
    """
    arrays, n_items = equations.arrays, state.data.n_items
    draws = arrays.known("user", np.arange(n_items), new=True)
    covariances = draws[0].columns.covariance
    k, n_known = arrays.user_basis.shape[1], arrays.n_known("user")
    weights = np.stack([_with_a_degree(draw.weights.numpy()) for draw in draws])
    weights = np.delete(weights, slice(k, k + n_known), axis=1)  # new users are average in what is known of users
    basis = arrays.user_basis.astype(np.float64)
    if len(draws) == 1 and k > weights.shape[2]:
        basis, weights = basis @ weights[0, :k], np.concatenate([np.eye(weights.shape[2]), weights[0, k:]])[None]
    found: dict[str, Any] = {
        "kind": "posterior",
        "unit": float(arrays.scales[0]),
        "mean": float(state.factors.mean),
        "log_degree": float(arrays.log_degrees[0]),
        "items": np.stack([draw.columns.mean.numpy() for draw in draws]),
        "covariances": None if covariances is None else covariances.numpy(),
        "noise": draws[0].noise.numpy(),
        "basis": basis,
        "weights": weights,
        "precisions": np.stack([draw.precision.numpy() for draw in draws]),
        **dict.fromkeys(("factors", "biases", "maps", "errors", "shifts", "spreads")),
    }
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
    """Return W (k, d) with a row of 0 for the degree where it has that of the constant alone."""
    return weights if len(weights) > 1 else np.concatenate([np.zeros_like(weights), weights])
