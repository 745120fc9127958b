"""The fold-in of new users inside a page: arrays as text, and how much of it a page may hold."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from air_recsys.exceptions import ParameterError
from air_recsys.models import Recommender
from air_recsys.models.portable import portable_fold_in

MOST_BYTES = 5_000_000  # of a page
MOST_BY_DEFAULT = 2_000_000
# Of large tables, whose errors even out.
_HALVES = ("covariances", "regression", "sources", "targets", "near_weights", "near_features")
_HALVES_OF_DRAWS = ("items", "basis")
_DOUBLES = ("base", "pull", "maps", "errors")  # of small ones
_SCRIPTS = {
    "posterior": "explorer-foldin-posterior.js",
    "objective": "explorer-foldin-objective.js",
    "lists": "explorer-foldin-lists.js",
}


def fold_in_content(model: Recommender, wanted: bool | None) -> dict[str, Any] | None:
    """Return what the page needs to recommend to new users, or None where it is to have nothing of it.

    `wanted` is True where it has to be in the page, and None where it is possible in at most `MOST_BY_DEFAULT` bytes.
    """
    if wanted is False:
        return None
    try:
        return _content(model, MOST_BYTES if wanted else MOST_BY_DEFAULT)
    except ParameterError as error:
        if wanted:
            raise ParameterError(f"recommend=True: {error}") from error
        return None


def fold_in_scripts(content: dict[str, Any]) -> tuple[str, ...]:
    """Return the scripts that solve it and show it, in the order of the page."""
    return "explorer-foldin.js", _SCRIPTS[content["kind"]], "explorer-pick.js", "explorer-reasons.js"


def as_text(array: np.ndarray, type: str) -> dict[str, Any]:
    """Return an array as values that JSON can hold: its shape, "f2", "f4" or "f8", and its bytes in base64.

    Numbers that half precision cannot hold make the whole array one of single precision.
    """
    if type == "f2" and np.abs(array).max(initial=0) > np.finfo(np.float16).max:
        type = "f4"
    values = np.ascontiguousarray(array, dtype=f"<{type}")
    return {"shape": list(array.shape), "type": type, "base64": base64.b64encode(values.tobytes()).decode()}


def _content(model: Recommender, most: int) -> dict[str, Any]:
    if model.item_graph_ is None:
        raise ParameterError("expected a model with a graph of the items to pick from, found none")
    _check_size(model, 4 * model.item_factors_.size, most)  # no less, and known before any work
    found = portable_fold_in(model)
    halves = _HALVES + _HALVES_OF_DRAWS if found.get("errors") is not None else _HALVES
    content = {
        name: as_text(value, "f2" if name in halves else _full_type(name, value))
        if isinstance(value, np.ndarray)
        else value
        for name, value in found.items()
    }
    _check_size(model, sum(len(value["base64"]) for value in content.values() if isinstance(value, dict)), most)
    return content


def _full_type(name: str, value: np.ndarray) -> str:
    return "f8" if name in _DOUBLES or (name == "factors" and value.dtype == np.float64) else "f4"


def _check_size(model: Recommender, size: int, most: int) -> None:
    if size > most:
        raise ParameterError(
            f"expected a fold-in of at most {most / 1e6:g} MB in a page, found {size / 1e6:.1f} MB for "
            f"{model.interactions_.n_items:,} items"
        )
