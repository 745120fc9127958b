"""The second stage of `AIR` with a posterior: sweeps over users and items in place of trained factors."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import torch

from air_recsys.interactions import Interactions
from air_recsys.models.air_parameters import DTYPES
from air_recsys.models.base import Factors
from air_recsys.models.devices import resolve_device
from air_recsys.models.scaling import Scaling
from air_recsys.models.spread import PredictionSpread
from air_recsys.nn.build import observations
from air_recsys.nn.posterior.estimate import Langevin, Scores, Variational
from air_recsys.nn.posterior.features import pattern_features, projection
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.training import Callback, Record

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

_SWEEPS = {"variational": 30, "langevin": 200}
_SAME = 1e-12  # ratings that vary less, relatively, are taken as equal


class Sweeps:
    """The course of the second stage.

    Parameters
    ----------
    model : AIR
    data : Interactions
        To train on.
    rng : Generator
    """

    def __init__(self, model: AIR, data: Interactions, rng: np.random.Generator) -> None:
        self.n_sweeps = sweeps_of(model)
        self.scaling = _scaling(data.ratings)
        dtype, device = DTYPES[model.dtype], resolve_device(model.device)
        ratings = data.to_csr()
        self._features = features = pattern_features(ratings, model.pattern_features, rng)
        self._ratings = ratings
        observed = observations(ratings, self.scaling.forward, dtype, device, data.weights_to_csr())
        tensors = [torch.as_tensor(side, dtype=dtype, device=device) for side in features]
        sample = model.solver == "langevin"
        width = min(model.n_factors or min(data.n_users, data.n_items), data.n_users, data.n_items)
        self._posterior = Posterior(observed, (tensors[0], tensors[1]), width, rng, sample=sample)
        self.estimate = (Langevin if sample else Variational)(self._posterior, self.n_sweeps)
        self._ratings_per_pair = data.n_ratings / (data.n_users * data.n_items)

    def factors(self) -> Factors:
        """Return the mean of the scores as it is now, in the unit of the ratings."""
        return _factors(self.estimate.scores(), self.scaling)

    def spread(self) -> PredictionSpread:
        """Return what standard deviations and new rows need."""
        users, items = self._features
        sides = projection(self._ratings, users, items), projection(self._ratings.T.tocsr(), items, users)
        return PredictionSpread.of(self.estimate.spread(), self.scaling.unit, sides)

    def run(
        self, first_epoch: int, held_out: Interactions | None, callbacks: Iterable[Callback]
    ) -> tuple[list[Record], str]:
        """Sweep, and return a record a sweep and why it ended."""
        records, callbacks, start = [], list(callbacks), time.perf_counter()
        for sweep in range(1, self.n_sweeps + 1):
            self.estimate.sweep()
            record = self._record(first_epoch + sweep, held_out, time.perf_counter() - start)
            records.append(record)
            answers = [callback(record) for callback in callbacks]  # every callback sees every record
            if any(answers) and self.estimate.ready:
                return records, "callback"
        return records, "n_sweeps"

    def _record(self, epoch: int, held_out: Interactions | None, seconds: float) -> Record:
        fit = self._posterior.noise.variance * self.scaling.unit**2 * self._ratings_per_pair
        error = np.nan if held_out is None else _error(self.factors(), held_out)
        return Record(epoch, fit, 0.0, 0.0, 0.0, 0.0, fit, error, 0.0, seconds)


def sweeps_of(model: AIR) -> int:
    """Return how many sweeps the posterior of a model takes."""
    return model.n_sweeps or _SWEEPS[model.solver]


def _scaling(ratings: np.ndarray) -> Scaling:
    """Return the map to values of mean 0 and variance 1."""
    deviation = float(ratings.std())
    return Scaling(float(ratings.mean()), deviation if deviation > _SAME * np.abs(ratings).max() else 1.0)


def _factors(scores: Scores, scaling: Scaling) -> Factors:
    left, right, users, items = (tensor.cpu().numpy() for tensor in scores)
    unit = scaling.unit
    return Factors(left * unit, right.copy(), users * unit, items * unit, scaling.mean)


def _error(factors: Factors, held_out: Interactions) -> float:
    users, items = held_out.user_index, held_out.item_index
    found = np.einsum("nr,nr->n", factors.user_factors[users], factors.item_factors[items])
    found = found + factors.user_biases[users] + factors.item_biases[items] + factors.mean
    return float(np.sqrt(np.mean((found - held_out.ratings) ** 2)))
