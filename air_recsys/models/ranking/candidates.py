"""Which items a call of `recommend` may return."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.data.ids import IdIndex, as_id_array
from air_recsys.exceptions import UnknownIdError
from air_recsys.storage.validation import check_integer


def allowed_items(index: IdIndex, items: Any = None, exclude: Any = None) -> np.ndarray | None:
    """Return the positions of the items of which lists may be made, ascending; None where all may.

    Parameters
    ----------
    index : IdIndex
        Of the items of the model.
    items : id, array_like or set of ids, optional
        Those that may be recommended, by default all.
    exclude : id, array_like or set of ids, optional
        Those that may not.

    Raises
    ------
    UnknownIdError
        For an id that the model does not know.

    Examples
    --------
    >>> index = IdIndex(["a", "b", "c"], "item")
    >>> allowed_items(index, items=["c", "a", "c"]), allowed_items(index, exclude="b")
    (array([0, 2]), array([0, 2]))
    """
    if items is None and exclude is None:
        return None
    allowed = np.full(len(index), items is None)
    if items is not None:
        allowed[_positions(index, items)] = True
    if exclude is not None:
        allowed[_positions(index, exclude)] = False
    return np.flatnonzero(allowed)


def list_length(n: int, n_items: int, allowed: np.ndarray | None = None) -> int:
    """Return the length of lists: n, or what there is to recommend where that is less; at least 1.

    Raises
    ------
    ParameterError
        If n is no integer, or below 1.
    """
    return min(check_integer("n", n, minimum=1), max(n_items if allowed is None else allowed.size, 1))


def among(allowed: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
    """Return items by their positions among the allowed ones; -1, for no item, stays.

    Examples
    --------
    >>> among(np.array([3, 7]), np.array([[1, 0, -1]]))
    array([[ 7,  3, -1]])
    """
    return positions if allowed is None or not allowed.size else np.where(positions >= 0, allowed[positions], -1)


def as_queried_ids(ids: Any) -> np.ndarray:
    """Return one id or an array_like of ids as a 1-D array.

    Examples
    --------
    >>> as_queried_ids("ann"), as_queried_ids([3, 1])
    (array(['ann'], dtype=object), array([3, 1]))
    """
    scalar = not isinstance(ids, (list, tuple)) and np.ndim(ids) == 0
    queried: Any = [ids] if scalar else ids
    return as_id_array(queried)


def as_item_ids(ids: Any) -> np.ndarray:
    """Return one id, or an array_like or a set of ids, as a 1-D array.

    Examples
    --------
    >>> as_item_ids({3}), as_item_ids("ab")
    (array([3]), array(['ab'], dtype=object))
    """
    return as_queried_ids(list(ids) if isinstance(ids, set | frozenset) else ids)


def _positions(index: IdIndex, ids: Any) -> np.ndarray:
    queried = as_item_ids(ids)
    places = index.lookup(queried)
    if (places < 0).any():
        raise UnknownIdError(index.kind, queried[places < 0].tolist(), "leave it out")
    return places
