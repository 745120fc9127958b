"""The fingerprint of a training: equal ones come to the same result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions

# None of these changes a number of the training.
_FREE = ("device", "verbose", "clip", "pattern_graphs", "max_memory", "n_threads", "solver__graph_residuals")
_IDS_AT_ONCE = 1_000_000


def fingerprint(
    model: str,
    parameters: Mapping[str, Any],
    data: Interactions,
    validation: Interactions | None = None,
    *,
    timed: bool = False,
) -> dict[str, Any]:
    """The parts "data" and "parameters" of a training, as JSON holds them.

    With `timed` the timestamps of the data count, as they do for a solver with a parameter ``time``.
    """
    whole = {name: value for name, value in flat(parameters).items() if name not in _FREE}
    timed = timed or whole.get("solver__time") is not None
    digests = [None if part is None else digest(part, timed=timed) for part in (data, validation)]
    return json.loads(json.dumps({"data": digests, "parameters": {"model": model, **whole}}))


def flat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters side by side, those of a solver under names such as ``solver__depth``.

    Examples
    --------
    >>> flat({"n_factors": 3, "solver": {"name": "adam", "depth": 2}})
    {'n_factors': 3, 'solver__name': 'adam', 'solver__depth': 2}
    """
    pairs: dict[str, Any] = {}
    for name, value in parameters.items():
        nested = isinstance(value, Mapping)
        pairs |= {f"{name}__{key}": entry for key, entry in value.items()} if nested else {name: value}
    return pairs


def digest(data: Interactions, *, timed: bool = False) -> str:
    """A digest of ratings, weights, ids, features and, with `timed`, timestamps.

    Their order counts, since a split depends on it.
    """
    indices = (index.astype(np.int64) for index in (data.user_index, data.item_index))  # of any width in memory
    hashed = hash_arrays(*indices, data.ratings, data.weights)
    if data.relations is not None:
        hashed.update(hash_arrays(data.relations).digest())
    for ids in (data.user_ids, data.item_ids):
        add_ids(hashed, ids)
    for features in (data.user_features, data.item_features):
        if features is not None:
            hashed.update(json.dumps(features.encoding.to_json()).encode())
            hashed.update(np.ascontiguousarray(features.numbers()))  # pyright: ignore[reportArgumentType]
    if timed:
        hashed.update(hash_arrays(data.timestamps).digest())
    for name, each in data.kinds.beside.items() if data.kinds is not None else ():
        hashed.update(f"{name}: {digest(each, timed=timed)}".encode())
    return hashed.hexdigest()


def add_ids(hashed: hashlib._Hash, ids: np.ndarray) -> None:
    """Take ids into a digest."""
    for start in range(0, ids.size, _IDS_AT_ONCE):
        hashed.update(repr(ids[start : start + _IDS_AT_ONCE].tolist()).encode())


def hash_arrays(*arrays: np.ndarray | None) -> hashlib._Hash:
    """The SHA-256 of sizes and entries."""
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(b"none" if array is None else f"{array.size}:".encode())
        if array is not None:
            hashed.update(np.ascontiguousarray(array))  # pyright: ignore[reportArgumentType]
    return hashed
