r"""The equations of a row under AIR's objective: fold-in, new ratings, and where a score comes from.

With the items fixed, the objective is quadratic in one user's factors u and bias b. In the unit of the ratings and
times n_users n_items it is

.. math::
    \sum_{j\in N} c_j (u v_j^\top + b + o_j - y_j)^2 + \omega\sum_{j\notin N} (u v_j^\top)^2 + u P u^\top
        + \lambda_b b^2 + \rho\sum_k a_k (u - u_k)\, V^\top V\, (u - u_k)^\top

over the user's rated items N, with weights c, offsets o (the mean and the items' biases) and a penalty P: the weight
decay and the energy of the row on the item graph, m n eta V^T L V. The last term ties a known user to its neighbours
k in the user graph; a new user has none. Items are folded in alike, with the sides exchanged.

A model without weight decay is regularized by its depth alone, which no objective of one row shows. There P is that
of a Gaussian prior on rows that look like those of training: sigma^2 S^-1, S the second moment of the trained factors
and sigma^2 the mean squared training error, at least a thousandth of the mean squared rating.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import NotFittedError, ParameterError
from air_recsys.models.engines.objective_contributions import (
    Equations,
    contributions_of,
    equations,
)
from air_recsys.models.engines.scaling import energy_weight
from air_recsys.models.given import graph_of
from air_recsys.models.ratings import BINARY, Clip
from air_recsys.models.rows import (
    Edges,
    Folded,
    LeastSquaresRows,
    ScoreContributions,
    Side,
    Ties,
    other_side,
    span_penalty,
)
from air_recsys.models.state import FittedState

_FLATTEST = 1e-6  # least power of a singular value in the decay of deep models, as a fraction of the largest
_COLLAPSED = 1e-12  # squared singular value of factors that decay has brought to 0
_NOISE = 1e-3  # least noise, as a fraction of the mean squared rating; some models fit their ratings exactly


@dataclass(frozen=True)
class ObjectiveRows:
    """The equations of a row, by the parameters that they read."""

    depth: int
    weight_decay: float
    bias_decay: float | None  # None for a model without biases
    unobserved_weight: float
    unit: float  # ratings per value trained on
    strengths: tuple[float | str, float | str]  # of the user graph and of the item graph
    known_strengths: tuple[float, float]  # the same, of the graphs of what is known of them
    ties_all: bool  # whether a term of the objective ties a row to all others
    clips: Clip  # how predictions are limited

    sees_pattern = knows_deviations = False
    has_factors, drift = True, None

    def check(self) -> None:
        """Raise `ParameterError` where a row is tied to all others."""
        if self.ties_all:
            raise ParameterError(
                "fold-in and explanations know no transforms and no total variation, which tie a row to all others: "
                "fit the model anew"
            )

    def solver(self, state: FittedState, side: Side) -> LeastSquaresRows:
        """The solve of the module's objective for new rows of a side."""
        self.check()
        return state.once(f"solver of a {side}", lambda: self._solver(state, side))

    def take_in(
        self,
        before: FittedState,
        draft: FittedState,
        side: Side,
        rows: np.ndarray,
        ratings: sp.csr_array,
        weights: np.ndarray | None,
    ) -> tuple[Folded, ObjectiveRows]:
        """Rows of a draft, from their ratings and their neighbours: learned ones of users, and those known of both.

        Strengths and penalties are those of the state before; the other side has grown and moved.
        """
        others, biases = draft.factors.of(other_side(side))
        solver = self.solver(before, side).against(others, biases + draft.factors.mean)
        ties = None
        if draft.alone == side:
            edges, strength = self._new_edges(draft, side)
            if strength > 0:
                ties = Ties(strength, edges.sum(axis=1), edges @ before.factors.of(side)[0])
        elif side == "user" or (draft.features(side) is not None and self.known_strengths[1] > 0):
            adjacency, strength = self._edges(draft, side, before)
            edges = adjacency[rows]
            ties = Ties(strength, edges.sum(axis=1), edges @ draft.factors.of(side)[0])
        return solver.solve(ratings, weights=weights, ties=ties), self

    def contributions(self, state: FittedState, user: int, item: int) -> ScoreContributions:
        """The sources of a personal score."""
        return contributions_of(state, self.of_users(state), user, item)

    def of_users(self, state: FittedState) -> Equations:
        """The part of the equations that all users share, those of the training and new ones."""
        self.check()
        known = state.origin
        edges, decays = (self._edges(known, "user"), self._edges(known, "item")), self.weight_decay > 0
        solver = self.solver(known, "user")
        found = known.once("equations of the users", lambda: equations(known, solver, *edges, decays=decays))
        return found._replace(user_edges=self._new_edges(state, "user")) if state.alone == "user" else found

    def of_posterior(self, *args: Any, **how: Any) -> Any:
        """Raise: an objective knows no distribution of its rows."""
        asked = "uncertainty, feature_effects and deviations that are not measured need a posterior"
        raise NotFittedError(f"{asked}, that of AIR with solver='variational' or 'langevin'; found none")

    feature_effects = deviations = uncertainties = noise = covariance = unrated = of_posterior

    def grown(self, n_users: int, n_items: int) -> ObjectiveRows:
        """The same: nothing depends on the size."""
        return self

    def of_rows(self, data: Interactions, users: np.ndarray, items: np.ndarray) -> ObjectiveRows:
        """The same: all else follows from factors and parameters."""
        return self

    def of_new_rows(self, side: Side, n_users: int, n_items: int) -> ObjectiveRows:
        """The same: all that it reads of trained rows is in the state that these were folded into."""
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The unit; all else follows from factors and parameters."""
        return {"unit": np.array([self.unit])}

    def _weight(self, state: FittedState, strength: float | str) -> float:
        """The weight of an energy in the equations of one row."""
        levels = self.weight_decay > 0 and self.bias_decay is None
        return energy_weight(strength, state.data, levels=levels)

    def _edges(self, state: FittedState, side: Side, before: FittedState | None = None) -> Edges:
        """The edges of a side, learned ones and what is known, with the strengths of the state before."""
        graph, number = state.graph(side), 0 if side == "user" else 1
        weight = 0.0 if graph is None else self._weight(before or state, self.strengths[number])
        learned = sp.csr_array((len(state.index(side)),) * 2) if graph is None or weight == 0 else graph.to_scipy()
        strength, known = self.known_strengths[number], state.features(side)
        if known is None or strength == 0:
            return Edges(learned, weight)
        given = state.once(f"graph of known {side}s", lambda: graph_of(known))
        strength *= self._weight(before or state, "auto")
        return Edges(sp.csr_array(weight * learned + strength * given), 1.0)

    def _new_edges(self, state: FittedState, side: Side) -> Edges:
        """The edges from new rows alone to the trained ones with the nearest features, (n_new, n_trained)."""
        trained, known, strength = state.origin.features(side), state.features(side), self.known_strengths
        of_side, n = strength[0 if side == "user" else 1], len(state.origin.index(side))
        if trained is None or known is None or of_side == 0:
            return Edges(sp.csr_array((len(state.index(side)), n)), 0.0)
        whole = trained.grown(n + len(known.values))
        whole.values[n:] = known.values
        return Edges(sp.csr_array(graph_of(whole)[n:, :n]), self._weight(state.origin, "auto") * of_side)

    def _solver(self, state: FittedState, side: Side) -> LeastSquaresRows:
        factors, other = state.factors, other_side(side)
        own, (others, biases) = factors.of(side)[0], factors.of(other)
        edges = self._edges(state, other)
        penalty = self._decay(state, side) if self.weight_decay > 0 else self._prior(state, own)
        if edges.strength > 0:
            doubles = others.astype(np.float64)
            smoothed = csgraph.laplacian(edges.adjacency) @ doubles
            penalty = penalty + edges.strength * (doubles.T @ smoothed)  # V^T L V, (r, r)
        return LeastSquaresRows(others, biases + factors.mean, penalty, self.bias_decay, self.unobserved_weight)

    def _prior(self, state: FittedState, own: np.ndarray) -> np.ndarray:
        data = state.data
        clips = False if self.clips == BINARY else self.clips
        return row_prior(own, data.ratings, state.scores(data.user_index, data.item_index, clips))

    def _decay(self, state: FittedState, side: Side) -> np.ndarray:
        """The weight decay of a row as a quadratic form, in the unit of the side: users carry the ratings'.

        An item's factors are a row of the last weight: lambda I. A user's are u = w W1 ... W(L-2), with the decay on
        w. Where training has settled the weights are balanced, W(l)^T W(l) = W(l+1) W(l+1)^T, so
        |w|^2 = u (V^T V)^(2-L) u^T.
        """
        others = state.factors.item_factors.astype(np.float64)
        width = others.shape[1]
        if side == "item":
            return self.weight_decay * self.unit**2 * np.eye(width)
        if self.depth == 2:
            return self.weight_decay * np.eye(width)
        values, axes = np.linalg.eigh(others.T @ others)
        largest, power = max(values[-1], _COLLAPSED), self.depth - 2
        scales = (values.clip(min=0) / largest) ** power
        return self.weight_decay * (axes / scales.clip(min=_FLATTEST)) @ axes.T / largest**power


def row_prior(own: np.ndarray, ratings: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """The penalty sigma^2 S^-1 of a Gaussian prior with the second moment S of the trained rows."""
    if not own.any():
        return np.eye(own.shape[1])
    noise = max(float(np.mean((ratings - predicted) ** 2)), _NOISE * float(np.mean(ratings**2)))
    return span_penalty(own, noise)
