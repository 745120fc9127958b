"""The rankers that are compared: each is trained by a function of the training interactions alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.lists import Lister, NewUsersLister, Popularity, Recommending
from air_recsys.evaluation.systems import System
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.ranker import GraphRanker
from benchmarks.accuracy.ranking_data import RANKING_SETS, split_of
from benchmarks.accuracy.ranking_filters import BSPM, GFCF, ChebyCF, Filter, TurboCF
from benchmarks.accuracy.ranking_half_lives import HALF_LIVES, HalfLives
from benchmarks.accuracy.ranking_peers import EASE, RDLAE
from benchmarks.accuracy.ranking_search import Grid, Selection
from benchmarks.accuracy.ranking_settings import CONVENTION, FIXED, GRIDS, LADDERS

LENGTHS = (20, 10, 100)
"""Of the lists that are measured."""
_SEARCHED_ONLY = ("EASE", "RDLAE", "Turbo-CF")
_CHOSEN_ON = {
    "random": "a random hidden fifth of each user's training items",
    "users": "a hidden fifth of the items of a tenth of the training's users, held out,",
    "last": "the hidden latest fifth of each user's training items",
    "time": "the hidden latest three fifths of the training items, each from what is before it,",
}
"""What a search hides, by the validation."""
_FILTERS = {"GF-CF": GFCF, "BSPM": BSPM, "ChebyCF": ChebyCF, "Turbo-CF": TurboCF}
_NO_NEW_USERS = ("implicit BPR",)
_ORIGIN = {
    "implicit ALS": "its own code",
    "implicit BPR": "its own code",
    "GF-CF": "written from its paper and program",
    "EASE": "written from its paper",
    "RDLAE": "written from its paper",
    "Turbo-CF": "written from its paper and program",
}
_HOW_FIXED = {
    "implicit BPR": ", the best of a few tried on a random hidden fifth of Gowalla's training part",
    "EASE": "",
}


class Lists(NamedTuple):
    """The answer of a system."""

    items: np.ndarray  # (b, at most 100), positions
    settings: str  # those that it has chosen by itself, in words


class Chooser(Recommending):
    """A `GraphRanker` that tells what it has chosen."""

    model: GraphRanker

    @property
    def settings_(self) -> dict[str, Any]:
        """The settings that the model has chosen."""
        return self.model.settings_._asdict()

    def again(self) -> Recommending:
        """Return an untrained one with these settings, which takes as many steps and searches nothing."""
        chosen = {"settings": self.settings_, "n_steps": max(1, self.model.n_steps_), "validation": "auto"}
        return Recommending(GraphRanker(**self.model.get_params() | chosen))


def systems_by_default(data: str, *, new_users: bool = False) -> list[str]:
    """Return the names of the systems of a set: EASE, RDLAE and Turbo-CF only where they are searched."""
    systems = ranking_systems(data, new_users=new_users)
    return [name for name in systems if name not in _SEARCHED_ONLY or name in grids_of(data)]


def ranking_systems(
    data: str, changes: dict[str, Any] | None = None, seed: int = 0, threads: int = 1, *, new_users: bool = False
) -> dict[str, System]:
    """Return all systems by name.

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
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    systems = {
        "GraphRanker": System(partial(_train_ranker, parameters), f"GraphRanker({told})"),
        **_peers(data, seed, threads, validation),
        "Popularity": System(Popularity().fit, "the number of interactions"),
    }
    return {name: system for name, system in systems.items() if not (new_users and name in _NO_NEW_USERS)}


def _peers(data: str, seed: int, threads: int, validation: str) -> dict[str, System]:
    """Return the peers whose settings are searched or fixed, those by convention, and those that read the order."""
    shared = {"random_state": seed, "num_threads": threads}
    makers = {
        "implicit ALS": partial(_implicit, "als", **shared),
        "implicit BPR": partial(_implicit, "bpr", **shared),
        "GF-CF": partial(GFCF, random_state=seed),
        "EASE": EASE,
    } | {name: make for name, make in {"RDLAE": RDLAE, "Turbo-CF": TurboCF}.items() if name in grids_of(data)}
    peers = {name: _peer(data, name, make, seed, validation) for name, make in makers.items()}
    settled = {name: _by_convention(data, name, seed) for name in CONVENTION.get(split_of(data), {})}
    systems = peers | {f"{name} by convention": peer for name, peer in settled.items()}
    if validation == "last":
        weighed = {name: peer for name, peer in (settled or peers).items() if name not in _NO_NEW_USERS}
        systems |= {f"{name}, half-lives": _with_half_lives(peer, seed) for name, peer in weighed.items()}
    return systems


