"""The rating models that are compared: each is trained by a function of the training ratings alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.benchmarks.accuracy.ridge_peer import RidgeOnFeatures
from air_recsys.datasets.monti import MontiGraphs
from air_recsys.exceptions import MissingExtraError, ParameterError
from air_recsys.interactions import Interactions
from air_recsys.models import AIR, DMF, BiasModel
from air_recsys.models.given_graphs import with_similarities
from air_recsys.solvers import STRENGTH_NAMES, as_solver, parameter_names
from air_recsys.validation import check_choice

AIR_SETTINGS: dict[str, dict[str, Any]] = {
    "AIR": {},
    "AIR langevin": {"solver": "langevin"},
    "AIR adam": {"solver": "adam"},
}
"""Parameters of `AIR.for_ratings` by the name of the system."""
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


class System(NamedTuple):
    """A model by the function that trains it and returns it."""

    train: Callable[[Interactions], Any]
    settings: str
    needs: str | None = None  # the package that it requires
    extra: str = ""  # the extra that installs it
    changed: tuple[str, ...] = ()  # the changes that it reads


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
        train = partial(_train_myfm, 10, 300, 42 + seed, True, dates=True, ordered=ordered)
        systems[f"myFM {name}"] = System(train, "its own code, rank 10, 300 Gibbs steps, days", "myfm", "test")
    return systems | {"AIR without times": air_systems({"AIR": {}}, changes or {}, seed)["AIR"]}


def rating_systems(data: str, changes: dict[str, Any] | None = None, seed: int = 0) -> dict[str, System]:
    """Return all systems by name.

    Parameters
    ----------
    data : str
        A key of `air_recsys.benchmarks.accuracy.ratings_data.RATING_SETS`: myFM takes more factors for the largest.
    changes : dict, optional
        Parameters of AIR on top of `AIR_SETTINGS`, and of DMF on top of AIR adam; each takes those that it reads.
    seed : int
        Of every system; myFM gets its own default, 42, for 0.
    """
    changes = changes or {}
    systems = air_systems(AIR_SETTINGS, changes, seed)
    for_dmf = {name: value for name, value in changes.items() if name in parameter_names(DMF)}
    train = partial(_train_dmf, for_dmf, seed)
    systems["DMF"] = System(train, "the settings of AIR adam without its graphs", changed=tuple(for_dmf))
    systems["Biases"] = System(BiasModel().fit, "mean and biases, bias_decay=5")
    for name, (algorithm, options) in _SURPRISE.items():
        options = options | ({"random_state": seed} if "SVD" in algorithm else {})
        train = partial(_train_surprise, algorithm, options)
        systems[f"Surprise {name}"] = System(train, "its own code and defaults", "surprise", "surprise")
    rank, n_steps = (20, 200) if data == "ml-1m" else (10, 300)
    for name, implicit, ordered in (
        ("Bayesian MF", False, False),
        ("Bayesian SVD++ flipped", True, False),
        ("ordered SVD++ flipped", True, True),
    ):
        train = partial(_train_myfm, rank, n_steps, 42 + seed, implicit, ordered=ordered)
        systems[f"myFM {name}"] = System(train, f"its own code, rank {rank}, {n_steps} Gibbs steps", "myfm", "test")
    return systems


def air_systems(settings: dict[str, dict[str, Any]], changes: dict[str, Any], seed: int) -> dict[str, System]:
    """Return `AIR.for_ratings` with each of the named settings and, on top, the changes that its solver reads."""
    systems = {}
    for name, parameters in settings.items():
        solver = as_solver((parameters | changes).get("solver", "variational"))
        names = {*parameter_names(AIR), *parameter_names(type(solver))}
        read = {key: value for key, value in changes.items() if key in names}
        given = parameters | read
        text = f"AIR.for_ratings({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        systems[name] = System(partial(_train_air, given, seed), text, changed=tuple(read))
    return systems


def check_changes(systems: Mapping[str, System], changes: Iterable[str]) -> None:
    """Raise `ParameterError` for a change that none of the systems has taken.

    Examples
    --------
    >>> check_changes(air_systems({"AIR": {}}, {"n_epochs": 5}, seed=0), ["n_epochs"])
    Traceback (most recent call last):
    air_recsys.exceptions.ParameterError: none of the systems AIR reads n_epochs
    """
    for name in changes:
        if not any(name in system.changed for system in systems.values()):
            raise ParameterError(f"none of the systems {', '.join(systems)} reads {name}")


def chosen_systems(systems: dict[str, System], names: list[str]) -> dict[str, System]:
    """Return the systems of some names, all for none; raise where a name is unknown or a package is not installed."""
    for name in names:
        check_choice("--system", name, list(systems))
    chosen = {name: system for name, system in systems.items() if not names or name in names}
    for system in chosen.values():
        if system.needs is not None and find_spec(system.needs) is None:
            raise MissingExtraError(system.needs, system.extra)
    return chosen


def ask_ratings(model: Any, asked: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predicted ratings, shape (n_asked,), and their standard deviations where a model samples.

    A model that knows of time is asked for the times of the pairs.
    """
    of_time = _of_time(model, asked)
    if not getattr(model, "knows_deviations_", False):
        return np.asarray(model.predict(*asked[:2], **of_time)), None
    mean, deviation = model.predict(*asked[:2], return_std=True, **of_time)
    return np.asarray(mean), np.asarray(deviation)


