"""Checks of what the metrics are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from air_recsys.exceptions import DataError

Csr = Any  # a csr_array, which carries no annotations


def check_pairs(y_true: Any, y_pred: Any, found_name: str = "y_pred") -> tuple[np.ndarray, np.ndarray]:
    """Return truth and prediction as float64 arrays, or raise `DataError`.

    Parameters
    ----------
    y_true, y_pred : array_like of float, shape (n,)
        Finite, of the same length, not empty.
    found_name : str
        What the caller names `y_pred`.
    """
    truth, prediction = _as_vector("y_true", y_true), _as_vector(found_name, y_pred)
    if truth.size != prediction.size:
        raise DataError(
            f"expected y_true and {found_name} of the same length, found {truth.size} and {prediction.size}"
        )
    return truth, prediction


def check_sparse(name: str, matrix: Any, shape: tuple[int | None, int | None]) -> Csr:
    """Return a users x items matrix as CSR, or raise `DataError`; None in `shape` stands for any size."""
    if not sp.issparse(matrix) or matrix.ndim != 2:
        raise DataError(f"expected {name} as a SciPy sparse matrix (users x items), found {type(matrix).__name__}")
    for found, expected, kind in zip(matrix.shape, shape, ("users", "items"), strict=True):
        if expected is not None and found != expected:
            raise DataError(f"expected {name} with {expected} {kind}, found {found}")
    return sp.csr_array(matrix)


def _as_vector(name: str, values: Any) -> np.ndarray:
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"expected {name} as a 1-D array of numbers, found {type(values).__name__}") from None
    if vector.ndim != 1 or vector.size == 0:
        raise DataError(f"expected {name} as a 1-D array with at least one value, found shape {vector.shape}")
    broken = np.flatnonzero(~np.isfinite(vector))
    if broken.size:
        raise DataError(
            f"expected finite numbers in {name}, found {broken.size} NaN or infinite, the first at position "
            f"{broken[0]}"
        )
    return vector
