"""The solver of `AIR` in an adapter whose user names none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from air_recsys.models.solvers import Variational, parameter_names, readers_of

AUTO = "auto"


def solver_for(settings: Mapping[str, Any], asked: Any = AUTO) -> Any:
    """The solver asked for; for "auto" the preset's "variational", or "adam" where a setting asks for it.

    Parameters
    ----------
    settings : mapping
        The settings given. Full width, a strength of a graph, and what `Adam` reads and `Variational` does not, ask
        for "adam".
    asked : str or Solver

    Examples
    --------
    >>> solver_for({}), solver_for({"n_factors": 3, "n_sweeps": 9}), solver_for({"n_epochs": 9})
    ('variational', 'variational', 'adam')
    """
    if not isinstance(asked, str) or asked != AUTO:
        return asked
    unread = any(readers_of(name) and name not in parameter_names(Variational) for name in settings)
    full_width = settings.get("n_factors", "auto") is None
    strengths = any(settings.get(name, 0) not in ("auto", 0) for name in ("user_graph_reg", "item_graph_reg"))
    return "adam" if unread or full_width or strengths else "variational"
