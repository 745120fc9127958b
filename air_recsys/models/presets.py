"""The presets of `AIR`, and a model as the call that makes it.

benchmarks/reports/accuracy.md says how the values were chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from air_recsys.exceptions import ParameterError
from air_recsys.models.solvers import AUTO, SOLVERS, Solver, as_solver, parameter_names, with_overrides
from air_recsys.storage.estimator import Estimator
from air_recsys.storage.validation import check_choice


@dataclass(frozen=True)
class Preset:
    """The parameters that a preset changes."""

    solver: str  # the solver, unless another one is asked for
    model: dict[str, Any] = field(default_factory=dict)  # parameters of `AIR`, whatever the solver
    solvers: dict[str, dict[str, Any]] = field(default_factory=dict)  # parameters of each solver, by its shorthand
    unasked: dict[str, Any] = field(default_factory=dict)  # those of its solver where none is asked for


PRESETS: dict[str, Preset] = {
    "completion": Preset(
        "adam",
        {"settings": "auto", "n_factors": "auto", "graph_neighbors": "auto", "graph_refresh": "auto"},
        {
            "adam": {
                "schedule": "cosine",
                "n_epochs": "auto",
                "exact_epochs": "auto",
                "learning_rate": "auto",
                "graph_rate": "auto",
                "init_mean": 0.0,
                "init_std": "auto",
                "user_graph_reg": "auto",
                "item_graph_reg": "auto",
                "tv_reg": "auto",
            }
        },
    ),
    "interactions": Preset(
        "adam",
        {"pattern_graphs": True, "clip": "binary", "graph_neighbors": "auto", "graph_refresh": "auto"},
        {
            "adam": {
                "depth": 2,
                "weight_decay": 0.6,
                "schedule": "cooldown",
                "n_epochs": 600,
                "learning_rate": 0.01,
                "graph_rate": 1.0,
                "init_mean": 0.0,
                "init_std": 0.01,
                "user_graph_reg": "auto",
                "item_graph_reg": "auto",
            }
        },
    ),
    "ratings": Preset(
        "variational",
        {"pattern_graphs": True, "n_factors": "auto", "clip": True, "graph_neighbors": 20, "graph_refresh": "auto"},
        {
            "adam": {
                "depth": 2,
                "weight_decay": 12.0,
                "bias_decay": 1.0,
                "biases": True,
                "center": True,
                "scale": "deviation",
                "user_graph_reg": "auto",
                "item_graph_reg": "auto",
                "init_mean": 0.0,
                "init_std": 0.1,
                "n_epochs": 40,
                "n_batches": 8,
                "graph_rate": 0.4,
                "learning_rate": 0.05,
                "schedule": "cosine",
                "evaluate_every": 5,
            }
        },
        {"n_sweeps": "auto"},
    ),
}


class OffersPresets:
    """A model that starts from one of the presets, by `of_preset` or by its name."""

    @classmethod
    def of_preset(cls, preset: str, **overrides: Any) -> Self:
        """The model of a preset, by its name, with other values of some parameters."""
        raise NotImplementedError

    @classmethod
    def for_completion(cls, **overrides: Any) -> Self:
        """A model for exact data: of `AIR` with sparse graphs and settings that find themselves."""
        return cls.of_preset("completion", **overrides)

    @classmethod
    def for_ratings(cls, **overrides: Any) -> Self:
        """A model for noisy ratings: for `AIR` a posterior of factors and biases, and sparse graphs."""
        return cls.of_preset("ratings", **overrides)

    @classmethod
    def for_interactions(cls, **overrides: Any) -> Self:
        """A model for 0/1 data such as drug-target interactions: full width, a weight decay, graphs by size."""
        return cls.of_preset("interactions", **overrides)


_BY_DATA = ("n_factors", "user_graph_reg", "item_graph_reg")


class TakesValuesOfAdam(OffersPresets):
    """A model of AIR's objective with fewer terms: of a preset it takes what it has of the model and of `Adam`."""

    @classmethod
    def of_preset(cls, preset: str, **overrides: Any) -> Self:
        """The model of a preset, a key of `PRESETS`, with other values of some parameters."""
        chosen = PRESETS[check_choice("preset", preset, list(PRESETS))]
        return cls(**cls._taken(chosen.model | chosen.solvers["adam"]) | overrides)

    @classmethod
    def _taken(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of AIR and of `Adam` that this model has a parameter for.

        What is "auto" there is chosen with graphs in mind, but for the width and strengths: its own values stay.
        """
        names = parameter_names(cls)
        return {
            name: value for name, value in values.items() if name in names and (value != "auto" or name in _BY_DATA)
        }


def preset_parameters(preset: str, overrides: Mapping[str, Any], of_model: Iterable[str]) -> dict[str, Any]:
    """The parameters of an `AIR` from a preset and plain overrides, each handed to whom it belongs.

    `overrides` are parameters of `AIR`, of which `of_model` are the names, and of its solver side by side; those of
    the solver also under names such as ``solver__depth``. A `solver` given as an object is taken as it is, without the
    preset's values for it. An override takes the preset's values along that need what it turns off: `graph_refresh`
    goes with sparse graphs, `bias_decay` with the biases.
    """
    chosen = PRESETS[check_choice("preset", preset, list(PRESETS))]
    given = {name.removeprefix("solver__"): value for name, value in overrides.items()}
    unasked = {} if "solver" in given else chosen.unasked
    solver = given.pop("solver", chosen.solver)
    of_model = set(of_model)
    own = {name: value for name, value in given.items() if name in of_model}
    others = unasked | {name: value for name, value in given.items() if name not in of_model}
    model = chosen.model | own
    if model.get("graph_neighbors") is None and "graph_refresh" not in own:
        model.pop("graph_refresh", None)
    return model | {"solver": with_overrides(_of_preset(chosen, solver, others), others)}


def routed(model: Estimator, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings of a model and of its solver as `set_params` takes them."""
    own = model.get_params(deep=False)
    others = {name: value for name, value in settings.items() if name not in own}
    if not others:
        return dict(settings)
    if "solver" not in own:
        names = ", ".join(own)
        raise ParameterError(f"{type(model).__name__} has no parameter {next(iter(others))!r}, it has {names}")
    solver = as_solver(settings.get("solver", own["solver"]))
    with_overrides(solver, others)
    return {name if name in own else f"solver__{name}": value for name, value in settings.items()}


def _of_preset(preset: Preset, solver: Any, overrides: Mapping[str, Any]) -> Solver:
    if not isinstance(solver, str) or solver not in SOLVERS:
        return as_solver(solver)
    values = dict(preset.solvers.get(solver, {}))
    if not overrides.get("biases", True):
        values.pop("bias_decay", None)
    return SOLVERS[solver](**values)


_WIDTH = 100


def shortest_call(model: Any) -> str | None:
    """The call with the fewest arguments that makes the model; None where its solver is none."""
    kind = type(model)
    if isinstance(model.solver, str) and model.solver in SOLVERS:
        model = kind(**model.get_params(deep=False) | {"solver": as_solver(model.solver)})
    if not (model.chooses_solver or isinstance(model.solver, Solver)):
        return None
    calls = [(kind.__name__, *_beside_defaults(model))]
    for name in [*PRESETS, AUTO]:
        overrides = _beside_preset(model, name)
        if overrides is not None:
            door = AUTO if name == AUTO else f"for_{name}"
            calls.append((f"{kind.__name__}.{door}", overrides, len(overrides)))
    head, arguments, _ = min(calls, key=lambda call: call[2])
    return _written(head, arguments)


def _beside_defaults(model: Any) -> tuple[dict[str, Any], int]:
    """The differences from the constructor's defaults, and the number of all values in them."""
    different = _different(model.get_params(deep=False), type(model)().get_params(deep=False))
    nested = 0
    if isinstance(different.get("solver"), Solver):
        solver = different["solver"]
        nested = len(_different(solver.get_params(deep=False), type(solver)().get_params(deep=False)))
    return different, len(different) + nested


def _beside_preset(model: Any, preset: str) -> dict[str, Any] | None:
    """The overrides of a preset that make the model; None where it cannot make it."""
    if (preset == AUTO) != model.chooses_solver:
        return None
    own = model.get_params(deep=False)
    solver: dict[str, Any] = {}
    if preset != AUTO:
        own.pop("solver")
        if not isinstance(model.solver, SOLVERS[PRESETS[preset].solver]):
            solver["solver"] = model.solver.name
    base = type(model).of_preset(preset, **solver)
    overrides = _different(own, base.get_params(deep=False)) | solver
    if preset != AUTO:
        overrides |= _different(model.solver.get_params(deep=False), base.solver.get_params(deep=False))
    made = type(model).of_preset(preset, **overrides)
    return None if _different(model.get_params(), made.get_params()) else overrides


def _different(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if repr(value) != repr(others.get(name))}


def _written(head: str, arguments: Mapping[str, Any]) -> str:
    """A call, with as many arguments in a line as fit."""
    lines = [f"{head}("]
    for name, value in arguments.items():
        written = f"{name}={value!r}, "
        if len(lines[-1] + written) > _WIDTH and lines[-1].strip():
            lines.append(" " * (len(head) + 1))
        lines[-1] += written
    return "\n".join(line.rstrip() for line in lines).removesuffix(",") + ")"