def ask_lists(model: Lister, users: np.ndarray) -> Lists:
    """Return the lists of some users, by positions, and the settings that the model has chosen."""
    return Lists(model.lists(users, max(LENGTHS)), choice_of(model))


def ask_lists_of_new(model: NewUsersLister, rows: Csr) -> Lists:
    """Return the lists of new users with these items, (b, n_items), and the settings that the model has chosen."""
    return Lists(model.lists_of_new(rows, max(LENGTHS)), choice_of(model))


def choice_of(model: Any) -> str:
    """Return the settings that a model has chosen, in words, and which of them are the last that were tried."""
    told, edges = _told(getattr(model, "settings_", {})), getattr(model, "edges_", [])
    return told + (f" (no further {' and '.join(edges)} tried)" if edges else "")


def grids_of(data: str) -> dict[str, Grid]:
    """Return what the settings of the peers are searched over on a set, by the system."""
    return GRIDS.get(split_of(data), {})


def _peer(data: str, name: str, make: Any, seed: int, validation: str) -> System:
    needs = "implicit" if name.startswith("implicit") else None
    grid = grids_of(data).get(name)
    if grid is None:
        fixed = FIXED[name]
        told = f"{_ORIGIN[name]}, {_told(fixed)}{_HOW_FIXED[name]}"
        return System(partial(_train_fixed, make, fixed), told, needs, needs or "")
    ladders = LADDERS.get(name, {})
    told = f"{_ORIGIN[name]}, the best on {_CHOSEN_ON[validation]} of {_told(grid)}"
    ends = ", ".join(f"{name} {values[0]:g}..{values[-1]:g}" for name, values in ladders.items())
    further = f", and of single steps from the best within {ends}" if ladders else ""
    return System(partial(_train_chosen, make, grid, ladders, seed, validation), told + further, needs, needs or "")


def _by_convention(data: str, name: str, seed: int) -> System:
    fixed = CONVENTION[split_of(data)][name]
    told = f"written from its paper and program, {_told(fixed)}: the settings of the paper for this split"
    shared = {"random_state": seed} if issubclass(_FILTERS[name], Filter) else {}
    return System(partial(_train_fixed, partial(_FILTERS[name], **shared), fixed), told)


def _with_half_lives(peer: System, seed: int) -> System:
    told = f"{peer.settings}; and the best on {_CHOSEN_ON['last']} of {_told({'half_life': HALF_LIVES})}"
    return System(partial(_train_half_lives, peer.train, seed), told, peer.needs, peer.extra)


def _told(settings: Mapping[str, Any]) -> str:
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in settings.items()}
    words = {name: " | ".join("none" if each is None else f"{each:g}" for each in values[name]) for name in values}
    return ", ".join(f"{name}={tried}" for name, tried in words.items())


def _train_ranker(parameters: dict[str, Any], shown: Interactions) -> Chooser:
    return Chooser(GraphRanker(**parameters)).fit(shown)


def _train_fixed(make: Any, settings: dict[str, Any], shown: Interactions) -> Lister:
    return make(**settings).fit(shown)


def _train_chosen(make: Any, grid: Grid, ladders: Grid, seed: int, validation: str, shown: Interactions) -> Selection:
    return Selection(make, grid, ladders, seed, validation).fit(shown)


def _train_half_lives(train: Any, seed: int, shown: Interactions) -> HalfLives:
    return HalfLives(train, seed).fit(shown)


def _implicit(algorithm: str, **parameters: Any) -> Any:
    from air_recsys.adapters.implicit_lists_peer import ImplicitLists

    return ImplicitLists(algorithm, **parameters)
