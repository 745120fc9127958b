r"""Contributions to a personal score under AIR's objective: rated items, similar users, and the remainder.

The score of user u for item i is :math:`\mu + b_u + c_i + p \cdot q` with the factors p of the user and q of the item.
In the unit of the ratings and times n_users n_items, the objective of `AIR` is quadratic in p with all else held fixed
(`air_recsys.models.engines.objective_rows`), so its minimum :math:`p^*` solves a linear system:

.. math::
    M p^* = \sum_{j\in N} w_j d_j q_j + \rho \sum_k a_k G p_k, \qquad d_j = y_j - \mu - b_u - c_j

over the rated items N with weights w (1 where none are given) and deviations d from what the biases say, and over the
neighbours k in the user graph with edge weights a; :math:`G = V^\top V` is the Gram matrix of the item factors V,
:math:`\rho` the strength of the user graph, and

.. math::
    M = \sum_{j\in N} w_j q_j q_j^\top + \omega\sum_{j\notin N} q_j q_j^\top + P + \sigma V^\top (D - A) V
        + \rho\sum_k a_k G

with the penalty P of the row, and the item graph's adjacency A, degrees D and strength :math:`\sigma`. Hence

.. math::
    p \cdot q = \underbrace{\sum_j w_j d_j\, q^\top M^{-1} q_j}_{\text{rated items}}
        + \underbrace{\sum_k \rho\, a_k\, q^\top M^{-1} G p_k}_{\text{similar users}}
        + \underbrace{(p - p^*)\cdot q}_{\text{remainder}}

is exact. A rated item speaks for the score where it was rated above the biases' expectation (d > 0) and is alike
(:math:`q^\top M^{-1} q_j > 0`). The remainder is small where training has settled.

**The way through the item graph.** Let :math:`M_0 = M + \sigma V^\top A V`: items keep their degree but hear nothing
of their neighbours. Then :math:`M^{-1} = M_0^{-1} + M_0^{-1}\,\sigma V^\top A V\,M^{-1}`, and every contribution is
what arrives directly (the first term) plus what has passed an edge (the second, ``by_graph``). Over all sources the
second terms are

.. math:: \sum_{l,m} \sigma A_{lm}\, g_l\, x_m, \qquad g = V M_0^{-1} q, \quad x = V p^*,

one summand for each edge on which the user's score x of the neighbour m pulls that of the item l, counted as much as
item l counts for q (:math:`g_l`). This sum over edges is another view of the contributions, not a further part.

**The penalty.** P is the weight decay, as in fold-in. Models without decay are regularized by their depth alone: their
trained rows lie in the span of the large factors, so P is :math:`\varepsilon S^{-1}`, S the second moment of the user
factors and :math:`\varepsilon` a hundred-thousandth of the mean squared rating. Rows that `AIR.partial_fit` has solved
obey the larger penalty of fold-in. Of the two, each user is explained by the one whose :math:`p^*` is closer to p, in
the scores of all items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from air_recsys.models.rows import Edges, LeastSquaresRows, ScoreContributions, Sources, made_definite, span_penalty
from air_recsys.models.state import FittedState

_NOISE = 1e-5  # epsilon, as a fraction of the mean squared rating


class Equations(NamedTuple):
    """The part of the equations that all users of a model share."""

    solver: LeastSquaresRows
    items: np.ndarray  # (n_items, r), V
    gram: np.ndarray  # (r, r), G
    penalties: list[np.ndarray]  # (r, r) each, P + sigma V^T (D - A) V
    pull: np.ndarray  # (r, r), sigma V^T A V
    item_edges: Edges  # A and sigma
    user_edges: Edges  # a and rho


class Row(NamedTuple):
    """The equations of one user."""

    sources: Sources
    summands: np.ndarray  # (r, N + K), of the right-hand side
    matrix: np.ndarray  # (r, r), M
    solution: np.ndarray  # (r,), p*


def contributions_of(state: FittedState, shared: Equations, user: int, item: int) -> ScoreContributions:
    """The sources of the personal score of a pair."""
    row, own = equation_of(state, shared, user), state.factors.item_factors[item].astype(np.float64)
    reach = np.linalg.solve(row.matrix, own)  # M^-1 q
    alone = np.linalg.solve(row.matrix + shared.pull, own)  # M_0^-1 q
    of_sources = row.summands.T @ np.column_stack([reach, reach - alone])
    scores = shared.items @ row.solution
    gains, no_features = shared.items @ alone, np.empty(0)
    return ScoreContributions(row.sources, 0.0, of_sources, shared.item_edges, gains, scores, no_features, no_features)


def equations(
    state: FittedState, solver: LeastSquaresRows, user_edges: Edges, item_edges: Edges, *, decays: bool
) -> Equations:
    """The part of the equations that all users share, of whose new ones the solver is.

    Factors that are trained with weight decay, `decays`, have no other penalty.
    """
    items, users = solver.others.astype(np.float64), state.factors.user_factors
    pull = item_edges.strength * (items.T @ (item_edges.adjacency @ items))
    penalties = [solver.penalty]
    if not decays and users.any():
        degrees = item_edges.strength * item_edges.adjacency.sum(axis=1)
        span = span_penalty(users, _NOISE * float(np.mean(state.data.ratings**2)))  # epsilon S^-1
        penalties.append(span + items.T @ (degrees[:, None] * items) - pull)
    return Equations(solver, items, items.T @ items, penalties, pull, item_edges, user_edges)


def equation_of(state: FittedState, shared: Equations, user: int) -> Row:
    """The equations of one user, under the penalty that explains its factors best."""
    adjacency, strength = shared.user_edges
    span = slice(adjacency.indptr[user], adjacency.indptr[user + 1])
    neighbors, ties = adjacency.indices[span], strength * adjacency.data[span]

    sources, factors = state.sources(user, neighbors), state.factors.user_factors
    inputs, unobserved = shared.items[sources.rated], shared.solver.unobserved_weight
    pulls = ties[:, None] * (state.origin.factors.user_factors[neighbors] @ shared.gram)  # (K, r)
    summands = np.vstack([(sources.weights * sources.deviations)[:, None] * inputs, pulls]).T
    base = (inputs.T * (sources.weights - unobserved)) @ inputs + (unobserved + ties.sum()) * shared.gram
    matrices = [made_definite(base + penalty) for penalty in shared.penalties]
    solved = [(matrix, np.linalg.solve(matrix, summands.sum(axis=1))) for matrix in matrices]

    def distance(solution: tuple[np.ndarray, np.ndarray]) -> float:
        gap = factors[user] - solution[1]
        return float(gap @ shared.gram @ gap)

    return Row(sources, summands, *min(solved, key=distance))