def ask_values(model: Any, asked: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return what `ask_ratings` does, and probabilities of the values of the training ratings, (n, k), where told."""
    tells = getattr(model, "knows_deviations_", False) or getattr(model, "ordered", False)
    ask = getattr(model, "predict_proba", None) if tells else None
    shares = None if ask is None else ask(*asked[:2], **_of_time(model, asked))
    return (*ask_ratings(model, asked), shares)


def _of_time(model: Any, asked: tuple[Any, ...]) -> dict[str, Any]:
    """Return the times of the pairs, which come after the ids, for a model that knows of time."""
    knows_time = getattr(model, "drift_", None) is not None or getattr(model, "dates", False)
    return {"timestamps": asked[2]} if knows_time and len(asked) == 3 else {}


_SURPRISE: dict[str, tuple[str, dict[str, Any]]] = {
    "BaselineOnly": ("BaselineOnly", {"verbose": False}),
    "KNNBaseline": ("KNNBaseline", {"verbose": False}),
    "SVD": ("SVD", {}),
    "SVD++": ("SVDpp", {}),
}


def _train_air(parameters: dict[str, Any], seed: int, shown: Interactions) -> AIR:
    return AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | parameters).fit(shown)


def _train_with_features(
    train: Callable[[Interactions], Any], tables: dict[str, pd.DataFrame], shown: Interactions
) -> Any:
    return train(shown.with_features(**tables))


def _train_with_graphs(train: Callable[[Interactions], Any], graphs: MontiGraphs, shown: Interactions) -> Any:
    return train(with_similarities(shown, *graphs))


def _train_dmf(parameters: dict[str, Any], seed: int, shown: Interactions) -> DMF:
    given = {"solver": "adam", "random_state": seed, "device": "cpu"} | parameters
    return DMF.like(AIR.for_ratings(**given)).fit(shown)


def _train_surprise(algorithm: str, options: dict[str, Any], shown: Interactions) -> Any:
    from air_recsys.adapters.surprise_peer import SurpriseModel

    return SurpriseModel(algorithm, **options).fit(shown)


def _train_myfm(rank: int, n_steps: int, seed: int, implicit: bool, shown: Interactions, **options: bool) -> Any:
    from air_recsys.adapters.myfm_peer import MyFMModel

    return MyFMModel(rank, n_steps, seed, implicit, **options).fit(shown)
