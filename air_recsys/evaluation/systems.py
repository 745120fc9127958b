"""The systems of comparisons by name: AIR, baselines, and models of other libraries, each as what trains it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.ids import close_names
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import mean_of_unknown
from air_recsys.evaluation.lists import Popularity
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR, DMF, BiasModel, GlobalMean, GraphRanker
from air_recsys.models.solvers import as_solver, parameter_names

AIR_SETTINGS: dict[str, dict[str, Any]] = {
    "AIR": {},
    "AIR langevin": {"solver": "langevin"},
    "AIR adam": {"solver": "adam"},
}
"""Parameters of `AIR.for_ratings` by the name of the system."""
FOR_RATINGS = (
    *("AIR", "Biases", "GlobalMean", "Surprise SVD", "myFM Bayesian MF", "Cornac MF"),
    *("GraphRanker", "implicit ALS", "Popularity"),
)
"""The systems that are compared on ratings where none is named: of each library what is quick."""
FOR_LIKES = ("GraphRanker", "Popularity", "implicit ALS", "implicit BPR", "Cornac BPR", "LightFM WARP")
"""The systems that are compared on likes where none is named."""
_DISTRIBUTIONS = {"surprise": "scikit-surprise", "lightfm": "lightfm-next"}  # where not the name of the package
_SURPRISE: dict[str, tuple[str, dict[str, Any]]] = {
    "BaselineOnly": ("BaselineOnly", {"verbose": False}),
    "KNNBaseline": ("KNNBaseline", {"verbose": False}),
    "SVD": ("SVD", {}),
    "SVD++": ("SVDpp", {}),
}


class System(NamedTuple):
    """A model by the function that trains it and returns it."""

    train: Callable[[Interactions], Any]
    settings: str
    needs: str | None = None  # the package that it requires
    extra: str = ""  # the extra that installs it
    changed: tuple[str, ...] = ()  # the changes that it reads


def rating_systems(
    changes: Mapping[str, Any] | None = None, seed: int = 0, *, myfm: tuple[int, int] = (10, 300)
) -> dict[str, System]:
    """Return all systems that predict ratings, by name.

    Parameters
    ----------
    changes : mapping, optional
        Parameters of AIR on top of `AIR_SETTINGS`, and of DMF on top of AIR adam; each takes those that it reads.
    seed : int
        Of every system; myFM gets its own default, 42, for 0.
    myfm : tuple of int
        Factors and Gibbs steps of myFM's models.
    """
    changes = dict(changes or {})
    systems = air_systems(AIR_SETTINGS, changes, seed)
    for_dmf = {name: value for name, value in changes.items() if name in parameter_names(DMF)}
    train = partial(_train_dmf, for_dmf, seed)
    systems["DMF"] = System(train, "the settings of AIR adam without its graphs", changed=tuple(for_dmf))
    systems["Biases"] = System(BiasModel().fit, "mean and biases, bias_decay=5")
    for name, (algorithm, options) in _SURPRISE.items():
        options = options | ({"random_state": seed} if "SVD" in algorithm else {})
        train = partial(_train_surprise, algorithm, options)
        systems[f"Surprise {name}"] = System(train, "its own code and defaults", "surprise", "surprise")
    for name, implicit, ordered in (
        ("Bayesian MF", False, False),
        ("Bayesian SVD++ flipped", True, False),
        ("ordered SVD++ flipped", True, True),
    ):
        train = partial(train_myfm, *myfm, 42 + seed, implicit, ordered=ordered)
        told = f"its own code, rank {myfm[0]}, {myfm[1]} Gibbs steps"
        systems[f"myFM {name}"] = System(train, told, "myfm", "test")
    return systems


def comparable_systems(
    changes: Mapping[str, Any] | None = None, seed: int = 0, split: Any = None
) -> dict[str, System]:
    """Return all systems that `compare` knows by name: `rating_systems`, and those that make lists alone.

    Parameters
    ----------
    changes : mapping, optional
        Parameters of AIR and DMF, as in `rating_systems`.
    seed : int
    split : optional
        That of the comparison: for "time" and "last" `GraphRanker` chooses its settings on parts of that kind.
    """
    hidden = split if split in ("time", "last") else "random"
    implicit = {f"implicit {name.upper()}": name for name in ("als", "bpr")}
    own = "its own code and defaults"
    systems = {
        **rating_systems(changes, seed),
        "GlobalMean": System(GlobalMean().fit, "the mean of the training ratings"),
        "Cornac MF": System(partial(_train_cornac, "MF", seed), own, "cornac", "cornac"),
        "GraphRanker": System(partial(_train_ranker, seed, hidden), f"AIR.for_likes(validation={hidden!r})"),
        "Popularity": System(Popularity().fit, "the number of interactions"),
        **{
            name: System(partial(_train_implicit, algorithm, seed), own, "implicit", "implicit")
            for name, algorithm in implicit.items()
        },
        "Cornac BPR": System(partial(_train_cornac, "BPR", seed), own, "cornac", "cornac"),
        "LightFM WARP": System(partial(_train_lightfm, "warp", seed), "its own code, 30 epochs", "lightfm", "lightfm"),
    }
    plain = {name: systems[name] for name in ("Biases", "GlobalMean", "DMF")}
    told = {name: each._replace(train=partial(_train_on_ratings_alone, each.train)) for name, each in plain.items()}
    return systems | told


def named(systems: Mapping[str, System], names: Iterable[str]) -> dict[str, System]:
    """Return the systems of some names, in that order; upper and lower case are alike, and "all" names each.

    Raises
    ------
    ParameterError
        For a name that no system has, with the nearest one.

    Examples
    --------
    >>> list(named(comparable_systems(), ["biases", "AIR"]))
    ['Biases', 'AIR']
    >>> named(comparable_systems(), ["bias"])
    Traceback (most recent call last):
    air_recsys.exceptions.ParameterError: no system is called 'bias': did you mean Biases? The systems are AIR, ...
    """
    folded = {name.lower(): name for name in systems}
    chosen: dict[str, System] = {}
    for name in names:
        if name.lower() == "all":
            chosen |= {each: system for each, system in systems.items() if each not in chosen}
        elif name.lower() in folded:
            chosen[folded[name.lower()]] = systems[folded[name.lower()]]
        else:
            close = close_names(name.lower(), folded, n=1)
            meant = f"did you mean {folded[close[0]]}? The" if close else "the"
            raise ParameterError(f"no system is called {name!r}: {meant} systems are {', '.join(systems)}")
    return chosen


def installed(systems: Mapping[str, System]) -> tuple[dict[str, System], list[str]]:
    """Return the systems whose package is installed, and a line a package that is not, with how to install it.

    Examples
    --------
    >>> some = {"Biases": System(BiasModel().fit, ""), "Ghost": System(BiasModel().fit, "", "no_such_package")}
    >>> found, absent = installed(some)
    >>> list(found), absent
    (['Biases'], ['not installed: Ghost (pip install no_such_package)'])
    """
    found = {name: system for name, system in systems.items() if system.needs is None or find_spec(system.needs)}
    absent: dict[str, list[str]] = {}
    for name, system in systems.items():
        if name not in found:
            assert system.needs is not None
            absent.setdefault(_DISTRIBUTIONS.get(system.needs, system.needs), []).append(name)
    lines = [f"not installed: {', '.join(names)} (pip install {package})" for package, names in absent.items()]
    return found, lines


def air_systems(settings: Mapping[str, dict[str, Any]], changes: dict[str, Any], seed: int) -> dict[str, System]:
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


def ask_ratings(model: Any, asked: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predicted ratings, shape (n_asked,), and their standard deviations where a model samples.

    A model that knows of time is asked for the times of the pairs.
    """
    of_time = times_of(model, asked) | mean_of_unknown(model)
    if not getattr(model, "knows_deviations_", False):
        return np.asarray(model.predict(*asked[:2], **of_time)), None
    mean, deviation = model.predict(*asked[:2], return_std=True, **of_time)
    return np.asarray(mean), np.asarray(deviation)


