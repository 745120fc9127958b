"""Checkpoints of format version 2 in the present form: whole covariances, and weights of features of other signs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from air_recsys.nn.posterior.triangles import packed


def upgraded(state: Any) -> Any:
    """Return a state of version 2 in the present form.

    Features of the pattern are found anew when a training goes on, and have had no fixed signs before. So what depends
    on them, the weights W of the priors, is left out (None) and follows from the rows.
    """
    course = state["course"]
    remembered = {name: [epoch, _of_solver(kept)] for name, (epoch, kept) in course["remembered"].items()}
    return {**state, "course": {**course, "state": _of_solver(course["state"]), "remembered": remembered}}


def _of_solver(state: Any) -> Any:
    if not isinstance(state, Mapping) or "posterior" not in state:
        return state
    posterior, estimate = state["posterior"], state["estimate"]
    now = {
        "sides": [[mean, None if whole is None else packed(whole)] for mean, whole in posterior["sides"]],
        "priors": [{**prior, "weights": None} for prior in posterior["priors"]],
        "generator": {"device": "cpu", "state": posterior["generator"]},
    }
    if "_draws" in estimate:
        draws = [[rows, columns, [None, None, *priors[2:]]] for rows, columns, priors in estimate["_draws"]]
        estimate = {**estimate, "_draws": draws}
    return {**state, "posterior": {**posterior, **now}, "estimate": estimate}
