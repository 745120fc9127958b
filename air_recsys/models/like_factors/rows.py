"""Rows of factors: what those of users and items who are new, or whose likes have changed, follow from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp


def like_counts(rows: sp.csr_matrix) -> np.ndarray:
    """The number of likes of each row, at least 1, (n,)."""
    return np.maximum(np.diff(rows.indptr), 1).astype(np.float64)


def with_zero_rows(factors: np.ndarray, rows: np.ndarray, size: int) -> np.ndarray:
    """Factors (size, r) with the given rows, and zeros elsewhere."""
    wide = np.zeros((size, factors.shape[1]), factors.dtype)
    wide[rows] = factors
    return wide


def replaced(factors: np.ndarray, ids: Any, rows: np.ndarray) -> np.ndarray:
    """A copy of factors with other rows at some ids, with zeros up to an id beyond the last."""
    places = np.asarray(ids)
    size = max(len(factors), int(places.max(initial=-1)) + 1)
    changed = with_zero_rows(factors, np.arange(len(factors)), size)
    changed[places] = rows
    return changed


def check_matrices(arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple[int | None, int]]) -> None:
    """Raise `ValueError` unless these are finite matrices of the shapes, None for any number of rows."""
    for name, (rows, width) in shapes.items():
        array = arrays[name]
        if array.dtype.kind != "f" or array.ndim != 2 or not np.isfinite(array).all():
            raise ValueError(f"expected a finite matrix {name}, found {array.dtype} of shape {array.shape}")
        if array.shape[1] != width:
            raise ValueError("expected factors, and what solves for others, of one width, found several")
        if rows is not None and len(array) != rows:
            raise ValueError(f"expected {rows} rows of {name}, found {len(array)}")
