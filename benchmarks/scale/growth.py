"""A full training on planted ratings against the noise floor."""

from __future__ import annotations

from typing import Any

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.rating_errors import interval_figures
from air_recsys.evaluation.results.apart import run_apart
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import rmse
from air_recsys.models import AIR, BiasModel
from air_recsys.models.solvers import Sweeping
from air_recsys.splits import random_holdout
from benchmarks.harness import Found, spent_on, told

_SIZES = ("n_ratings", "n_users", "n_items", "n_factors", "graph_neighbors")
_GROUPS = (20, 15)  # of users and of items


def bench_planted(threads: int, seed: int, *, size: dict[str, int], settings: dict[str, Any]) -> Found:
    """Train `AIR.for_ratings` on nine tenths of planted ratings, in a process of its own."""
    row = run_apart(train_planted, size, _further(settings), seed, threads=threads)
    row_groups, column_groups = _GROUPS
    given = told(_of_model(size) | settings)
    return Found([row], user_groups=row_groups, item_groups=column_groups, given=given)


def train_planted(size: dict[str, int], settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Make the ratings, train, and return the row of times, memory and errors."""
    sizes = size["n_users"], size["n_items"], size["n_ratings"]
    made = make_planted_ratings(*sizes, *_GROUPS, random_state=seed)
    split = random_holdout(made.interactions, 0.1, random_state=seed)
    train, test = made.interactions.select(split.train), made.interactions.select(split.test)
    model = AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | settings | _of_model(size))
    _, costs = spent_on(lambda: model.fit(train))
    row = {"seconds": costs["seconds"], "cpu_seconds": costs["cpu_seconds"]}
    row |= {"data_gib": costs["before_gib"], "peak_gib": costs["peak_gib"]}
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    error, biases = (rmse(test.ratings, each.predict(*pairs)) for each in (model, BiasModel().fit(train)))
    floor = rmse(test.ratings, made.expected[split.test])
    row |= {"rmse": error, "biases_rmse": biases, "noise_floor": floor}
    row["share_of_the_way"] = (biases - error) / (biases - floor)
    if isinstance(model.solver, Sweeping):
        row |= interval_figures(test.ratings, *model.predict(*pairs, return_std=True))
    return row


def _of_model(size: dict[str, int]) -> dict[str, int]:
    return {name: size[name] for name in ("n_factors", "graph_neighbors")}


def _further(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a model, which must not be sizes."""
    decided = [name for name in settings if name in _SIZES]
    if decided:
        raise ParameterError(f"expected further settings only, found {decided}, which are sizes here")
    return settings
