"""The models and the data that the contract tests share."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from air_recsys import AIR, DMF, BiasModel, GlobalMean
from air_recsys.models import KNN, PNMC, RDMF, DirichletDMF, GraphRanker, IterativeSVD, PatchAIR, Recommender
from air_recsys.models.learned import Factors
from air_recsys.models.presets import PRESETS, routed
from air_recsys.testing import ContractTests

CPU: dict[str, Any] = {"device": "cpu", "random_state": 0}


def by_paper(**options: Any) -> AIR:
    """AIR as in the paper, with a falling step size: full width, graphs of all pairs, no number from the data.

    Up to release 0.1.0 the preset "completion" was this model.
    """
    model = AIR()
    return model.set_params(**routed(model, {"schedule": "cooldown"} | options))


MODELS: dict[str, Callable[..., Recommender]] = {
    "AIR-dense": partial(by_paper, n_epochs=60, init_std=0.1, **CPU),
    "AIR-completion": partial(AIR.for_completion, n_epochs=60, **CPU),
    "AIR-sparse": partial(AIR.for_interactions, n_epochs=60, init_std=0.1, graph_neighbors=3, graph_refresh=20, **CPU),
    "AIR-ratings": partial(
        AIR.for_ratings, n_epochs=20, n_factors=3, graph_neighbors=3, weight_decay=1.0, solver="adam", **CPU
    ),
    "AIR-variational": partial(AIR.for_ratings, n_factors=3, graph_neighbors=3, **CPU),
    "AIR-langevin": partial(AIR.for_ratings, solver="langevin", n_sweeps=30, n_factors=3, graph_neighbors=3, **CPU),
    "AIR-transforms": partial(
        by_paper, n_epochs=60, init_std=0.1, transforms=(("columns", 1e-4, 2),), tv_reg=1e-3, **CPU
    ),
    "DMF": partial(DMF, n_epochs=60, init_std=0.1, **CPU),
    "RDMF": partial(RDMF, n_epochs=60, init_std=0.1, **CPU),
    "DirichletDMF": partial(DirichletDMF, n_epochs=60, init_std=0.1, n_neighbors=3, **CPU),
    "KNN-users": partial(KNN, n_neighbors=3),
    "KNN-items": partial(KNN, n_neighbors=3, weights="uniform", axis="items"),
    "IterativeSVD": partial(IterativeSVD, rank=2, n_iterations=20, random_state=0),
    # Patches of one pixel fit the smallest data; test_patches.py has those of more.
    "PNMC": partial(PNMC, patch=1, n_similar=4, n_rounds=1),
    "PatchAIR": partial(PatchAIR, patch=1, stride=1, n_factors=1, n_epochs=20, graph_neighbors=3, **CPU),
    "GraphRanker": partial(GraphRanker, n_factors=3, settings={}),
    "BiasModel": BiasModel,
    "GlobalMean": GlobalMean,
}
POSTERIORS = ["AIR-variational", "AIR-langevin"]
BY_DESCENT = ["AIR-dense", "AIR-completion", "AIR-sparse", "AIR-ratings", "AIR-transforms"]
BY_DESCENT += ["DMF", "RDMF", "DirichletDMF"]
TRAINED = [*BY_DESCENT, *POSTERIORS]
GRAPHS = ["AIR-dense", "AIR-completion", "AIR-sparse", "AIR-ratings", "AIR-transforms", "DirichletDMF", *POSTERIORS]

every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
trained_models = pytest.mark.parametrize("make", [MODELS[name] for name in TRAINED], ids=TRAINED)
models_with_graphs = pytest.mark.parametrize("make", [MODELS[name] for name in GRAPHS], ids=GRAPHS)

N_USERS, N_ITEMS = 12, 9
PAIRS = np.repeat(np.arange(N_USERS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_USERS)


def fails(error: Any, message: str) -> Any:
    """Expect an error whose message holds these words."""
    return pytest.raises(error, match=re.escape(message))


def with_factors(model: Recommender, factors: Factors) -> Recommender:
    """Give a fitted model other factors."""
    model._state = replace(model._fitted(), factors=factors)
    return model


def of_preset(name: str, n_epochs: int, **options: Any) -> AIR:
    """An untrained model of a preset, with few epochs where it has epochs."""
    steps = {"n_epochs": n_epochs} if PRESETS[name].solver == "adam" else {}
    return AIR.of_preset(name, **CPU | steps | options)


frame = ContractTests().data  # ratings 1..5 by names; every user and item has some, user 0 has them all


def dense(seed: int = 0) -> np.ndarray:
    """The same ratings as users x items with NaN for missing."""
    return frame(seed).pivot(index="user", columns="item", values="rating").to_numpy().copy()


@cache
def _fitted_once(make: Callable[..., Recommender]) -> Recommender:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "each row counts as one like")
        return make().fit(frame())


def fitted(make: Callable[..., Recommender]) -> Any:
    """A model of `frame()`, as new: a copy of one that is trained once in a run of the tests."""
    return copy.deepcopy(_fitted_once(make))


USERS = [f"u{user:02}" for user in range(N_USERS)]
ITEMS = [f"i{item}" for item in range(N_ITEMS)]


def assert_same_predictions(first: Any, second: Any, *pairs: Any, **options: Any) -> None:
    """Both models predict the same scores and deviations, to the bit."""
    for one, other in zip(
        *(each.predict(*pairs, return_std=True, **options) for each in (first, second)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def global_numpy_state() -> np.ndarray:
    """What NumPy's global generator would draw from."""
    state: Any = np.random.get_state()  # noqa: NPY002, it is what must not move
    return state[1].copy()


def completed(model: Recommender, array: np.ndarray) -> np.ndarray:
    """The whole matrix as a model that is fitted to it predicts it."""
    users, items = np.indices(array.shape)
    return model.fit(array).predict(users.ravel(), items.ravel()).reshape(array.shape)
