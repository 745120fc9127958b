"""Checkpoints of format version 1, of release 0.1.0, in the present form: each solver had a form of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_STRENGTHS = ("user_graph_reg", "item_graph_reg")


def upgraded(state: Any, parameters: Mapping[str, Any]) -> Any:
    """Return a state of version 1 in the present form.

    Parameters
    ----------
    state : object
        As it was read; what is no such state fails with one of the errors of a broken file.
    parameters : mapping
        Those of the model, as the fingerprint of the file has them.
    """
    course = state["course"]
    of_objective = "optimizer" in course
    return {**state, "course": _of_objective(course, parameters) if of_objective else _of_posterior(course)}


def _of_objective(course: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    remembered = dict(course["remembered"])
    absent = [parameters.get(name, 0) == 0 for name in _STRENGTHS]
    return {
        "position": course["epoch"],
        "state": course["objective"],
        "steps": {"optimizer": course["optimizer"], "previous_objective": remembered.pop("previous_objective")},
        "records": course["records"],
        "snapshots": [(epoch, _with_absent(graphs, absent)) for epoch, graphs in course["snapshots"]],
        "best_rmse": remembered.pop("best_rmse"),
        "remembered": remembered,
    }


def _with_absent(graphs: list[Any], absent: list[bool]) -> list[Any]:
    """Return graphs, rows before columns before others, with None for those that were left out."""
    present = iter(graphs)
    return [*(None if missing else next(present) for missing in absent), *present]


def _of_posterior(course: Mapping[str, Any]) -> dict[str, Any]:
    # Its last record was made before the state was kept; it is made again now.
    *records, last = course["records"]
    return {
        "position": last[0],
        "state": {name: course[name] for name in ("posterior", "estimate", "graphs")} | {"energies": last[2:4]},
        "steps": course["generator"],
        "records": records,
        "snapshots": course["snapshots"],
        "best_rmse": math.inf,
        "remembered": {},
    }
