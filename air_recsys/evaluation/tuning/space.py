"""The space of a search: ranges and choices of AIR's parameters, checked before any work."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models import AIR
from air_recsys.models.engines.scaling import features_of, graph_strength
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import SOLVERS, as_solver, parameter_names
from air_recsys.storage.validation import check_choice

if TYPE_CHECKING:
    from optuna.trial import Trial

_COMMON = ("device", "random_state", "settings", "search_budget", "verbose")  # parameters of the search itself
Domain = tuple[Any, ...] | list[Any]
"""A range (low, high) or (low, high, "log"), or a list of choices."""

_SCALARS = (str, int, float, type(None))  # what a study can store
_WHOLE = {
    *("n_factors", "depth", "graph_neighbors", "graph_refresh"),
    *("graph_every", "n_epochs", "n_batches", "patience", "evaluate_every", "n_sweeps", "pattern_features"),
}
_EXACT: dict[str, Domain] = {
    "user_graph_reg": (1e-6, 1e-3, "log"),
    "item_graph_reg": (1e-6, 1e-3, "log"),
    "learning_rate": (3e-4, 1e-2, "log"),
}
_SPACES: dict[str, dict[str, Domain]] = {
    "completion": _EXACT,
    "interactions": {
        "weight_decay": (0.1, 3.0, "log"),
        "learning_rate": (3e-3, 0.03, "log"),
        "graph_rate": (0.3, 3.0, "log"),
    },
    "ratings": {"n_factors": (5, 50, "log"), "pattern_features": (10, 300, "log")},
}
_RATINGS_BY_ADAM: dict[str, Domain] = {
    "n_factors": (5, 50, "log"),
    "weight_decay": (3.0, 50.0, "log"),
    "bias_decay": (0.1, 10.0, "log"),
    "learning_rate": (0.01, 0.1, "log"),
}


def default_space(
    preset: str, data: Interactions, solver: str | None = None, *, biases: bool = True
) -> dict[str, Domain]:
    """The space that `tune` searches for a preset by default; the preset sets all other parameters.

    For "ratings" it has what the posterior depends on, features of the pattern where the preset has some. With
    ``solver="adam"`` it has the decays (that of the biases where there are any), the learning rate and the strengths
    of both graphs, between a tenth and ten times that of "auto" for `data`.

    Raises
    ------
    ParameterError
        For an unknown preset.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3, 4], [1, 2, 4]])
    >>> default_space("ratings", data)
    {'n_factors': (5, 50, 'log')}
    >>> default_space("ratings", data, solver="adam")["weight_decay"]
    (3.0, 50.0, 'log')
    """
    check_choice("preset", preset, list(PRESETS))
    if (preset, solver) != ("ratings", "adam"):
        without = preset == "ratings" and not features_of("auto", data)
        return {
            name: domain for name, domain in _SPACES[preset].items() if not (without and name == "pattern_features")
        }
    strength = graph_strength("auto", data, levels=not biases)
    around: Domain = (float(f"{strength / 10:.2g}"), float(f"{strength * 10:.2g}"), "log")
    space = _RATINGS_BY_ADAM | {"user_graph_reg": around, "item_graph_reg": around}
    return {name: domain for name, domain in space.items() if biases or name != "bias_decay"}


def check_space(space: Mapping[str, Any]) -> dict[str, Domain]:
    """`space`; raises `ParameterError` unless it is ranges and choices of parameters of AIR."""
    every = [name for owner in (AIR, *SOLVERS.values()) for name in parameter_names(owner)]
    names = list(dict.fromkeys(name for name in every if name not in _COMMON))
    for name, domain in space.items():
        if _plain(name) not in names:
            listed = ", ".join(names)
            raise ParameterError(f"space must name parameters of AIR or of its solvers ({listed}), found {name!r}")
        choices = isinstance(domain, list) and domain and all(isinstance(choice, _SCALARS) for choice in domain)
        if not (choices or _is_range(domain)):
            raise ParameterError(
                f"space[{name!r}] must be a range (low, high) or (low, high, 'log') with low < high, and low > 0 "
                f"for 'log', or a list of numbers, texts, True, False and None, found {domain!r}"
            )
    return dict(space)


def _plain(name: str) -> str:
    return name.removeprefix("solver__")


def _is_range(domain: Any) -> bool:
    if not isinstance(domain, tuple) or len(domain) not in (2, 3) or domain[2:] not in ((), ("log",)):
        return False
    if not all(isinstance(bound, numbers.Real) and not isinstance(bound, bool) for bound in domain[:2]):
        return False
    low, high = domain[:2]
    return math.isfinite(low) and math.isfinite(high) and low < high and (len(domain) == 2 or low > 0)


def suggest(trial: Trial, space: Mapping[str, Domain]) -> dict[str, Any]:
    """Draw one value of every parameter."""
    return {name: _suggest(trial, name, domain) for name, domain in space.items()}


def _suggest(trial: Trial, name: str, domain: Domain) -> Any:
    if isinstance(domain, list):
        return trial.suggest_categorical(name, domain)
    low, high, log = domain[0], domain[1], len(domain) == 3
    if _plain(name) in _WHOLE:
        return trial.suggest_int(name, low, high, log=log)
    return trial.suggest_float(name, float(low), float(high), log=log)


def edges(space: Mapping[str, Domain]) -> Iterator[dict[str, Any]]:
    """Yield settings that hold every bound and every choice at least once, for checks.

    Examples
    --------
    >>> list(edges({"depth": (2, 3), "clip": [False]}))
    [{'depth': 2, 'clip': False}, {'depth': 3, 'clip': False}]
    """
    values = {name: list(domain[:2] if isinstance(domain, tuple) else domain) for name, domain in space.items()}
    first = {name: ends[0] for name, ends in values.items()}
    yield first
    for name, ends in values.items():
        yield from (first | {name: value} for value in ends[1:])


def start(preset: str, space: Mapping[str, Domain], data: Interactions) -> dict[str, Any]:
    """The preset's own values of the parameters in `space`, as far as they lie in it."""
    solvers = space.get("solver")
    model = AIR.of_preset(preset, **({"solver": solvers[0]} if isinstance(solvers, list) else {}))
    solver = as_solver(model.solver)
    own: dict[str, Any] = model.get_params(deep=False) | solver.get_params() | {"solver": solver.name}
    numbers = model.engine().values(data)
    own |= {name: value for name, value in numbers.items() if isinstance(space.get(name), tuple)}
    return {name: own[_plain(name)] for name, domain in space.items() if _holds(domain, own.get(_plain(name)))}


def _holds(domain: Domain, value: Any) -> bool:
    if isinstance(domain, list):
        return any(type(choice) is type(value) and choice == value for choice in domain)
    return isinstance(value, (int, float)) and bool(domain[0] <= value <= domain[1])
