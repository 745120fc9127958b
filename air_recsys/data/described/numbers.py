"""Similarities by numbers: features, fingerprints, embeddings."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from air_recsys.data.columns import as_float, without_index
from air_recsys.data.described.kernels import Kernel, numbers_kernel
from air_recsys.exceptions import DataError, DataWarning, quoted

_LEAST_OF_BITS = 1e9


def numbers_of(name: str, features: pd.DataFrame, stacklevel: int = 2) -> Kernel:
    r"""The kernel of numbers, after checks; the name is for messages.

    Tanimoto, :math:`x^\top y / (|x|^2 + |y|^2 - x^\top y)`, of fingerprints, whose numbers are all 0 or 1; of others
    :math:`\exp(-|x - y|^2 / m)` of standardised columns, m the median over the pairs.
    """
    features = without_index(features, name, stacklevel=stacklevel)
    rows = checked_rows(name, features)
    for column, values in zip(features.columns, rows.T, strict=True):
        if values.max() > _LEAST_OF_BITS and all(set(f"{each:.9e}".split("e")[0]) <= set("01.") for each in values):
            raise DataError(
                f"expected a column for each bit, found {column!r} that has all bits in one: {values[0]:g}"
            )
    others = np.flatnonzero(~np.isin(rows, (0, 1)).all(axis=0))
    if 0 < others.size < rows.shape[1]:
        told = f"{name}: all columns but {quoted(features.columns[others].tolist())} are 0 or 1, and all are numbers"
        warnings.warn(told, DataWarning, stacklevel=stacklevel)
    return numbers_kernel(rows, "rbf" if others.size else "tanimoto")


def checked_rows(name: str, features: pd.DataFrame) -> np.ndarray:
    """Finite numbers of each row, (n, f)."""
    rows = as_float(features, name)
    if rows.size == 0 or not np.isfinite(rows).all():
        raise DataError(f"expected finite {name} of each row, found {np.sum(~np.isfinite(rows))} that are not")
    return rows
