"""Parameters of files of format version 1 and 2, of release 0.1.0, in the present form.

There `AIR` had all parameters side by side, and each solver left most of them unread. What the solver of the file read
goes to it; what nobody read is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from air_recsys.models.solvers import SOLVERS, Sweeping, as_solver, parameter_names, readers_of

_STRENGTHS = ("user_graph_reg", "item_graph_reg")
_SWEEPS = {"variational": 30, "langevin": 200}  # where the file says None
_FEATURES = 100  # now "auto"


def upgraded(model: str, parameters: Mapping[str, Any], own: list[str]) -> dict[str, Any]:
    """Return the parameters of a model in the present form.

    Parameters
    ----------
    model : str
        The name of its class.
    parameters : mapping
        As the file has them.
    own : list of str
        The present parameters of the class.

    Raises
    ------
    ValueError
        For a parameter that there is no more, and for a solver that there never was.

    Examples
    --------
    >>> old = {"n_factors": 5, "solver": "variational", "n_sweeps": 7, "user_graph_reg": 0.0, "learning_rate": 0.05}
    >>> upgraded("AIR", old, ["n_factors", "solver"])
    {'n_factors': 5, 'solver': {'name': 'variational', 'n_sweeps': 7, 'user_graph_reg': 0}}
    """
    parameters = _without_unread(parameters)
    kept = {name: value for name, value in parameters.items() if name in own}
    if "solver" in own:
        kept["solver"] = _solver(str(parameters.get("solver", "adam")), parameters)
    for name in parameters:
        if name not in own and not ("solver" in own and readers_of(name)):
            raise ValueError(f"{model} has no parameter {name!r} any more")
    return kept


def _solver(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if name not in SOLVERS:
        raise ValueError(f"expected a solver of {', '.join(SOLVERS)}, found {name!r}")
    read = {key: parameters[key] for key in parameter_names(SOLVERS[name]) if key in parameters}
    if isinstance(as_solver(name), Sweeping):  # of strengths a posterior read only whether they are 0
        read |= {key: "auto" if read[key] else 0 for key in _STRENGTHS if key in read}
        if read.get("n_sweeps", 0) is None:
            read["n_sweeps"] = _SWEEPS[name]
        if read.get("pattern_features") == _FEATURES:
            del read["pattern_features"]
    return {"name": name} | read


def _without_unread(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that others turn off; of a refresh, 100 was the default and is now None."""
    of_transforms = any(len(entry) > 2 for entry in parameters.get("transforms", ()))
    unread = set()
    sparse = parameters.get("graph_neighbors") is not None or of_transforms
    if not sparse or parameters.get("graph_refresh") == 100:
        unread.add("graph_refresh")
    if not parameters.get("biases", True):
        unread.add("bias_decay")
    return {name: value for name, value in parameters.items() if name not in unread}
