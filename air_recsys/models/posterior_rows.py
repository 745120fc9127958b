r"""Single rows of a model with a posterior: fold-in of new ones, and the parts of the scores of known ones.

A user's factors and bias x = (p, b) are Gaussian around :math:`W^\top f` before any rating, with features f of the
pattern of the items that it has rated (`air_recsys.nn.posterior`). With all items held fixed their mean is

.. math:: (S^{-1} + t A)^{-1} (S^{-1} W^\top f + t h),

and t, the scale of the user's noise, follows from the errors. A new user's features are the projection of its pattern
on what training found for the items; so a trained user gets its own. Items are solved alike, with the sides exchanged.
Models of draws solve a row once a kept draw of the other side, and take the mean.

**New rows** have a looser prior than those of training. W, S and the items were learned on the trained users and give
way to each of them; a user that took no part lies further from :math:`W^\top f`, for which W is shrunk too much. So
:math:`S^{-1}` is taken times 0.6 and W of the pattern times 1.5, as chosen on hidden users and items
(docs/fold-in.md). `partial_fit` solves trained users with the prior of training.

**Parts of a score.** The factors' half of the equations, with the bias held fixed, is

.. math:: (S^{-1}_{pp} + t A_{pp})\, p = \big(S^{-1} (W^\top f - (0, b))\big)_p + t \sum_j h_j,

so :math:`p \cdot q` is what the pattern says (the first term) and one contribution for each rated item.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from air_recsys.models.fold_in import Folded, RowSolver, Ties, span_penalty
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.features import Projection
from air_recsys.nn.posterior.rows import Known, solve_rows

if TYPE_CHECKING:
    from air_recsys.models.air import AIR
    from air_recsys.models.spread import PredictionSpread

_BLOCK = 2048  # rows at once
_NEW_PRECISION, _NEW_WEIGHTS = 0.6, 1.5  # of S^-1, and of W but for degree and constant
_SEED = 0  # of the draws that stand for new rows

Side = Literal["user", "item"]
Gaussians = list[tuple[Rows, Tensor]]
"""Rows and their scales t, one of each a draw of the other side."""


class PosteriorSolver(RowSolver):
    """The solve of a row's posterior mean, see the module.

    `penalty` and `parts` are those of a Gaussian prior around 0, for those who fold in without a pattern.

    Parameters
    ----------
    model : AIR
    spread : PredictionSpread
        Of the model.
    side : {"user", "item"}
    """

    def __init__(self, model: AIR, spread: PredictionSpread, side: Side) -> None:
        own, others, biases = model.user_factors_, model.item_factors_, model.item_biases_
        if side == "item":
            own, others, biases = others, own, model.user_biases_
        unit, noise = spread.scales
        penalty = span_penalty(own, float(noise * unit**2)) if own.any() else np.eye(own.shape[1])
        super().__init__(others, biases + model.global_mean_, penalty, model.bias_decay)
        self._spread, self._mean, self._unit = spread, model.global_mean_, float(unit)
        self._side: Side = side
        self._maps = _maps(spread, side, others)

    def solve(self, ratings: sp.csr_array, *, weights: np.ndarray | None = None, ties: Ties | None = None) -> Folded:
        """Return the posterior means of new rows, as `RowSolver.solve`; a posterior knows no ties."""
        n_rows = len(ratings.indptr) - 1
        factors, biases = np.zeros((n_rows, self.others.shape[1]), self.others.dtype), np.zeros(n_rows)
        for block, found in self._blocks(ratings, weights, np.ones(n_rows, dtype=bool)):
            factors[block], biases[block] = self._folded(found)
        empty = np.diff(ratings.indptr) == 0
        factors[empty] = biases[empty] = 0.0
        return Folded(factors, biases)

    def take_in(
        self, rows: np.ndarray, ratings: sp.csr_array, weights: np.ndarray | None
    ) -> tuple[Folded, PredictionSpread]:
        """Solve rows of the model, trained or new, and return what is kept of a posterior with them."""
        spread, rng = self._spread, np.random.default_rng(_SEED)
        factors, biases = np.empty((rows.size, self.others.shape[1]), self.others.dtype), np.empty(rows.size)
        states, noise = (getattr(spread, f"{self._side}{name}").copy() for name in ("s", "_noise"))
        covariances = getattr(spread, f"{self._side}_covariances")
        covariances = None if covariances is None else covariances.copy()
        for block, found in self._blocks(ratings, weights, rows >= n_trained(spread, self._side)):
            factors[block], biases[block] = self._folded(found)
            noise[rows[block]] = np.mean([1 / scales.numpy() for _, scales in found], axis=0)
            if covariances is None:
                states[rows[block]] = np.stack([_drawn(state, rng) for state, _ in found], axis=1)
            else:
                ((state, _),) = found
                states[rows[block]] = state.mean.numpy()
                covariances[rows[block]] = _upper(state)
        kept = {"s": states, "_noise": noise, "_covariances": covariances}
        return Folded(factors, biases), spread._replace(**{f"{self._side}{name}": kept[name] for name in kept})

    def _folded(self, found: Gaussians) -> Folded:
        means = [state.mean.numpy() for state, _ in found]
        factors = np.mean([mean[:, :-1] @ map for mean, map in zip(means, self._maps, strict=True)], axis=0)
        return Folded(factors.astype(self.others.dtype), self._unit * np.mean([mean[:, -1] for mean in means], axis=0))

    def _blocks(
        self, ratings: sp.csr_array, weights: np.ndarray | None, new: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Gaussians]]:
        """Yield some rows (k,) and their Gaussians until all are through, trained ones before new ones."""
        starts = ratings.indptr
        confidences = None if weights is None else sp.csr_array((weights, ratings.indices, starts), ratings.shape)
        for some in (False, True):
            rows = np.flatnonzero(new == some)
            for start in range(0, rows.size, _BLOCK):
                block = rows[start : start + _BLOCK]
                confidence = None if confidences is None else confidences[block].data
                yield block, self._gaussians(ratings[block], confidence, some)

    def _gaussians(self, ratings: sp.csr_array, weights: np.ndarray | None, new: bool) -> Gaussians:
        columns = np.unique(np.append(ratings.indices, 0))  # at least one
        starts, place = torch.as_tensor(ratings.indptr), torch.as_tensor(np.searchsorted(columns, ratings.indices))
        confidence = None if weights is None else _double(weights)
        values = _double((ratings.data - self._mean) / self._unit)
        entries = Observations(SparsePattern(starts.long(), place, columns.size), values, confidence)
        features = _double(features_of(self._spread, self._side, ratings))
        known = known_of(self._spread, self._side, columns, new=new)
        return [solve_rows(entries, features[:, -len(state.weights) :], state) for state in known]


class ScoreParts(NamedTuple):
    """What a user's personal score of an item consists of."""

    pattern: float
    rated_items: np.ndarray  # (k,), in the order of the ratings given


