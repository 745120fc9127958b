"""The numbers of the fold-in under AIR's objective, see `air_recsys.models.engines.equations.objective_rows`."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError
from air_recsys.models.engines.equations.objective_rows import ObjectiveRows
from air_recsys.models.rows import LeastSquaresRows, made_definite
from air_recsys.models.state import FittedState

_MOST_EDGES = 20_000
_LEAST = 1e-11  # eigenvalue of the equations without ratings, as a fraction of what is largest in those with one


def portable_objective(state: FittedState, equations: ObjectiveRows, solver: LeastSquaresRows) -> dict[str, Any]:
    """Return what the row of a new user and its contributions follow from.

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
