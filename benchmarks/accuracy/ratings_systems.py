"""The rating models that are compared: each is trained by a function of the training ratings alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.monti import MontiGraphs
from air_recsys.evaluation import systems as compared
from air_recsys.evaluation.systems import AIR_SETTINGS, System, air_systems, ask_ratings, times_of, train_myfm
from air_recsys.exceptions import MissingExtraError
from air_recsys.models.given import with_similarities
from air_recsys.models.solvers import STRENGTH_NAMES
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.ridge_peer import RidgeOnFeatures

ABLATIONS: dict[str, dict[str, Any]] = {
    "AIR": {},
    "no pattern": {"pattern_features": 0},
    "50 pattern features": {"pattern_features": 50},
    "200 pattern features": {"pattern_features": 200},
    "10 factors": {"n_factors": 10},
    "40 factors": {"n_factors": 40},
    "6 sweeps": {"n_sweeps": 6},
    "30 sweeps": {"n_sweeps": 30},
    "no graphs": {"user_graph_reg": 0, "item_graph_reg": 0},
    "langevin": {"solver": "langevin"},
    "langevin, no pattern": {"solver": "langevin", "pattern_features": 0},
    "langevin, 1000 sweeps": {"solver": "langevin", "n_sweeps": 1000},
    "adam": {"solver": "adam"},
}
"""Parameters of `AIR.for_ratings` that remove or change one component each."""
READ_FEATURES = (
    *("AIR", "AIR langevin", "myFM Bayesian MF", "myFM Bayesian SVD++ flipped", "myFM ordered SVD++ flipped"),
    *("myFM timeSVD++ flipped", "myFM ordered timeSVD++ flipped"),
)
"""Systems that read features of users and items."""


def systems_with_features(systems: Mapping[str, System], tables: Mapping[str, pd.DataFrame]) -> dict[str, System]:
    """Return the systems that read features with tables of them, ridge regression, and "AIR without features"."""
    told = {
        name: system._replace(train=partial(_train_with_features, system.train, dict(tables)))
        for name, system in systems.items()
        if name in READ_FEATURES
    }
    ridge = partial(_train_with_features, RidgeOnFeatures().fit, dict(tables))
    told["Ridge on features"] = System(ridge, "biases and features, scikit-learn, penalty from a hidden tenth")
    return told | {"AIR without features": systems["AIR"]}


def systems_with_graphs(graphs: MontiGraphs, changes: dict[str, Any], seed: int = 0) -> dict[str, System]:
    """Return AIR with given graphs, and beside it AIR without graphs and their strengths."""
    settings = {name: AIR_SETTINGS[name] for name in ("AIR", "AIR langevin")}
    told = {
        name: system._replace(train=partial(_train_with_graphs, system.train, graphs))
        for name, system in air_systems(settings, changes, seed).items()
    }
    others = {name: value for name, value in changes.items() if name not in STRENGTH_NAMES}
    without = air_systems(settings, others, seed)
    return told | {f"{name} without graphs": system for name, system in without.items()}


def systems_with_times(changes: dict[str, Any] | None = None, seed: int = 0) -> dict[str, System]:
    """Return the systems that read when ratings were given, and AIR under the name "AIR without times".

    myFM's are those of its example for MovieLens-100K, with the day of a rating as a further indicator.
    """
    timed = {name: AIR_SETTINGS[name] | {"time": "drift"} for name in ("AIR", "AIR langevin")}
    systems = air_systems(timed, changes or {}, seed)
    for name, ordered in (("timeSVD++ flipped", False), ("ordered timeSVD++ flipped", True)):
        train = partial(train_myfm, 10, 300, 42 + seed, True, dates=True, ordered=ordered)
        systems[f"myFM {name}"] = System(train, "its own code, rank 10, 300 Gibbs steps, days", "myfm", "test")
    return systems | {"AIR without times": air_systems({"AIR": {}}, changes or {}, seed)["AIR"]}


def rating_systems(data: str, changes: dict[str, Any] | None = None, seed: int = 0) -> dict[str, System]:
    """Return all systems by name: those of `air_recsys.evaluation.systems.rating_systems`.

    Parameters
    ----------
    data : str
        A key of `benchmarks.accuracy.ratings_data.RATING_SETS`: myFM takes more factors for the largest.
    changes, seed
    """
    return compared.rating_systems(changes, seed, myfm=(20, 200) if data == "ml-1m" else (10, 300))


def chosen_systems(systems: dict[str, System], names: list[str]) -> dict[str, System]:
    """Return the systems of some names, all for none; raise where a name is unknown or a package is not installed."""
    for name in names:
        check_choice("--system", name, list(systems))
    chosen = {name: system for name, system in systems.items() if not names or name in names}
    for system in chosen.values():
        if system.needs is not None and find_spec(system.needs) is None:
            raise MissingExtraError(system.needs, system.extra)
    return chosen


def ask_values(model: Any, asked: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return what `ask_ratings` does, and probabilities of the values of the training ratings, (n, k), where told."""
    tells = getattr(model, "knows_deviations_", False) or getattr(model, "ordered", False)
    ask = getattr(model, "predict_proba", None) if tells else None
    shares = None if ask is None else ask(*asked[:2], **times_of(model, asked))
    return (*ask_ratings(model, asked), shares)


def _train_with_features(
    train: Callable[[Interactions], Any], tables: dict[str, pd.DataFrame], shown: Interactions
) -> Any:
    return train(shown.with_features(**tables))


def _train_with_graphs(train: Callable[[Interactions], Any], graphs: MontiGraphs, shown: Interactions) -> Any:
    return train(with_similarities(shown, *graphs))
