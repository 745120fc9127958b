r"""Explanations: a score as a sum over rated items, similar users, and what is left.

The score of user u for item i is :math:`\mu + b_u + c_i + p \cdot q` with the factors p of the user and q of the item.
In the unit of the ratings and times n_users n_items, the objective of `AIR` is quadratic in p with all else held fixed
(`air_recsys.models.fold_in`), so its minimum :math:`p^*` solves a linear system:

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

**With a posterior** the user's equations are those of `air_recsys.models.posterior_rows`. There are no graphs in them,
and one part more: what the pattern says, the choice of the items that the user has rated.

Nothing here is causal: it says how the fitted equations add up, with all other users and all items held fixed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import ParameterError, UnknownIdError
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.explanation import Explanation
from air_recsys.models.explanation_tables import Labels, Tables, check_labels, label_of
from air_recsys.models.fold_in import RowSolver, made_definite, span_penalty
from air_recsys.models.posterior_rows import score_parts
from air_recsys.validation import check_integer

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

_NOISE = 1e-5  # epsilon, of the mean squared rating


class Edges(NamedTuple):
    """A learned graph, and the strength of its energy against the sum of squared errors."""

    adjacency: sp.csr_array
    strength: float


class Equations(NamedTuple):
    """What the equations of all users of a model share."""

    solver: RowSolver  # whose model this is of
    items: np.ndarray  # (n_items, r), V
    gram: np.ndarray  # (r, r), G
    penalties: list[np.ndarray]  # (r, r) each, P + sigma V^T (D - A) V
    pull: np.ndarray  # (r, r), sigma V^T A V
    item_edges: Edges  # A and sigma
    user_edges: Edges  # a and rho


class Sources(NamedTuple):
    """N ratings and K neighbours of a user."""

    rated: np.ndarray  # (N,), indices of items
    ratings: np.ndarray  # (N,)
    weights: np.ndarray  # (N,)
    deviations: np.ndarray  # (N,), d
    neighbors: np.ndarray  # (K,), indices of users


class Row(NamedTuple):
    """The equations of one user."""

    sources: Sources
    summands: np.ndarray  # (r, N + K), of the right-hand side
    matrix: np.ndarray  # (r, r), M
    solution: np.ndarray  # (r,), p*


class Parts(NamedTuple):
    """The personal score by its sources."""

    sources: Sources
    pattern: float
    contributions: np.ndarray  # (N + K, 2), in all and by the item graph
    item_edges: Edges
    gains: np.ndarray  # (n_items,), g
    scores: np.ndarray  # (n_items,), x


def explain(
    model: AIR, user_id: Hashable, item_id: Hashable, n: int = 10, labels: Labels | None = None
) -> Explanation:
    """Return the parts of one score; see `AIR.explain`."""
    model._check_fitted()
    check_integer("n", n, minimum=1)
    user, item, names = _index(model, "user", user_id), _index(model, "item", item_id), check_labels(labels)
    if model.transforms or model.tv_reg > 0:
        raise ParameterError("explain knows no transforms and no total variation, which tie a user to all others")
    parts = _of_equations(model, user, item) if model._spread is None else _of_posterior(model, user, item)
    tables = Tables(model, parts.sources, n, names)
    rated_items, similar_users = np.split(parts.contributions, [parts.sources.rated.size])
    offsets = model.global_mean_, float(model.user_biases_[user]), float(model.item_biases_[item])
    personal = float(model.user_factors_[user] @ model.item_factors_[item].astype(np.float64))
    unlimited = sum(offsets) + personal
    return Explanation(
        user_id,
        item_id,
        label_of(names, item_id),
        float(model._score_pairs(np.array([user]), np.array([item]))[0]),
        *offsets,
        pattern=parts.pattern,
        rated_items=tables.items(item, rated_items),
        similar_users=tables.users(user, item, similar_users),
        graph_edges=tables.edges(*parts.item_edges, parts.gains, parts.scores),
        remainder=personal - parts.pattern - float(parts.contributions[:, 0].sum()),
        clipping=float(model._clip(np.array(unlimited))) - unlimited,
    )


def _of_equations(model: AIR, user: int, item: int) -> Parts:
    shared = equations(model)
    row = equation_of(model, shared, user)
    reach = np.linalg.solve(row.matrix, shared.items[item])  # M^-1 q
    alone = np.linalg.solve(row.matrix + shared.pull, shared.items[item])  # M_0^-1 q
    contributions = row.summands.T @ np.column_stack([reach, reach - alone])
    scores = shared.items @ row.solution
    return Parts(row.sources, 0.0, contributions, shared.item_edges, shared.items @ alone, scores)


def _of_posterior(model: AIR, user: int, item: int) -> Parts:
    assert model._spread is not None
    offsets = model.item_biases_ + model.global_mean_
    sources = _sources(model, user, offsets, np.empty(0, dtype=np.intp))
    found = score_parts(model, model._spread, user, item, *sources[:3])
    contributions = np.column_stack([found.rated_items, np.zeros(sources.rated.size)])
    nothing = np.zeros(len(offsets))
    return Parts(sources, found.pattern, contributions, _edges(None, 0.0, len(offsets)), nothing, nothing)


def _sources(model: AIR, user: int, offsets: np.ndarray, neighbors: np.ndarray) -> Sources:
    data = model.interactions_
    place = np.flatnonzero(data.user_index == user)
    rated, ratings = data.item_index[place], data.ratings[place]
    weights = np.ones(place.size) if data.weights is None else data.weights[place]
    return Sources(rated, ratings, weights, ratings - offsets[rated] - float(model.user_biases_[user]), neighbors)


def _index(model: AIR, kind: str, id: Hashable) -> int:
    index = model.interactions_.users if kind == "user" else model.interactions_.items
    found = int(index.lookup([id])[0])
    if found < 0:
        raise UnknownIdError(kind, [id])
    return found


def equations(model: AIR) -> Equations:
    """Return what the equations of all users share, computed once a fit."""
    solver, kept = model.row_solver(), model._equations
    if kept is None or kept.solver is not solver:  # every fit and partial_fit makes a new solver
        kept = model._equations = _shared(model, solver)
    return kept


def _shared(model: AIR, solver: RowSolver) -> Equations:
    items = solver.others.astype(np.float64)
    item_edges = _edges(model.item_graph_, model._energy_weight("item"), len(items))
    pull = item_edges.strength * (items.T @ (item_edges.adjacency @ items))
    penalties = [solver.penalty]
    if not model._decays and model.user_factors_.any():
        degrees = item_edges.strength * item_edges.adjacency.sum(axis=1)
        penalties.append(_span(model) + items.T @ (degrees[:, None] * items) - pull)
    user_edges = _edges(model.user_graph_, model._energy_weight("user"), len(model.user_factors_))
    return Equations(solver, items, items.T @ items, penalties, pull, item_edges, user_edges)


def _edges(graph: SimilarityGraph | None, weight: float, size: int) -> Edges:
    if graph is None or weight == 0:
        return Edges(sp.csr_array((size, size)), 0.0)
    return Edges(graph.to_scipy(), weight)


def _span(model: AIR) -> np.ndarray:
    """Return epsilon S^-1, which keeps a row in the span of the user factors."""
    return span_penalty(model.user_factors_, _NOISE * float(np.mean(model.interactions_.ratings**2)))


def equation_of(model: AIR, shared: Equations, user: int) -> Row:
    """Return the equations of one user, under the penalty that explains its factors best."""
    adjacency, strength = shared.user_edges
    span = slice(adjacency.indptr[user], adjacency.indptr[user + 1])
    neighbors, ties = adjacency.indices[span], strength * adjacency.data[span]

    sources = _sources(model, user, shared.solver.offsets, neighbors)
    inputs, unobserved = shared.items[sources.rated], model.unobserved_weight
    pulls = ties[:, None] * (model.user_factors_[neighbors] @ shared.gram)  # (K, r)
    summands = np.vstack([(sources.weights * sources.deviations)[:, None] * inputs, pulls]).T
    base = (inputs.T * (sources.weights - unobserved)) @ inputs + (unobserved + ties.sum()) * shared.gram
    solved = [_solve(base + penalty, summands.sum(axis=1)) for penalty in shared.penalties]

    def distance(found: tuple[np.ndarray, np.ndarray]) -> float:
        gap = model.user_factors_[user] - found[1]
        return float(gap @ shared.gram @ gap)

    return Row(sources, summands, *min(solved, key=distance))


def _solve(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return made_definite(matrix), np.linalg.solve(matrix, right)