def score_parts(
    model: AIR,
    spread: PredictionSpread,
    user: int,
    item: int,
    rated: np.ndarray,
    ratings: np.ndarray,
    weights: np.ndarray,
) -> ScoreParts:
    """Return the parts of one score of a model with a posterior, from the user's ratings (k,) and their weights."""
    unit = float(spread.scales[0])
    values, bias = (ratings - model.global_mean_) / unit, float(model.user_biases_[user]) / unit
    row = sp.csr_array((ratings, rated, [0, rated.size]), shape=(1, len(model.item_factors_)))
    features = features_of(spread, "user", row)[0]
    pattern, contributions = 0.0, np.zeros(rated.size)
    states = known_of(spread, "user", np.append(rated, item), new=user >= n_trained(spread, "user"))
    for state in states:
        means, noise = state.columns.mean.numpy(), state.noise.numpy()[:-1] * spread.user_noise[user]
        precision, inputs = state.precision.numpy(), means[:-1, :-1]
        prior = features[-len(state.weights) :] @ state.weights.numpy()
        prior[-1] -= bias
        confidence = weights / noise
        matrix = precision[:-1, :-1] + (inputs.T * confidence) @ inputs
        sources = (values - means[:-1, -1] - bias)[:, None] * inputs  # (k, r)
        if state.columns.covariance is not None:
            covariances = state.columns.covariance.numpy()[:-1]
            matrix += np.einsum("j,jab->ab", confidence, covariances[:, :-1, :-1])
            sources -= covariances[:, :-1, -1]
        reach = np.linalg.solve(matrix, means[-1, :-1])
        contributions += confidence * (sources @ reach)
        pattern += float(precision[:-1] @ prior @ reach)
    return ScoreParts(unit * pattern / len(states), unit * contributions / len(states))


