"""A model as the call that makes it: the preset it starts from, and what differs from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

from air_recsys.models.presets import PRESETS
from air_recsys.models.settings.finding import AUTO
from air_recsys.models.solvers import SOLVERS, Solver, as_solver

_WIDTH = 100


class MadeByPresets(Protocol):
    """A model with a solver, made by its constructor or by a preset."""

    solver: Any

    @property
    def chooses_solver(self) -> bool:
        """Whether `fit` chooses the solver."""
        ...

    @classmethod
    def of_preset(cls, preset: str, **overrides: Any) -> Self:
        """Return the model of a preset."""
        ...

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""
        ...


def shortest_call(model: MadeByPresets) -> str | None:
    """Return the call with the fewest arguments that makes the model; None where its solver is none.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> shortest_call(AIR.of_preset("ratings", solver="langevin", n_factors=30, n_sweeps=40))
    "AIR.for_ratings(n_factors=30, solver='langevin', n_sweeps=40)"
    >>> shortest_call(AIR(n_factors=30))
    'AIR(n_factors=30)'
    """
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


def _beside_defaults(model: MadeByPresets) -> tuple[dict[str, Any], int]:
    """Return what differs from the constructor's defaults, and the number of all values in it."""
    different = _different(model.get_params(deep=False), type(model)().get_params(deep=False))
    nested = 0
    if isinstance(different.get("solver"), Solver):
        solver = different["solver"]
        nested = len(_different(solver.get_params(deep=False), type(solver)().get_params(deep=False)))
    return different, len(different) + nested


def _beside_preset(model: MadeByPresets, preset: str) -> dict[str, Any] | None:
    """Return the overrides of a preset that make the model; None where it cannot make it."""
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
    """Return a call, with as many arguments in a line as there is room for."""
    lines = [f"{head}("]
    for name, value in arguments.items():
        written = f"{name}={value!r}, "
        if len(lines[-1] + written) > _WIDTH and lines[-1].strip():
            lines.append(" " * (len(head) + 1))
        lines[-1] += written
    return "\n".join(line.rstrip() for line in lines).removesuffix(",") + ")"
