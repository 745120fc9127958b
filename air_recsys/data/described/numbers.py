"""Similarities by numbers: features, fingerprints, embeddings."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np
import pandas as pd

from air_recsys.data.columns import as_float, without_index
from air_recsys.data.described.kernels import Kernel, numbers_kernel
from air_recsys.data.described.tables import square
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import check_choice

Kind = Literal["auto", "tanimoto", "cosine", "rbf"]
_KINDS = ("auto", "tanimoto", "cosine", "rbf")
_LEAST_OF_BITS = 1e9


def feature_similarity(features: pd.DataFrame, kind: Kind = "auto") -> pd.DataFrame:
    r"""Return the similarity of all pairs of rows of a table of numbers, in [0, 1].

    Parameters
    ----------
    features : DataFrame, shape (n, n_features)
        One row per drug or target, named by the index.
    kind : {"auto", "tanimoto", "cosine", "rbf"}
        Tanimoto, :math:`x^\top y / (|x|^2 + |y|^2 - x^\top y)`, for fingerprints and counts; the cosine, with 0 for
        negative ones; or :math:`\exp(-|x - y|^2 / m)` of standardised columns, m the median over the pairs. "auto" is
        Tanimoto if all numbers are 0 or 1, else "rbf".

    Returns
    -------
    DataFrame, shape (n, n)
        Rows without any feature are similar only to themselves.

    Raises
    ------
    DataError
        For text, missing numbers, a repeated id, and negative numbers with "tanimoto".

    Examples
    --------
    >>> bits = pd.DataFrame([[1, 1, 0], [1, 0, 0]], index=["aspirin", "ibuprofen"])
    >>> feature_similarity(bits)
               aspirin  ibuprofen
    aspirin        1.0        0.5
    ibuprofen      0.5        1.0
    """
    check_choice("kind", kind, _KINDS)
    if not isinstance(features, pd.DataFrame):
        raise DataError(f"expected a DataFrame of features, found {type(features).__name__}")
    return square(numbers_of("features", features, kind, stacklevel=3).similarity(), features.index)


def numbers_of(name: str, features: pd.DataFrame, kind: Kind = "auto", stacklevel: int = 2) -> Kernel:
    """The kernel of `feature_similarity`, after checks; the name is for messages."""
    features = without_index(features, name, stacklevel=stacklevel)
    rows = checked_rows(name, features)
    for column, values in zip(features.columns, rows.T, strict=True):
        if values.max() > _LEAST_OF_BITS and all(set(f"{each:.9e}".split("e")[0]) <= set("01.") for each in values):
            raise DataError(
                f"expected a column for each bit, found {column!r} that has all bits in one: {values[0]:g}"
            )
    if kind == "auto":
        others = np.flatnonzero(~np.isin(rows, (0, 1)).all(axis=0))
        kind = "rbf" if others.size else "tanimoto"
        if 0 < others.size < rows.shape[1]:
            told = f"takes kind='rbf': all columns but {quoted(features.columns[others].tolist())} are 0 or 1"
            warnings.warn(told, DataWarning, stacklevel=stacklevel)
    if kind == "tanimoto" and rows.min() < 0:
        raise DataError(f"expected {name} of at least 0 for kind='tanimoto', found {rows.min():g}")
    return numbers_kernel(rows, kind)


def checked_rows(name: str, features: pd.DataFrame) -> np.ndarray:
    """Finite numbers of each row, (n, f)."""
    rows = as_float(features, name)
    if rows.size == 0 or not np.isfinite(rows).all():
        raise DataError(f"expected finite {name} of each row, found {np.sum(~np.isfinite(rows))} that are not")
    return rows
