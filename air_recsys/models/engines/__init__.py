"""Engines: from parameters and ratings to what is learned, one a kind of solver."""

from collections.abc import Callable
from functools import partial
from typing import Any

from air_recsys.models.engines.objective import ObjectiveEngine
from air_recsys.models.engines.posterior import PosteriorEngine
from air_recsys.models.engines.protocol import DTYPES, Setup
from air_recsys.models.solvers import Adam, Langevin, Solver, Variational

Engine = ObjectiveEngine | PosteriorEngine
_ENGINES: dict[type[Solver], Callable[[Setup, Any], Engine]] = {
    Adam: lambda setup, solver: ObjectiveEngine(setup, descent=solver, terms=solver),
    Variational: PosteriorEngine,
    Langevin: partial(PosteriorEngine, sample=True),
}


def engine_of(setup: Setup, solver: Solver) -> Engine:
    """The engine of a solver."""
    return next(make(setup, solver) for kind, make in _ENGINES.items() if isinstance(solver, kind))


__all__ = ["DTYPES", "Engine", "ObjectiveEngine", "PosteriorEngine", "Setup", "engine_of"]
