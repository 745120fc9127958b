"""The systems of comparisons by name: AIR, baselines, and models of other libraries, each as what trains it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from air_recsys.evaluation.lists import Popularity
from air_recsys.evaluation.system import (
    System,
    check_installed,
    hosted,
    make_implicit,
    make_surprise,
    registered_system,
    system_of,
    train,
    train_plainly,
)
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR, DMF, BiasModel, GlobalMean, GraphRanker
from air_recsys.models.registered import registered_names
from air_recsys.models.solvers import Adam, as_solver, parameter_names

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
_SURPRISE: dict[str, tuple[str, dict[str, Any]]] = {
    "BaselineOnly": ("BaselineOnly", {"verbose": False}),
    "KNNBaseline": ("KNNBaseline", {"verbose": False}),
    "SVD": ("SVD", {}),
    "SVD++": ("SVDpp", {}),
}


PEERS = {"svd": "Surprise SVD", "svdpp": "Surprise SVD++", "knnbaseline": "Surprise KNNBaseline"}
"""The systems beside AIR that the command line knows by a word."""
LIST_PEERS = {"als": "implicit ALS", "bpr": "implicit BPR"}
"""Those beside `GraphRanker`."""
_MYFM: dict[str, dict[str, Any]] = {
    "Bayesian MF": {},
    "Bayesian SVD++ flipped": {"implicit": True},
    "ordered SVD++ flipped": {"implicit": True, "ordered": True},
}


def rating_systems(
    changes: Mapping[str, Any] | None = None, seed: int = 0, *, myfm: tuple[int, int] = (10, 300)
) -> dict[str, System]:
    """All systems that predict ratings, by name.

    `changes` are parameters of AIR on top of `AIR_SETTINGS`, and of DMF on top of AIR adam; each takes those that it
    reads. `myfm` are factors and Gibbs steps of myFM's models, which get its own default, 42, for the seed 0.
    """
    changes = dict(changes or {})
    systems = air_systems(AIR_SETTINGS, changes, seed)
    for_dmf = {name: value for name, value in changes.items() if name in parameter_names(DMF)}
    given = {"solver": "adam", "random_state": seed, "device": "cpu"} | for_dmf
    told = "the settings of AIR adam without its graphs"
    systems["DMF"] = System(partial(train_plainly, _dmf, given), told, changed=tuple(for_dmf))
    systems["Biases"] = System(partial(train_plainly, BiasModel, {}), "mean and biases, bias_decay=5")
    for name, (algorithm, options) in _SURPRISE.items():
        options = options | ({"random_state": seed} if "SVD" in algorithm else {})
        systems[f"Surprise {name}"] = _peer(partial(make_surprise, algorithm), "surprise", options)
    for name, options in _MYFM.items():
        systems[f"myFM {name}"] = myfm_system(*myfm, 42 + seed, **options)
    return systems


def comparable_systems(
    changes: Mapping[str, Any] | None = None, seed: int = 0, split: Any = None, *, threads: int = 1
) -> dict[str, System]:
    """All systems that `compare` knows by name: `rating_systems`, and those that only make lists.

    For a `split` "time" or "last" `GraphRanker` chooses its settings on parts of that kind. `threads` are those of the
    models of implicit; 0 are all.
    """
    hidden = split if split in ("time", "last") else "random"
    ranker = {"random_state": seed, "device": "cpu", "validation": hidden}
    implicit: dict[str, Any] = {"random_state": seed, "num_threads": threads}
    cornac: dict[str, Any] = {"seed": seed, "num_threads": 1}
    plain = partial(train_plainly, timed=hidden != "random")
    warp = partial(hosted, "lightfm_peer", "LightFMLists", "warp")
    return {
        **rating_systems(changes, seed),
        "GlobalMean": System(partial(train_plainly, GlobalMean, {}), "the mean of the training ratings"),
        "Cornac MF": _peer(partial(hosted, "cornac_peer", "CornacModel", "MF"), "cornac", cornac),
        "GraphRanker": System(partial(plain, AIR.for_likes, ranker), f"AIR.for_likes(validation={hidden!r})"),
        "Popularity": System(Popularity().fit, "the number of interactions", new_users=True),
        "implicit ALS": _peer(partial(make_implicit, "als"), "implicit", implicit)._replace(new_users=True),
        "implicit BPR": _peer(partial(make_implicit, "bpr"), "implicit", implicit),
        # Its scores are no ratings.
        "Cornac BPR": _peer(partial(hosted, "cornac_peer", "CornacLists", "BPR"), "cornac", cornac),
        "LightFM WARP": _peer(warp, "lightfm", {"random_state": seed}, "its own code, 30 epochs"),
    }


def beside_air(air: AIR, peers: Iterable[str], seed: int) -> dict[str, System]:
    """A model, its baselines, DMF where its objective is that of AIR, models of Surprise and registered ones."""
    every = comparable_systems(seed=seed)
    systems = {"AIR": system_of(air)}
    if not air.chooses_solver and isinstance(as_solver(air.solver), Adam):
        systems["DMF"] = system_of(DMF.like(air))
    systems |= {"BiasModel": every["Biases"], "GlobalMean": every["GlobalMean"]}
    systems |= {name.replace("++", "pp"): system for name, system in _beside(peers, PEERS, every, seed).items()}
    check_installed(systems)
    return systems


def beside_ranker(
    peers: Iterable[str], seed: int, changes: Mapping[str, Any] | None = None, *, new_users: bool = False
) -> dict[str, System]:
    """`GraphRanker`, what is popular, and models of implicit with its defaults.

    `peers` are keys of `LIST_PEERS` and registered models, `changes` parameters of `GraphRanker`. With `new_users`
    lists of users are asked for whom the systems were not trained on.
    """
    every = comparable_systems(seed=seed, threads=0)
    systems = {"GraphRanker": ranker_system({"random_state": seed} | dict(changes or {}))}
    systems["most popular"] = every["Popularity"]
    for name, system in _beside(peers, LIST_PEERS, every, seed).items():
        if new_users and not system.new_users:
            raise ParameterError(f"{name} makes lists only for users of its training: leave it out")
        systems[name] = system
    check_installed(systems)
    return systems


def _beside(
    peers: Iterable[str], known: Mapping[str, str], every: Mapping[str, System], seed: int
) -> dict[str, System]:
    """The systems of some words, or by the name of a registered class."""
    systems, others = {}, registered_names()
    for peer in peers:
        if peer not in known and peer not in others:
            raise ParameterError(f"peers must be of {[*known, *others]}, found {peer!r}")
        name = known.get(peer, peer)
        systems[name] = every[name] if peer in known else registered_system(peer, seed)
    return systems


def air_systems(settings: Mapping[str, dict[str, Any]], changes: dict[str, Any], seed: int) -> dict[str, System]:
    """`AIR.for_ratings` with each of the named settings and, on top, the changes that its solver reads."""
    systems = {}
    for name, parameters in settings.items():
        solver = as_solver((parameters | changes).get("solver", "variational"))
        names = {*parameter_names(AIR), *parameter_names(type(solver))}
        read = {key: value for key, value in changes.items() if key in names}
        given = parameters | read
        text = f"AIR.for_ratings({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        made = {"random_state": seed, "device": "cpu"} | given
        systems[name] = System(partial(train, AIR.for_ratings, made), text, changed=tuple(read))
    return systems


def ranker_system(parameters: Mapping[str, Any]) -> System:
    """`GraphRanker` with some parameters."""
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return System(partial(train, GraphRanker, dict(parameters)), f"GraphRanker({told})", new_users=True)


def myfm_system(rank: int, n_steps: int, seed: int, told: str = "", **options: bool) -> System:
    """A model of myFM with so many factors and Gibbs steps."""
    given: dict[str, Any] = {"rank": rank, "n_steps": n_steps, "random_state": seed, **options}
    told = f"its own code, rank {rank}, {n_steps} Gibbs steps{told}"
    return _peer(partial(hosted, "myfm_peer", "MyFMModel"), "myfm", given, told, "test")


def _peer(
    make: Callable[..., Any],
    package: str,
    options: Mapping[str, Any],
    told: str = "its own code and defaults",
    extra: str | None = None,
) -> System:
    return System(partial(train, make, dict(options)), told, package, package if extra is None else extra)


def _dmf(**settings: Any) -> DMF:
    return DMF.like(AIR.for_ratings(**settings))
