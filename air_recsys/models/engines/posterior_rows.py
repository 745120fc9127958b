r"""The equations of a row under a posterior: fold-in, new ratings, deviations, and where a score comes from.

A user's factors and bias x = (p, b) are Gaussian around :math:`W^\top f` before any rating, with features f of the
pattern of the items that it has rated (`air_recsys.nn.posterior`). With all items held fixed their mean is

.. math:: (S^{-1} + t A)^{-1} (S^{-1} W^\top f + t h),

and t, the scale of the user's noise, follows from the errors. A new user's features are the projection of its pattern
on what training found for the items; so a trained user gets its own. Items are solved alike, with the sides exchanged.
Models of draws solve a row once a kept draw of the other side, and take the mean.

**New rows** have a looser prior than those of training. W, S and the items were learned on the trained users and give
way to each of them; a user that took no part lies further from :math:`W^\top f`, for which W is shrunk too much. So
:math:`S^{-1}` is taken times 0.6 and W of the pattern times 1.5, as chosen on hidden users and items
(benchmarks/reports/accuracy.md). `partial_fit` solves trained users with the prior of training. The noise of a new
row is the expectation of :math:`1 / t`, which of few ratings is up to a quarter more than :math:`1 / \mathrm{E}\, t`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.models.drift import LearnedDrift
from air_recsys.models.engines.posterior_arrays import Gaussian, PosteriorArrays, double, matrices, triangles
from air_recsys.models.engines.posterior_scores import contributions_of, score_covariance, score_variances
from air_recsys.models.learned import Factors
from air_recsys.models.rows import Folded, ScoreContributions, Side, checked_rows
from air_recsys.models.state import FittedState
from air_recsys.nn.devices import device_or_cpu
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.prior import inverse_scale
from air_recsys.nn.posterior.rows import solve_row, solve_rows
from air_recsys.storage.lazy import is_installed, torch

_BLOCK = 2048  # rows solved at a time
_MANY = 256  # rows of a block that are worth the copies to a device
_SEED = 0  # seed of the draws of new rows


@dataclass(frozen=True)
class PosteriorRows:
    """The equations of rows, from what a posterior has left."""

    arrays: PosteriorArrays
    drift: LearnedDrift | None = None

    sees_pattern = knows_deviations = True

    @property
    def has_factors(self) -> bool:
        """Whether rows have factors beside their biases."""
        return self.arrays.users.shape[-1] > 1

    def check(self) -> None:
        """Do nothing: a row depends on the other side alone."""

    def solver(self, state: FittedState, side: Side) -> PosteriorSolver:
        """The solve of the posterior mean of new rows of a side."""
        return state.once(f"solver of a {side}", lambda: _solver(state, self.arrays, side))

    def take_in(
        self,
        before: FittedState,
        draft: FittedState,
        side: Side,
        rows: np.ndarray,
        ratings: sp.csr_array,
        weights: np.ndarray | None,
    ) -> tuple[Folded, PosteriorRows]:
        """Rows of a draft, trained or new, and the equations with them; a posterior knows no neighbours."""
        folded, arrays = _solver(draft, self.arrays, side).take_in(rows, ratings, weights)
        return folded, PosteriorRows(arrays, self.drift)

    def deviations(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """The standard deviation of a new rating of each pair, at a time where given, (n,)."""
        deviations = self.arrays.deviations(users, items)
        if self.drift is None:
            return deviations
        pairs = users, items
        variance = self.drift.variances(*pairs) if times is None else self.drift.at(*pairs, times)[1]
        return np.sqrt(np.square(deviations) + variance)

    def covariance(self, user: int, items: np.ndarray, side: Side = "user") -> np.ndarray:
        """The covariances of the scores of a user at some items, by what is not known of the user, (k, k)."""
        return score_covariance(self.arrays, user, items, side)

    def unrated(self, state: FittedState, side: Side, known: np.ndarray) -> Folded:
        """What rows of a side with known features (n, g) would be without ratings, in the state of the training."""
        return self.solver(state, side).unrated(known)

    def uncertainties(self, side: Side) -> np.ndarray:
        """The root of the mean variance of the scores of each row of a side, over the other side, (n,)."""
        return np.sqrt(score_variances(self.arrays, side))

    def noise(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The variance of a rating of each pair around its true score, (n,)."""
        return self.arrays.noise(users, items)

    def grown(self, n_users: int, n_items: int) -> PosteriorRows:
        """The same with rows for new users and items."""
        return PosteriorRows(self.arrays.grown(n_users, n_items), self.drift)

    def of_rows(self, data: Interactions, users: np.ndarray, items: np.ndarray) -> PosteriorRows:
        """The same of some users and items, whose ratings are `data`."""
        times = data.timestamps
        drift = None if self.drift is None or times is None else self.drift.of_rows(users, items, times)
        return PosteriorRows(self.arrays.of_rows(users, items), drift)

    def of_new_rows(self, side: Side, n_users: int, n_items: int) -> PosteriorRows:
        """The same for new rows of a side alone, in place of the trained ones."""
        drift = None if self.drift is None else self.drift.of_new_rows(side)
        return PosteriorRows(self.arrays.without(side).grown(n_users, n_items), drift)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a model file."""
        return self.arrays.to_arrays() | ({} if self.drift is None else self.drift.to_arrays())

    def contributions(self, state: FittedState, user: int, item: int) -> ScoreContributions:
        """The sources of a personal score: the pattern, features and the rated items, no graphs."""
        trained = state.origin.equations
        assert isinstance(trained, PosteriorRows)
        return contributions_of(state, self.arrays, trained.arrays, user, item)

    def feature_effects(self, side: Side) -> np.ndarray:
        """Mean and deviation of what each feature of a side adds to the scores of the others, (g, 2)."""
        return self.arrays.effects(side)


def _solver(state: FittedState, arrays: PosteriorArrays, side: Side) -> PosteriorSolver:
    features = state.features(side)
    known = None if features is None or not arrays.has_unseen(side) else features.numbers()
    return PosteriorSolver(state.factors, arrays, side, state.ending.device, known)


class PosteriorSolver:
    """The solve of a row's posterior mean, see the module.

    Parameters
    ----------
    arrays : PosteriorArrays
        Of the same model.
    device : str, optional
        Where blocks of many rows are solved; few rows are solved on the CPU, which needs no copies.
    known : ndarray, shape (n_rows, g), optional
        What is known of the rows of the model beside the pattern.

    Attributes
    ----------
    others : ndarray, shape (n_others, r)
        The factors of the fixed side.
    maps : list of ndarray, shape (d - 1, r)
        What turns factors of the posterior into those of the model, one a draw.
    """

    def __init__(
        self,
        factors: Factors,
        arrays: PosteriorArrays,
        side: Side,
        device: str | None,
        known: np.ndarray | None = None,
    ) -> None:
        self.others = factors.item_factors if side == "user" else factors.user_factors
        self._arrays, self._mean, self._unit = arrays, factors.mean, float(arrays.scales[0])
        self._side: Side = side
        self._device, self._known = device, known
        self.maps = _maps(arrays, side, self.others)

    def solve(self, ratings: sp.csr_array, *, weights: np.ndarray | None = None) -> Folded:
        """The posterior means of new rows, see `air_recsys.models.rows.RowSolver`."""
        ratings = checked_rows(ratings, len(self.others))
        n_rows = len(ratings.indptr) - 1
        factors, biases = np.zeros((n_rows, self.others.shape[1]), self.others.dtype), np.zeros(n_rows)
        for block, solved in self._blocks(ratings, weights, np.ones(n_rows, dtype=bool), None):
            factors[block], biases[block] = self._folded(solved)
        empty = np.diff(ratings.indptr) == 0
        factors[empty] = biases[empty] = 0.0
        return Folded(factors, biases)

    def take_in(
        self, rows: np.ndarray, ratings: sp.csr_array, weights: np.ndarray | None
    ) -> tuple[Folded, PosteriorArrays]:
        """Solve rows of the model, trained or new, and return what is kept of a posterior with them."""
        arrays, rng = self._arrays, np.random.default_rng(_SEED)
        factors, biases = np.empty((rows.size, self.others.shape[1]), self.others.dtype), np.empty(rows.size)
        states, noise = (getattr(arrays, f"{self._side}{name}").copy() for name in ("s", "_noise"))
        covariances = getattr(arrays, f"{self._side}_covariances")
        covariances = None if covariances is None else covariances.copy()
        known = None if self._known is None else self._known[rows]
        new = rows >= arrays.n_trained(self._side)
        counts = np.diff(ratings.indptr)
        uncertain = np.where(new & (counts > 0), inverse_scale(counts), 1.0)
        for block, solved in self._blocks(ratings, weights, new, known):
            factors[block], biases[block] = self._folded(solved)
            noise[rows[block]] = np.mean([1 / each.scales for each in solved], axis=0) * uncertain[block]
            if covariances is None:
                states[rows[block]] = np.stack([_drawn(each, rng) for each in solved], axis=1)
            else:
                (found,) = solved
                states[rows[block]], covariances[rows[block]] = found[:2]
        if known is None:
            empty = new & (counts == 0)
            factors[empty] = biases[empty] = 0.0
        kept = {"s": states, "_noise": noise, "_covariances": covariances}
        return Folded(factors, biases), arrays._replace(**{f"{self._side}{name}": kept[name] for name in kept})

    def unrated(self, known: np.ndarray) -> Folded:
        """The means of rows without ratings, from what is known of them, (n, g)."""
        return self._folded(self._arrays.unseen(self._side, known))

    def _folded(self, solved: list[Gaussian]) -> Folded:
        means = [each.mean for each in solved]
        factors = np.mean([mean[:, :-1] @ map for mean, map in zip(means, self.maps, strict=True)], axis=0)
        return Folded(factors.astype(self.others.dtype), self._unit * np.mean([mean[:, -1] for mean in means], axis=0))

    def _blocks(
        self, ratings: sp.csr_array, weights: np.ndarray | None, new: np.ndarray, known: np.ndarray | None
    ) -> Iterator[tuple[np.ndarray, list[Gaussian]]]:
        """Yield some rows (k,) and their Gaussians until all are through, trained ones before new ones.

        Rows without ratings of which features are known come first.
        """
        starts = ratings.indptr
        confidences = None if weights is None else sp.csr_array((weights, ratings.indices, starts), ratings.shape)
        unseen = (np.diff(starts) == 0) & (known is not None)
        if known is not None and unseen.any():
            yield np.flatnonzero(unseen), self._arrays.unseen(self._side, known[unseen])
        for some in (False, True):
            rows = np.flatnonzero((new == some) & ~unseen)
            for start in range(0, rows.size, _BLOCK):
                block = rows[start : start + _BLOCK]
                of_block, confidence = ratings, weights
                if block.size < new.size:
                    of_block = ratings[block]
                    confidence = None if confidences is None else confidences[block].data
                yield block, self._gaussians(of_block, confidence, some, None if known is None else known[block])

    def _gaussians(
        self, ratings: sp.csr_array, weights: np.ndarray | None, new: bool, known: np.ndarray | None
    ) -> list[Gaussian]:
        if len(ratings.indptr) == 2 or not is_installed():
            return self._one_by_one(ratings, weights, new, known)
        device = device_or_cpu(self._device if len(ratings.indptr) > _MANY else None)
        columns = np.unique(np.append(ratings.indices, 0))  # at least one
        starts, places = ratings.indptr.astype(np.int64), np.searchsorted(columns, ratings.indices)
        of_rows, of_columns = (torch.as_tensor(index, device=device) for index in (starts, places))
        confidence = None if weights is None else double(weights, device)
        values = double((ratings.data - self._mean) / self._unit, device)
        entries = Observations(SparsePattern(of_rows, of_columns, columns.size), values, confidence)
        features = double(self._arrays.features(self._side, ratings, known), device)
        draws = self._arrays.known(self._side, columns, new=new, device=device)
        solved = (solve_rows(entries, features, draw) for draw in draws)
        return [
            Gaussian(*(part.cpu().numpy() for part in (rows.mean, rows.covariance, scales) if part is not None))
            for rows, scales in solved
        ]

    def _one_by_one(
        self, ratings: sp.csr_array, weights: np.ndarray | None, new: bool, known: np.ndarray | None
    ) -> list[Gaussian]:
        """The Gaussians of single rows, see `solve_row`."""
        features, values = self._arrays.features(self._side, ratings, known), (ratings.data - self._mean) / self._unit
        rows = []
        for place, entries in enumerate(map(slice, ratings.indptr[:-1], ratings.indptr[1:])):
            of_row = self._side, ratings.indices[entries], features[place : place + 1]
            columns, prior = self._arrays.of_row(*of_row, new=new)
            rows.append(solve_row(values[entries], None if weights is None else weights[entries], columns, prior))
        means, covariances, scales = (np.stack(part, axis=1) for part in zip(*rows, strict=True))  # (s, m, ...)
        return [Gaussian(*of_draw) for of_draw in zip(means, map(triangles, covariances), scales, strict=True)]


def _maps(arrays: PosteriorArrays, side: Side, others: np.ndarray) -> list[np.ndarray]:
    """The matrices (r, k) that turn factors of the posterior into those of the model, one a draw."""
    partners = arrays.items if side == "user" else arrays.users
    unit = float(arrays.scales[0])
    if partners.ndim == 2:  # the model's own; those of users carry the unit
        return [np.eye(others.shape[1]) * (unit if side == "user" else 1.0)]
    trained = len(getattr(arrays, f"{side}_basis"))
    draws = partners[:trained, :, :-1].astype(np.float64)  # (n, s, r)
    solved = np.linalg.lstsq(others[:trained].astype(np.float64), draws.reshape(trained, -1), rcond=None)[0]
    return [unit * map.T for map in np.moveaxis(solved.reshape(len(solved), *draws.shape[1:]), 1, 0)]


def draws_of_new_rows(n_draws: int, width: int) -> np.ndarray:
    """The standard normal numbers that a single new row is drawn with, (n_draws, width)."""
    return np.random.default_rng(_SEED).standard_normal((n_draws, width))


def _drawn(found: Gaussian, rng: np.random.Generator) -> np.ndarray:
    error = np.linalg.cholesky(matrices(found.covariance)) @ rng.standard_normal((*found.mean.shape, 1))
    return found.mean + error[:, :, 0]
