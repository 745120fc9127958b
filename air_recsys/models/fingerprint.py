"""What two trainings have in common if they come to the same result."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.interactions import Interactions

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

# None of these changes a number of the training.
_FREE = ("device", "verbose", "clip", "pattern_graphs", "max_memory")
_IDS_AT_ONCE = 1_000_000


def fingerprint(model: AIR, data: Interactions, validation: Interactions | None = None) -> dict[str, Any]:
    """Return "data" and "parameters" of a training, as JSON holds them."""
    parameters = {name: value for name, value in model._compared_parameters(data).items() if name not in _FREE}
    named = {"model": type(model).__name__, **parameters}
    parts = [digest(data), None if validation is None else digest(validation)]
    return json.loads(json.dumps({"data": parts, "parameters": named}))


def digest(data: Interactions) -> str:
    """Return a digest of ratings, weights and ids; their order counts, since a split depends on it.

    Examples
    --------
    >>> ratings = np.array([[5.0, np.nan], [1.0, 2.0]])
    >>> digest(Interactions.from_dense(ratings)) == digest(Interactions.from_dense(ratings + 1))
    False
    """
    found = hash_arrays(data.user_index, data.item_index, data.ratings, data.weights)
    for ids in (data.user_ids, data.item_ids):
        for start in range(0, ids.size, _IDS_AT_ONCE):
            found.update(repr(ids[start : start + _IDS_AT_ONCE].tolist()).encode())
    return found.hexdigest()


def hash_arrays(*arrays: np.ndarray | None) -> hashlib._Hash:
    """Return the SHA-256 of sizes and entries.

    Examples
    --------
    >>> one, two, both = np.ones(1), np.ones(2), np.ones(3)
    >>> len({hash_arrays(*arrays).hexdigest() for arrays in ((one, two), (two, one), (both, None), (both,))})
    4
    """
    found = hashlib.sha256()
    for array in arrays:
        found.update(b"none" if array is None else f"{array.size}:".encode())
        if array is not None:
            found.update(np.ascontiguousarray(array))  # pyright: ignore[reportArgumentType]
    return found