def times_of(model: Any, asked: tuple[Any, ...]) -> dict[str, Any]:
    """Return the times of the pairs, which come after the ids, for a model that knows of time."""
    knows_time = getattr(model, "drift_", None) is not None or getattr(model, "dates", False)
    return {"timestamps": asked[2]} if knows_time and len(asked) == 3 else {}


def train_myfm(rank: int, n_steps: int, seed: int, implicit: bool, shown: Interactions, **options: bool) -> Any:
    """Return a trained model of myFM."""
    from air_recsys.adapters.myfm_peer import MyFMModel

    return MyFMModel(rank, n_steps, seed, implicit, **options).fit(shown)


def ratings_alone(data: Interactions, *, timed: bool = False) -> Interactions:
    """Return ratings without weights, features and, unless `timed`, times, for models that read none of these.

    Examples
    --------
    >>> ratings_alone(Interactions.from_dense([[5, 3]]).with_features(item=np.eye(2))).item_features is None
    True
    """
    pairs = data.user_index, data.item_index
    times = data.timestamps if timed else None
    return Interactions(*pairs, data.ratings, data.user_ids, data.item_ids, timestamps=times, allow_negative=True)


def of_host(model: Any) -> System | None:
    """Return the system of a model of Surprise or implicit as these make it; None for other objects.

    Each training takes a copy. Only what is imported is looked at: an object of a library has imported it.
    """
    for module, base, train in (
        ("surprise", "AlgoBase", _train_given_surprise),
        ("implicit.recommender_base", "RecommenderBase", _train_given_implicit),
    ):
        if module in sys.modules and isinstance(model, getattr(sys.modules[module], base)):
            kind = type(model)
            return System(partial(train, model), f"{kind.__module__}.{kind.__qualname__}, as given")
    return None