def grown(spread: PredictionSpread, n_users: int, n_items: int) -> PredictionSpread:
    """Return the same with room for new users and items."""

    def padded(array: np.ndarray | None, size: int) -> np.ndarray | None:
        return (
            None
            if array is None
            else np.concatenate([array, np.ones((size - len(array), *array.shape[1:]), array.dtype)])
        )

    sizes = {"user": n_users, "item": n_items}
    names = [(f"{side}{name}", size) for side, size in sizes.items() for name in ("s", "_noise", "_covariances")]
    return spread._replace(**{name: padded(getattr(spread, name), size) for name, size in names})


def n_trained(spread: PredictionSpread, side: Side) -> int:
    """Return how many rows of a side took part in training; those after them were folded in."""
    return len(spread.item_basis if side == "user" else spread.user_basis)


def features_of(spread: PredictionSpread, side: Side, ratings: sp.csr_array) -> np.ndarray:
    """Return the features of new rows; rows and columns that training did not see are no part of the pattern."""
    basis, logarithm = getattr(spread, f"{side}_basis"), spread.log_degrees[0 if side == "user" else 1]
    assert ratings.shape is not None  # SciPy types it as optional
    seen = ratings if ratings.shape[1] == len(basis) else ratings[:, : len(basis)]
    return Projection(basis, logarithm)(seen)


def known_of(spread: PredictionSpread, side: Side, columns: np.ndarray, *, new: bool) -> list[Known]:
    """Return what trained or new rows of a side follow from, one a draw, for some of the other side."""
    other = "item" if side == "user" else "user"
    means, covariances = getattr(spread, f"{other}s")[columns], getattr(spread, f"{other}_covariances")
    draws = _double(means if means.ndim == 3 else means[:, None])
    covariance = None if covariances is None else _double(full(covariances[columns]))
    noise = _double(spread.scales[1] * getattr(spread, f"{other}_noise")[columns])
    weights, precisions = _double(getattr(spread, f"{side}_weights")), _double(getattr(spread, f"{side}_precisions"))
    if new:
        weights, precisions = weights.clone(), _NEW_PRECISION * precisions
        weights[:, :-2] *= _NEW_WEIGHTS
    priors = enumerate(zip(weights, precisions, strict=True))
    return [Known(Rows(draws[:, draw].contiguous(), covariance), noise, *prior) for draw, prior in priors]


def full(triangles: np.ndarray) -> np.ndarray:
    """Return symmetric matrices from their upper triangles."""
    width = (int(np.sqrt(8 * triangles.shape[1] + 1)) - 1) // 2
    place = np.zeros((width, width), dtype=np.intp)
    upper = np.triu_indices(width)
    place[upper] = np.arange(triangles.shape[1])
    place.T[upper] = np.arange(triangles.shape[1])
    return triangles[:, place].astype(np.float64)


def _maps(spread: PredictionSpread, side: Side, others: np.ndarray) -> list[np.ndarray]:
    """Return the matrices (r, k) that turn factors of the posterior into those of the model, one a draw."""
    partners = spread.items if side == "user" else spread.users
    unit = float(spread.scales[0])
    if partners.ndim == 2:  # the model's own; those of users carry the unit
        return [np.eye(others.shape[1]) * (unit if side == "user" else 1.0)]
    trained = len(getattr(spread, f"{side}_basis"))
    draws = partners[:trained, :, :-1].astype(np.float64)  # (n, s, r)
    solved = np.linalg.lstsq(others[:trained].astype(np.float64), draws.reshape(trained, -1), rcond=None)[0]
    return [unit * map.T for map in np.moveaxis(solved.reshape(len(solved), *draws.shape[1:]), 1, 0)]


def _drawn(state: Rows, rng: np.random.Generator) -> np.ndarray:
    assert state.covariance is not None
    error = torch.linalg.cholesky(state.covariance) @ _double(rng.standard_normal((*state.mean.shape, 1)))
    return (state.mean + error[:, :, 0]).numpy()


def _upper(state: Rows) -> np.ndarray:
    assert state.covariance is not None
    places = np.triu_indices(state.mean.shape[1])
    return state.covariance.numpy()[:, places[0], places[1]]


def _double(array: np.ndarray) -> Tensor:
    return torch.as_tensor(np.asarray(array, dtype=np.float64))
