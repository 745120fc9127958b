"""Very sparse ratings, drawn anew for every seed, and the errors of a model beside those of biases."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.metrics import rmse
from air_recsys.models import BiasModel, Recommender
from air_recsys.splits import random_holdout

SCARCE_MEASURES = ("rmse", "biases_rmse", "below_biases", "tuned_rmse", "below_tuned", "processor_seconds")
_SIZE, _RATINGS, _TESTED = 3000, 5000, 20_000
_POPULARITY, _ACTIVITY = 1.2, 0.5  # exponent of the Pareto tail of items, spread of the logarithms of users
_EFFECTS, _NOISE, _WIDTH = (4.0, 16.0), (12.0, 24.0), 3  # ranges of standard deviations, and the number of factors
_LOW, _HIGH = 1.0, 100.0
_DAMPINGS, _HIDDEN = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0), 0.2


class ScarceRatings(NamedTuple):
    """What is shown to a model, and what it is asked for, over the same ids."""

    shown: Interactions
    asked: Interactions


def scarce_ratings(seed: int) -> ScarceRatings:
    """Draw 5,000 ratings of 3,000 users and 3,000 items on a scale of 1..100, and 20,000 others to ask for.

    A rating is 50.5, a bias of the user, one of the item, a product of three factors and noise, rounded. How strong
    each of the four is, no model knows: their standard deviations are drawn, evenly on the scale of logarithms, from
    4..16, that of the noise from 12..24. Popularities of items have a Pareto tail.

    Examples
    --------
    >>> scarce_ratings(40).shown
    Interactions(n_users=3000, n_items=3000, n_ratings=5000, density=0.06 %, ratings 1..100)
    """
    rng = np.random.default_rng([seed, _RATINGS])
    of_users, of_items, of_factors = np.exp(rng.uniform(math.log(_EFFECTS[0]), math.log(_EFFECTS[1]), 3))
    users, items = _pairs(rng, _RATINGS + _TESTED)
    left, right = rng.standard_normal((2, _SIZE, _WIDTH))
    values = 50.5 + of_users * rng.standard_normal(_SIZE)[users] + of_items * rng.standard_normal(_SIZE)[items]
    values += of_factors * (left[users] * right[items]).sum(1) / np.sqrt(_WIDTH)
    values += math.exp(rng.uniform(math.log(_NOISE[0]), math.log(_NOISE[1]))) * rng.standard_normal(users.size)
    ratings, ids = np.clip(np.rint(values), _LOW, _HIGH), np.arange(_SIZE)
    data = Interactions(users, items, ratings, ids, ids)
    return ScarceRatings(data.select(np.arange(_RATINGS)), data.select(np.arange(_RATINGS, users.size)))


def scarce_errors(make: Callable[[], Recommender], seed: int, validation: float = 0.0) -> dict[str, float]:
    """The RMSE of a model, those of damped biases, and by how many percent the model lies below them.

    Parameters
    ----------
    make : callable
        Makes the model, not fitted.
    seed : int
    validation : float
        Ask for so large a part of the ratings shown instead, hidden from the model.
    """
    shown, asked = scarce_ratings(seed)
    if validation > 0:
        split = random_holdout(shown, validation, random_state=seed)
        shown, asked = shown.select(split.train), shown.select(split.test)
    model, start = make(), time.perf_counter()
    processor = time.process_time()
    error = _error(model.fit(shown), asked)
    spent, seconds = time.process_time() - processor, time.perf_counter() - start
    biases, tuned = _error(BiasModel().fit(shown), asked), _error(_tuned(shown, seed).fit(shown), asked)
    below = {"below_biases": 100 * (1 - error / biases), "below_tuned": 100 * (1 - error / tuned)}
    errors = {"rmse": error, "biases_rmse": biases, "tuned_rmse": tuned}
    return errors | below | {"processor_seconds": spent, "seconds": seconds}


def _pairs(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct pairs, (size,) users and items, in random order."""
    activity, popularity = rng.lognormal(0, _ACTIVITY, _SIZE), rng.pareto(_POPULARITY, _SIZE) + 1
    users, items = (rng.choice(_SIZE, 3 * size, p=weights / weights.sum()) for weights in (activity, popularity))
    drawn = np.unique(users * _SIZE + items)
    users, items = np.divmod(rng.permutation(drawn)[:size], _SIZE)
    return users, items


def _tuned(shown: Interactions, seed: int) -> BiasModel:
    split = random_holdout(shown, _HIDDEN, random_state=seed)
    training, hidden = shown.select(split.train), shown.select(split.test)
    return min((BiasModel(damping) for damping in _DAMPINGS), key=lambda model: _error(model.fit(training), hidden))


def _error(model: Recommender, asked: Interactions) -> float:
    scores = model.predict(asked.user_ids[asked.user_index], asked.item_ids[asked.item_index])
    return rmse(asked.ratings, np.clip(scores, _LOW, _HIGH))
