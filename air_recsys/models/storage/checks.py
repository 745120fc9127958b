"""What has to hold for the parts of a model file before anything is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.models.state import Factors, FittedState

_FREE = "history_"  # prefix of arrays that may hold NaN: a validation error is NaN without held-out ratings
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "global_mean_": (int, float),
    "history_": list,
    "course": dict,
    "transform_graphs": list,
    "features": dict,
    "rating_scale": list,
    "chosen": dict,
}
_OF_TRAINING: dict[str, type] = {"n_iter_": int, "stopped_by_": str, "device_": str}


def check_arrays(arrays: Mapping[str, np.ndarray], size: int) -> None:
    """Raise `ValueError` for arrays that no model has.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Numbers, all of them finite but for the history's.
    size : int
        Bytes of the file: an empty array has no more rows than this, so that no loop over them runs for ever.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"expected numbers in {name}, found {array.dtype}")
        if max(array.shape, default=0) > size:
            raise ValueError(f"expected at most {size} rows in {name}, found shape {array.shape}")
        if not name.startswith(_FREE) and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"expected finite numbers in {name}, found NaN or infinity")


def check_starts(starts: np.ndarray, size: int) -> list[int]:
    """Return where each text of `size` bytes in all begins, and where the last one ends, as a list.

    Examples
    --------
    >>> check_starts(np.array([0, 2, 2, 5]), 5)
    [0, 2, 2, 5]
    """
    whole = starts.ndim == 1 and starts.dtype.kind in "iu" and starts.size > 0
    if not whole or starts[0] != 0 or starts[-1] != size or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"expected the places of ids in {size} bytes, in their order, found others")
    return starts.tolist()


def check_shapes(data: Interactions, factors: Factors) -> None:
    """Raise `ValueError` where factors and biases are not those of as many users and items, of one width."""
    width = factors.user_factors.shape[-1]
    expected = ((data.n_users, width), (data.n_items, width), (data.n_users,), (data.n_items,))
    shapes = tuple(array.shape for array in factors.arrays())
    if shapes != expected:
        raise ValueError(f"expected factors of shapes {expected}, found {shapes}")


def check_state(state: FittedState) -> None:
    """Raise `ValueError` where a state that is to be written is not what a file can hold of one.

    That no pair is rated twice was seen when the interactions were made, and that numbers are finite `check_arrays`
    sees.
    """
    data = state.data
    check_shapes(data, state.factors)
    if not data.n_ratings:
        raise ValueError("expected at least one rating, found none")
    for kind, index, size in (("user", data.user_index, data.n_users), ("item", data.item_index, data.n_items)):
        if index.shape != (data.n_ratings,) or index.dtype.kind != "i":
            raise ValueError(f"expected {data.n_ratings} places of {kind}s, found {index.dtype} {index.shape}")
        if index.min() < 0 or index.max() >= size:
            raise ValueError(f"expected places of {kind}s in 0..{size - 1}, found {index.min()}..{index.max()}")
    for kind, graph, size in (("user", state.user_graph, data.n_users), ("item", state.item_graph, data.n_items)):
        if graph is not None and len(graph) != size:
            raise ValueError(f"expected a graph of {size} {kind}s, found one of {len(graph)}")


def check_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a model file, or raise `ValueError` where one is absent or of another type."""
    if not isinstance(attributes, dict):
        raise ValueError(f"expected attributes by name, found {type(attributes).__name__}")
    for name, kind in _FIELDS.items():
        _check_type(name, attributes[name], kind)
    for name in attributes["course"].keys() & _OF_TRAINING.keys():
        _check_type(name, attributes["course"][name], _OF_TRAINING[name])
    for name in attributes["history_"]:
        _check_type("a column of the history", name, str)
    for size in attributes["transform_graphs"]:
        _check_type("the size of a graph", size, int)
    if not math.isfinite(attributes["global_mean_"]):
        raise ValueError(f"expected a finite global_mean_, found {attributes['global_mean_']}")
    return attributes


def check_scale(scale: list[Any]) -> tuple[float, float]:
    """The smallest and the largest rating that `fit` saw.

    Examples
    --------
    >>> check_scale([1, 5])
    (1.0, 5.0)
    """
    numbers = all(type(each) in (int, float) for each in scale)
    if not numbers or len(scale) != 2 or not -math.inf < scale[0] <= scale[1] < math.inf:
        raise ValueError("expected the smallest and the largest rating as rating_scale, found others")
    return float(scale[0]), float(scale[1])


def _check_type(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"expected another type of {name}, found {type(value).__name__}")
