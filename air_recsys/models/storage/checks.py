"""What has to hold for the parts of a model file before anything is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_FREE = "history_"  # prefix of arrays that may hold NaN: a validation error is NaN without held-out ratings
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "global_mean_": (int, float),
    "history_": list,
    "course": dict,
    "transform_graphs": list,
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


def check_attributes(attributes: Any) -> dict[str, Any]:
    """Return the attributes of a model file, or raise `ValueError` where one is absent or of another type."""
    if not isinstance(attributes, dict):
        raise ValueError(f"expected attributes by name, found {type(attributes).__name__}")
    whole: dict[str, Any] = {"transform_graphs": []} | attributes  # which format version 1 may lack
    for name, kind in _FIELDS.items():
        _check_type(name, whole[name], kind)
    for name in whole["course"].keys() & _OF_TRAINING.keys():
        _check_type(name, whole["course"][name], _OF_TRAINING[name])
    for name in whole["history_"]:
        _check_type("a column of the history", name, str)
    for size in whole["transform_graphs"]:
        _check_type("the size of a graph", size, int)
    if not math.isfinite(whole["global_mean_"]):
        raise ValueError(f"expected a finite global_mean_, found {whole['global_mean_']}")
    return whole


def _check_type(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"expected another type of {name}, found {type(value).__name__}")
