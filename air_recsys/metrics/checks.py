"""Checks of the arguments of the metrics."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError
from air_recsys.storage.reading import checked_sparse

Csr = Any  # a csr_array, whose methods have no type annotations


def check_pairs(y_true: Any, y_pred: Any, name: str = "y_pred") -> tuple[np.ndarray, np.ndarray]:
    """Return truth and prediction as float64 arrays, or raise `DataError`."""
    truth, prediction = as_finite("y_true", y_true, 1), as_finite(name, y_pred, 1)
    if truth.size != prediction.size:
        raise DataError(f"expected y_true and {name} of the same length, found {truth.size} and {prediction.size}")
    return truth, prediction


def check_sparse(name: str, matrix: Any, shape: tuple[int | None, int | None]) -> Csr:
    """Return a users x items matrix as CSR, or raise `DataError`; None in `shape` stands for any size."""
    checked = sp.csr_array(checked_sparse(name, matrix))
    for size, expected, kind in zip(matrix.shape, shape, ("users", "items"), strict=True):
        if expected is not None and size != expected:
            raise DataError(f"expected {name} with {expected} {kind}, found {size}")
    return checked


def as_finite(name: str, values: Any, ndim: int) -> np.ndarray:
    """Return finite numbers as a float64 array of `ndim` dimensions, not empty, or raise `DataError`."""
    if np.ma.is_masked(values):
        raise DataError(f"expected {name} without masked values, found {np.ma.count_masked(values)}: leave them out")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected {name} as a {ndim}-D array of numbers, found {type(values).__name__}") from None
    if array.ndim != ndim or array.size == 0:
        raise DataError(f"expected {name} as a {ndim}-D array with at least one value, found shape {array.shape}")
    broken = np.argwhere(~np.isfinite(array))
    if broken.size:
        position = ", ".join(map(str, broken[0]))
        raise DataError(
            f"expected finite numbers in {name}, found {len(broken)} NaN or infinite, the first at position {position}"
        )
    return array
