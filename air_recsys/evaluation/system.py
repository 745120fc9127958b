"""A system of an experiment: what trains it, of which package it is, and systems of models of one's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from air_recsys.data.frames import as_pandas
from air_recsys.data.ids import close_names
from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.elsewhere import MadeElsewhere
from air_recsys.exceptions import MissingExtraError, ParameterError
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.registered import check_unregistered, made, registered_names

_DISTRIBUTIONS = {"surprise": "scikit-surprise", "lightfm": "lightfm-next"}  # where not the name of the package


class System(NamedTuple):
    """A model by the function that trains it and returns it."""

    train: Callable[[Interactions], Any]
    settings: str
    needs: str | None = None  # the package that it requires
    extra: str = ""  # the extra that installs it
    changed: tuple[str, ...] = ()  # the changes that it reads
    new_users: bool = False  # whether it makes lists for users whom it was not trained on, too
    elsewhere: MadeElsewhere | None = None  # answers in place of a training


def train(make: Callable[..., Any], settings: Mapping[str, Any], shown: Interactions) -> Any:
    """A model made with some settings, trained."""
    return make(**settings).fit(shown)


def train_plainly(
    make: Callable[..., Any], settings: Mapping[str, Any], shown: Interactions, *, timed: bool = False
) -> Any:
    """A model that reads ratings alone, trained on what `ratings_alone` leaves."""
    return make(**settings).fit(ratings_alone(shown, timed=timed))


def ratings_alone(data: Interactions, *, timed: bool = False) -> Interactions:
    """Measured ratings without weights, features and, unless `timed`, times, for models that read none of these.

    Examples
    --------
    >>> import numpy as np
    >>> ratings_alone(Interactions.from_dense([[5, 3]]).with_features(item=np.eye(2))).item_features is None
    True
    """
    data = data.measured_alone()
    pairs = data.user_index, data.item_index
    times = data.timestamps if timed else None
    return Interactions(*pairs, data.ratings, data.user_ids, data.item_ids, timestamps=times, allow_negative=True)


def hosted(module: str, kind: str, *arguments: Any, **options: Any) -> Any:
    """A model of another library: of a class in a module of `air_recsys.adapters`, which imports that library."""
    return getattr(import_module(f"air_recsys.adapters.{module}"), kind)(*arguments, **options)


make_surprise = partial(hosted, "surprise_peer", "SurpriseModel")
"""A model of Surprise that predicts ratings."""
make_implicit = partial(hosted, "implicit_peer", "ImplicitLists")
"""A model of implicit that makes lists."""


def system_of(model: Any) -> System:
    """A model of the caller's as a system: one of this library, of Surprise or of implicit, or one like these.

    Each training takes a copy. A table, or the path of one, has answers that were made elsewhere.
    """
    if isinstance(model, System):
        return model
    if isinstance(table := as_pandas(model), pd.DataFrame | Path):
        answers = MadeElsewhere(table)
        return System(answers.fit, repr(answers), elsewhere=answers)
    if (found := _of_host(model)) is not None:
        return found
    answers = hasattr(model, "predict") or hasattr(model, "lists")
    if isinstance(model, type) or not hasattr(model, "fit") or not answers:
        raise ParameterError(
            "expected the name of a system, a model with fit, and with predict or lists, one of Surprise or implicit, "
            f"or a table of lists, found {_shown(model)}"
        )
    new_users = hasattr(model, "lists_of_new") or isinstance(model, GraphRanker)
    return System(partial(_fit_copy, model), repr(model), new_users=new_users)


def _fit_copy(model: Any, shown: Interactions) -> Any:
    from sklearn.base import clone

    copied: Any = clone(model) if hasattr(model, "get_params") else deepcopy(model)
    copied.fit(shown)
    return copied


def _shown(model: Any) -> str:
    return f"the class {model.__name__}: make a model of it" if isinstance(model, type) else repr(model)


def _of_host(model: Any) -> System | None:
    """A model of Surprise or implicit as a system; only libraries that are imported are looked at."""
    for module, base, make in (
        ("surprise", "AlgoBase", make_surprise),
        ("implicit.recommender_base", "RecommenderBase", make_implicit),
    ):
        of_library = getattr(sys.modules.get(module), base, None)
        if of_library is not None and isinstance(model, of_library):
            kind = type(model)
            return System(partial(_train_given, make, model), f"{kind.__module__}.{kind.__qualname__}, as given")
    return None


def _train_given(make: Callable[[Any], Any], model: Any, shown: Interactions) -> Any:
    return make(deepcopy(model)).fit(shown)


def registered_system(name: str, seed: int) -> System:
    """A model that an installed package registers, with its own defaults."""
    return system_of(made(name, Recommender, {"random_state": seed, "device": "cpu"}))


def named(systems: Mapping[str, System], names: Iterable[str], seed: int = 0) -> dict[str, System]:
    """The systems of some names, in that order, of ours and of those that other packages register.

    Upper and lower case of ours are alike, and "all" names each of them. `seed` is that of the others.
    """
    folded = {name.lower(): name for name in systems}
    chosen: dict[str, System] = {}
    for name in names:
        if name.lower() == "all":
            chosen |= {each: system for each, system in systems.items() if each not in chosen}
        elif name.lower() in folded:
            check_unregistered(name)
            chosen[folded[name.lower()]] = systems[folded[name.lower()]]
        elif name in (others := registered_names()):
            chosen[name] = registered_system(name, seed)
        else:
            close = close_names(name.lower(), folded, n=1)
            meant = f"did you mean {folded[close[0]]}? The" if close else "the"
            raise ParameterError(f"no system is called {name!r}: {meant} systems are {', '.join([*systems, *others])}")
    return chosen


def installed(systems: Mapping[str, System]) -> tuple[dict[str, System], list[str]]:
    """The systems whose package is installed, and a line a package that is not, with how to install it."""
    found = {name: system for name, system in systems.items() if system.needs is None or find_spec(system.needs)}
    absent: dict[str, list[str]] = {}
    for name, system in systems.items():
        if name not in found:
            assert system.needs is not None
            absent.setdefault(_DISTRIBUTIONS.get(system.needs, system.needs), []).append(name)
    lines = [f"not installed: {', '.join(names)} (pip install {package})" for package, names in absent.items()]
    return found, lines


def check_installed(systems: Mapping[str, System]) -> None:
    """Raise `MissingExtraError` where the package of a system is not installed."""
    for system in systems.values():
        if system.needs is not None and find_spec(system.needs) is None:
            raise MissingExtraError(system.needs, system.extra)


def check_changes(systems: Mapping[str, System], changes: Iterable[str]) -> None:
    """Raise `ParameterError` for a change that none of the systems has taken."""
    for name in changes:
        if not any(name in system.changed for system in systems.values()):
            raise ParameterError(f"none of the systems {', '.join(systems)} reads {name}")
