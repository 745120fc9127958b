"""The rankers that are compared: each is trained by a function of the training interactions alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.system import System, make_implicit, train
from air_recsys.evaluation.systems import comparable_systems, ranker_system
from benchmarks.accuracy.experiments import experiment
from benchmarks.accuracy.peers.autoencoders import EASE, RDLAE
from benchmarks.accuracy.peers.filters import GFCF, TurboCF
from benchmarks.accuracy.peers.sasrec import SASRec
from benchmarks.accuracy.ranking_data import RANKING_SETS, alike, split_of
from benchmarks.accuracy.searches import HALF_LIVES, Grid, HalfLives, Lister, Selection

_TEXTS = experiment("ranking")
LADDERS: dict[str, Grid] = _TEXTS["ladder"]
"""The settings that a search goes on to from the best of a grid, by the system."""
_GRID_ALONE = ("RDLAE", "Turbo-CF", "implicit BM25")
_SEARCHED_ONLY = ("EASE", "RDLAE", "Turbo-CF")


def systems_by_default(data: str, *, new_users: bool = False) -> list[str]:
    """The names of the systems of a set: EASE, RDLAE and Turbo-CF only where they are searched."""
    systems = ranking_systems(data, new_users=new_users)
    return [name for name in systems if name not in _SEARCHED_ONLY or name in grids_of(data)]


def ranking_systems(
    data: str, changes: dict[str, Any] | None = None, seed: int = 0, threads: int = 1, *, new_users: bool = False
) -> dict[str, System]:
    """All systems by name.

    Parameters
    ----------
    data : str
        A key of `benchmarks.accuracy.ranking_data.RANKING_SETS`: the settings of the peers are searched
        where that takes minutes.
    changes : dict, optional
        Parameters of `GraphRanker`.
    seed, threads : int
        Of every system that takes them.
    new_users : bool
        Choose settings on users held out, and leave out systems that make no lists for users whom they were not
        trained on.
    """
    validation = "users" if new_users else RANKING_SETS[data].validation
    changes = changes or {}
    parameters = {"random_state": seed} | ({} if "settings" in changes else {"validation": validation}) | changes
    pairs = {"GraphRanker, pairs alone": _of_pairs(parameters)} if RANKING_SETS[data].counts else {}
    systems = {
        "GraphRanker": ranker_system(parameters),
        **pairs,
        **_peers(data, seed, threads, validation),
        **_sequences(RANKING_SETS[data].latest, seed),
        "Popularity": comparable_systems()["Popularity"],
    }
    return {name: system for name, system in systems.items() if system.new_users or not new_users}


def _peers(data: str, seed: int, threads: int, validation: str) -> dict[str, System]:
    """The peers whose settings are searched or fixed, those by convention, and those that read the order."""
    shared = {"random_state": seed, "num_threads": threads}
    every = {
        "implicit ALS": partial(make_implicit, "als", **shared),
        "implicit BPR": partial(make_implicit, "bpr", **shared),
        "GF-CF": partial(GFCF, random_state=seed),
        "EASE": EASE,
        "RDLAE": RDLAE,
        "Turbo-CF": TurboCF,
        "implicit BM25": partial(make_implicit, "bm25", num_threads=threads),
    }
    needs_grid = every if RANKING_SETS[data].counts else _GRID_ALONE
    makers = {name: make for name, make in every.items() if name in grids_of(data) or name not in needs_grid}
    peers = {name: _peer(data, name, make, seed, validation) for name, make in makers.items()}
    conventions = _TEXTS["convention"].get(split_of(data), {})
    settled = {name: _by_convention(settings, seed) for name, settings in conventions.items()}
    systems = peers | {f"{name} by convention": peer for name, peer in settled.items()}
    if validation == "last":
        weighed = {name: peer for name, peer in (settled or peers).items() if peer.new_users}
        systems |= {f"{name}, half-lives": _with_half_lives(peer, seed) for name, peer in weighed.items()}
    return systems


def _sequences(latest: int | None, seed: int) -> dict[str, System]:
    """SASRec with both losses, where it is said how many of the latest items are read."""
    losses = {"SASRec": False, "SASRec, softmax": True} if latest else {}
    told = f"written from its paper, of {latest} latest items; dropout and epochs by the last items of the training"
    make = partial(SASRec, latest or 1, random_state=seed)
    return {name: System(partial(train, make, {"softmax": loss}), told) for name, loss in losses.items()}


def grids_of(data: str) -> dict[str, Grid]:
    """What the settings of the peers are searched over on a set, by the system."""
    entry = _TEXTS["set"][split_of(data)]
    grids: dict[str, Grid] = {"implicit ALS": _TEXTS["als"][entry["als"]]}
    for name in entry["grids"]:
        grids |= _TEXTS[name]
    return grids


def choice_of(model: Any) -> str:
    """The settings that a model has chosen, in words, and which of them are the last that were tried."""
    settings = getattr(model, "settings_", {})
    told = _told(settings if isinstance(settings, Mapping) else settings._asdict())
    edges = getattr(model, "edges_", [])
    return told + (f" (no further {' and '.join(edges)} tried)" if edges else "")


def _peer(data: str, name: str, make: Any, seed: int, validation: str) -> System:
    needs = "implicit" if name.startswith("implicit") else None
    origin, new_users = _TEXTS["origin"][name], name != "implicit BPR"
    grid = grids_of(data).get(name)
    if grid is None:
        fixed = _TEXTS["fixed"][name]
        told = f"{origin}, {_told(fixed)}{_TEXTS['how-fixed'].get(name, '')}"
        return System(partial(train, make, fixed), told, needs, needs or "", new_users=new_users)
    ladders = LADDERS.get(name, {})
    told = f"{origin}, the best on {_TEXTS['chosen-on'][validation]} of {_told(grid)}"
    ends = ", ".join(f"{name} {values[0]:g}..{values[-1]:g}" for name, values in ladders.items())
    further = f", and of single steps from the best within {ends}" if ladders else ""
    trained = partial(_train_chosen, make, grid, ladders, seed, validation)
    return System(trained, told + further, needs, needs or "", new_users=new_users)


def _by_convention(settings: dict[str, Any], seed: int) -> System:
    told = f"written from its paper and program, {_told(settings)}: the settings of the paper for this split"
    return System(partial(train, partial(GFCF, random_state=seed), settings), told, new_users=True)


def _of_pairs(parameters: Mapping[str, Any]) -> System:
    ranker = ranker_system(parameters)
    return ranker._replace(train=partial(_train_alike, ranker.train))


def _train_alike(train: Callable[[Interactions], Any], shown: Interactions) -> Any:
    return train(alike(shown))


def _with_half_lives(peer: System, seed: int) -> System:
    told = f"{peer.settings}; and the best on {_TEXTS['chosen-on']['last']} of {_told({'half_life': HALF_LIVES})}"
    return peer._replace(train=partial(_train_half_lives, peer.train, seed), settings=told)


def _told(settings: Mapping[str, Any]) -> str:
    values = {name: value if isinstance(value, (tuple, list)) else (value,) for name, value in settings.items()}
    words = {name: " | ".join("none" if each is None else f"{each:g}" for each in values[name]) for name in values}
    return ", ".join(f"{name}={tried}" for name, tried in words.items())


def _train_chosen(make: Any, grid: Grid, ladders: Grid, seed: int, validation: str, shown: Interactions) -> Lister:
    return Selection(make, grid, ladders, seed, validation).fit(shown)


def _train_half_lives(train: Any, seed: int, shown: Interactions) -> Lister:
    return HalfLives(train, seed).fit(shown)
