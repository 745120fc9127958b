"""The rankers that are compared: each is trained by a function of the training interactions alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from air_recsys.benchmarks.accuracy.ranking_data import RANKING_SETS
from air_recsys.benchmarks.accuracy.ranking_filters import BSPM, GFCF, ChebyCF
from air_recsys.benchmarks.accuracy.ranking_peers import EASE, RDLAE
from air_recsys.benchmarks.accuracy.ranking_search import Chosen
from air_recsys.evaluation.lists import Lister, NewUsersLister, Popularity, Recommending
from air_recsys.evaluation.systems import System
from air_recsys.interactions import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.ranker import GraphRanker

LENGTHS = (10, 20, 100)
"""Of the lists that are measured."""
Grid = dict[str, Sequence[Any]]


def _als(factors: Sequence[int], regularization: Sequence[float], alpha: Sequence[float]) -> Grid:
    return {"factors": factors, "regularization": regularization, "alpha": alpha, "iterations": (15,)}


_GRID: dict[str, Grid] = {
    "implicit BPR": {
        "factors": (32,),
        "learning_rate": (0.02, 0.05),
        "regularization": (0.01, 0.03),
        "iterations": (50,),
    },
    "GF-CF": {"n_factors": (64, 128, 256), "weight": (0.3, 1.0, 3.0)},
}
_DENSE: dict[str, Grid] = {
    "EASE": {"decay": (250.0, 500.0, 1000.0, 2000.0)},
    "RDLAE": {"decay": (50.0, 200.0, 800.0), "dropout": (0.2, 0.4, 0.6), "limit": (0.0, 0.3)},
}
_IN_TIME = {"implicit ALS": _als((64, 128), (10.0, 30.0, 100.0), (4.0, 8.0, 16.0))} | _GRID | _DENSE
_GRIDS: dict[str, dict[str, Grid]] = {
    "ml-1m": {"implicit ALS": _als((128, 256), (50.0, 100.0, 200.0), (4.0, 8.0, 16.0))} | _GRID | _DENSE,
    "douban": {"implicit ALS": _als((64, 128), (3.0, 10.0, 30.0, 100.0), (4.0, 16.0, 64.0))} | _GRID | _DENSE,
    "lastfm": {"implicit ALS": _als((64, 128), (3.0, 10.0, 30.0, 100.0), (4.0, 16.0, 64.0))} | _GRID,
    "ml-100k-last": _IN_TIME,
    "ml-100k-time": _IN_TIME,
}
"""The settings to search, by the data and the system: data of few items, where a search takes minutes."""
_FIXED: dict[str, dict[str, Any]] = {
    "implicit ALS": {"factors": 512, "regularization": 1.0, "alpha": 60.0, "iterations": 10},
    "implicit BPR": {"factors": 128, "learning_rate": 0.05, "regularization": 0.002, "iterations": 100},
    "GF-CF": {"n_factors": 256, "weight": 0.3},
    "EASE": {"decay": 200.0},
}
"""The settings without a search."""
_CONVENTION: dict[str, dict[str, dict[str, Any]]] = {
    "gowalla": {
        "BSPM": {"n_factors": 448, "weight": 0.2, "sharpening": 2.5},
        "ChebyCF": {"n_factors": 512, "weight": 0.2, "power": 1.5, "exponent": 0.4},
    },
    "yelp2018": {"BSPM": {"n_factors": 384, "weight": 0.3, "sharpening": None}},
}
"""The settings of papers for these very splits, which have no validation part, by the data and the system."""
_CHOSEN_ON = {
    "random": "a random hidden fifth of each user's training items",
    "last": "the hidden latest fifth of each user's training items",
    "time": "the hidden latest three fifths of the training items, each from what is before it,",
}
"""What a search hides, by the kind of the set."""
_FILTERS = {"BSPM": BSPM, "ChebyCF": ChebyCF}
_NO_NEW_USERS = ("implicit BPR",)
_ORIGIN = {
    "implicit ALS": "its own code",
    "implicit BPR": "its own code",
    "GF-CF": "written from its paper and program",
    "EASE": "written from its paper",
    "RDLAE": "written from its paper",
}
_HOW_FIXED = {
    "implicit ALS": ", the best of a few tried on a random hidden fifth of Gowalla's training part",
    "implicit BPR": ", the best of a few tried on a random hidden fifth of Gowalla's training part",
    "GF-CF": ", as in the paper",
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


def systems_by_default(data: str, *, new_users: bool = False) -> list[str]:
    """Return the names of the systems that a set is measured with: EASE and RDLAE where they can be searched."""
    systems = ranking_systems(data, new_users=new_users)
    return [name for name in systems if name not in _DENSE or name in _GRIDS.get(data, {})]


def ranking_systems(
    data: str, changes: dict[str, Any] | None = None, seed: int = 0, threads: int = 1, *, new_users: bool = False
) -> dict[str, System]:
    """Return all systems by name.

    Parameters
    ----------
    data : str
        A key of `air_recsys.benchmarks.accuracy.ranking_data.RANKING_SETS`: the settings of the peers are searched
        where that takes minutes.
    changes : dict, optional
        Parameters of `GraphRanker`.
    seed, threads : int
        Of every system that takes them.
    new_users : bool
        Leave out those that make no lists for users whom they were not trained on.
    """
    kind = RANKING_SETS[data].kind
    changes = changes or {}
    parameters = {"random_state": seed} | ({} if "settings" in changes else {"validation": kind}) | changes
    told = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    shared = {"random_state": seed, "num_threads": threads}
    makers = {
        "implicit ALS": partial(_implicit, "als", **shared),
        "implicit BPR": partial(_implicit, "bpr", **shared),
        "GF-CF": partial(GFCF, random_state=seed),
        "EASE": EASE,
    } | ({"RDLAE": RDLAE} if "RDLAE" in _GRIDS.get(data, {}) else {})
    systems = {
        "GraphRanker": System(partial(_train_ranker, parameters), f"GraphRanker({told})"),
        **{name: _peer(data, name, make, seed) for name, make in makers.items()},
        **{f"{name} by convention": _by_convention(data, name, seed) for name in _CONVENTION.get(data, {})},
        "Popularity": System(Popularity().fit, "the number of interactions"),
    }
    return {name: system for name, system in systems.items() if not (new_users and name in _NO_NEW_USERS)}


def ask_lists(model: Lister, users: np.ndarray) -> Lists:
    """Return the lists of some users, by positions, and the settings that the model has chosen."""
    return Lists(model.lists(users, max(LENGTHS)), _told(getattr(model, "settings_", {})))


def ask_lists_of_new(model: NewUsersLister, rows: Csr) -> Lists:
    """Return the lists of new users with these items, (b, n_items), and the settings that the model has chosen."""
    return Lists(model.lists_of_new(rows, max(LENGTHS)), _told(getattr(model, "settings_", {})))


def _peer(data: str, name: str, make: Any, seed: int) -> System:
    needs = "implicit" if name.startswith("implicit") else None
    grid = _GRIDS.get(data, {}).get(name)
    if grid is None:
        fixed = _FIXED[name]
        told = f"{_ORIGIN[name]}, {_told(fixed)}{_HOW_FIXED[name]}"
        return System(partial(_train_fixed, make, fixed), told, needs, needs or "")
    kind = RANKING_SETS[data].kind
    told = f"{_ORIGIN[name]}, the best on {_CHOSEN_ON[kind]} of {_told(grid)}"
    return System(partial(_train_chosen, make, grid, seed, kind), told, needs, needs or "")


def _by_convention(data: str, name: str, seed: int) -> System:
    fixed = _CONVENTION[data][name]
    told = f"written from its paper and program, {_told(fixed)}: the settings of the paper for this split"
    return System(partial(_train_fixed, partial(_FILTERS[name], random_state=seed), fixed), told)


def _told(settings: dict[str, Any]) -> str:
    values = {name: value if isinstance(value, tuple) else (value,) for name, value in settings.items()}
    words = {name: " | ".join("none" if each is None else f"{each:g}" for each in values[name]) for name in values}
    return ", ".join(f"{name}={tried}" for name, tried in words.items())


def _train_ranker(parameters: dict[str, Any], shown: Interactions) -> Chooser:
    return Chooser(GraphRanker(**parameters)).fit(shown)


def _train_fixed(make: Any, settings: dict[str, Any], shown: Interactions) -> Lister:
    return make(**settings).fit(shown)


def _train_chosen(make: Any, grid: Grid, seed: int, kind: str, shown: Interactions) -> Chosen:
    return Chosen(make, grid, seed, kind).fit(shown)


def _implicit(algorithm: str, **parameters: Any) -> Any:
    from air_recsys.adapters.implicit_lists_peer import ImplicitLists

    return ImplicitLists(algorithm, **parameters)
