"""What lists are made of: arrays of NumPy on a CPU, tensors of torch on a GPU, by the words that both have."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.storage.lazy import torch

Array = Any  # ndarray or Tensor
_GROUP = 16  # columns whose maximum is taken first


def library_of(array: Array) -> Any:
    """NumPy, or torch: the module that an array is of."""
    return np if isinstance(array, np.ndarray) else torch


def like(other: Array, array: np.ndarray) -> Array:
    """An array as one of the library of another, and in its place."""
    return array if isinstance(other, np.ndarray) else torch.from_numpy(array).to(other.device)


def in_numpy(array: Array) -> np.ndarray:
    """An array of NumPy."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def empty(shape: tuple[int, ...], other: Array, dtype: str = "float64") -> Array:
    """New memory in the place of another array."""
    if isinstance(other, np.ndarray):
        return np.empty(shape, dtype)
    return torch.empty(shape, dtype=getattr(torch, dtype), device=other.device)


def wide(array: Array) -> Array:
    """An array in double precision, contiguous."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array, dtype=np.float64)
    return array.to(torch.float64, memory_format=torch.contiguous_format)


def taken(array: Array, columns: Array) -> Array:
    """Some columns of each row, (b, k)."""
    return np.take_along_axis(array, columns, 1) if isinstance(array, np.ndarray) else array.gather(1, columns)


def running_maximum(array: Array) -> Array:
    """The largest entry so far, along each row."""
    return np.maximum.accumulate(array, axis=1) if isinstance(array, np.ndarray) else array.cummax(dim=1).values


def from_highest(scores: Array) -> tuple[Array, Array]:
    """The scores of each row in descending order, NaN first, and their columns.

    Examples
    --------
    >>> from_highest(np.array([[1.0, 3.0, 2.0]]))
    (array([[3., 2., 1.]]), array([[1, 2, 0]]))
    """
    if not isinstance(scores, np.ndarray):
        return scores.sort(dim=1, descending=True)
    order = scores.argsort(axis=1)[:, ::-1]
    return taken(scores, order), order


def largest_of_rows(scores: Array, k: int) -> tuple[Array, Array]:
    """The k largest of each row and their columns, (b, k) each, in descending order.

    In long rows they are among the columns of the k groups with the largest maxima: most columns are read once.
    """
    n_groups = scores.shape[1] // _GROUP
    if n_groups < 2 * k:
        return _largest(scores, k)
    whole, library = n_groups * _GROUP, library_of(scores)
    groups = library.amax(scores[:, :whole].reshape(-1, _GROUP, n_groups), axis=1)  # (b, n_groups)
    first = _largest(groups, k)[1][:, None]  # (b, 1, k)
    columns = (first + like(scores, n_groups * np.arange(_GROUP)[:, None])).reshape(len(scores), -1)
    rest = like(scores, np.arange(whole, scores.shape[1]))
    columns = library.concatenate([columns, library.broadcast_to(rest, (len(scores), len(rest)))], axis=1)
    values, places = _largest(taken(scores, columns), k)
    return values, taken(columns, places)


def _largest(scores: Array, k: int) -> tuple[Array, Array]:
    if not isinstance(scores, np.ndarray):
        return scores.topk(k)
    chosen = scores.argpartition(scores.shape[1] - k, axis=1)[:, scores.shape[1] - k :] if k else scores[:, :0] > 0
    values, order = from_highest(taken(scores, chosen))
    return values, taken(chosen, order)
