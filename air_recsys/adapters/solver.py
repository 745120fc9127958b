"""Which solver of `AIR` an adapter takes where its user names none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AUTO = "auto"


def solver_for(parameters: Mapping[str, Any], *, stops_early: bool = False) -> str:
    """Return the solver that parameters ask for, with "auto" resolved.

    "auto" is the preset's "variational", and "adam" where a setting is about trained scores: full width
    (``n_factors=None``), ``biases=False``, ``center=False``, `transforms`, `tv_reg`, `unobserved_weight`, `patience`
    or `stopping_delta`.

    Parameters
    ----------
    parameters : mapping
        All parameters of an `AIR`, not yet checked, but for a `solver` that may be "auto".
    stops_early : bool
        Whether the adapter's host stops the training.

    Examples
    --------
    >>> from air_recsys import AIR
    >>> solver_for(AIR.for_ratings(solver="auto").get_params())
    'variational'
    >>> solver_for(AIR.for_ratings(solver="auto", biases=False).get_params())
    'adam'
    >>> solver_for(AIR.for_ratings(solver="langevin").get_params(), stops_early=True)
    'langevin'
    """
    if parameters["solver"] != AUTO:
        return parameters["solver"]
    needed = parameters["n_factors"] is not None and parameters["biases"] and parameters["center"]
    further = any(parameters[name] for name in ("transforms", "tv_reg", "unobserved_weight"))
    stops = stops_early or any(parameters[name] is not None for name in ("patience", "stopping_delta"))
    return "variational" if needed and not further and not stops else "adam"