def _train_given_surprise(algorithm: Any, shown: Interactions) -> Any:
    from air_recsys.adapters.surprise_peer import SurpriseModel

    return SurpriseModel(deepcopy(algorithm)).fit(shown)


def _train_given_implicit(model: Any, shown: Interactions) -> Any:
    from air_recsys.adapters.implicit_lists_peer import ImplicitLists

    return ImplicitLists(deepcopy(model)).fit(shown)


def _train_on_ratings_alone(train: Callable[[Interactions], Any], shown: Interactions) -> Any:
    return train(ratings_alone(shown))


def _train_air(parameters: dict[str, Any], seed: int, shown: Interactions) -> AIR:
    return AIR.for_ratings(**{"random_state": seed, "device": "cpu"} | parameters).fit(shown)


def _train_dmf(parameters: dict[str, Any], seed: int, shown: Interactions) -> DMF:
    given = {"solver": "adam", "random_state": seed, "device": "cpu"} | parameters
    return DMF.like(AIR.for_ratings(**given)).fit(shown)


def _train_ranker(seed: int, hidden: str, shown: Interactions) -> GraphRanker:
    likes = ratings_alone(shown, timed=hidden != "random")
    return AIR.for_likes(random_state=seed, device="cpu", validation=hidden).fit(likes)


def _train_surprise(algorithm: str, options: dict[str, Any], shown: Interactions) -> Any:
    from air_recsys.adapters.surprise_peer import SurpriseModel

    return SurpriseModel(algorithm, **options).fit(shown)


def _train_implicit(algorithm: str, seed: int, shown: Interactions) -> Any:
    from air_recsys.adapters.implicit_lists_peer import ImplicitLists

    return ImplicitLists(algorithm, random_state=seed, num_threads=1).fit(shown)


def _train_cornac(algorithm: str, seed: int, shown: Interactions) -> Any:
    from air_recsys.adapters.cornac_peer import CornacLists, CornacModel

    kind = CornacModel if algorithm == "MF" else CornacLists  # BPR's scores are no ratings
    return kind(algorithm, seed=seed, num_threads=1).fit(shown)


def _train_lightfm(loss: str, seed: int, shown: Interactions) -> Any:
    from air_recsys.adapters.lightfm_peer import LightFMLists

    return LightFMLists(loss, random_state=seed).fit(shown)
