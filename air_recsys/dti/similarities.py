"""The check of the similarities of drugs and targets that `DrugTargetAIR` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.columns import as_float
from air_recsys.exceptions import DataError


def as_similarity(name: str, given: Any, ids: np.ndarray) -> np.ndarray | None:
    """Return a similarity in the order of `ids`, symmetric and with unit diagonal; None stays None.

    Parameters
    ----------
    name : str
        For messages.
    given : DataFrame with ids as index and columns, or ndarray in the order of `ids`, shape (n, n)
        In [0, 1]; the mean of it and its transpose is taken.
    ids : ndarray, shape (n,)

    Raises
    ------
    DataError
        For another shape, other ids, and values outside [0, 1] or missing.

    Examples
    --------
    >>> as_similarity("drug_similarity", [[1, 0.2], [0.4, 0.9]], np.array(["a", "b"])).round(1).tolist()
    [[1.0, 0.3], [0.3, 1.0]]
    """
    if given is None:
        return None
    if isinstance(given, pd.DataFrame):
        for axis, labels in (("rows", given.index), ("columns", given.columns)):
            if not labels.is_unique or not pd.Index(ids).isin(labels).all():
                raise DataError(f"expected {name} with the {len(ids)} ids as {axis}, each once, found others")
        given = given.loc[ids, ids]
    if sp.issparse(given):
        raise DataError(f"expected {name} as a DataFrame or an array, found a {type(given).__name__}")
    matrix = as_float(given, name).copy()
    if matrix.shape != (len(ids), len(ids)):
        raise DataError(f"expected {name} of shape {(len(ids), len(ids))}, found {matrix.shape}")
    outside = matrix[~((matrix >= 0) & (matrix <= 1))]  # NaN too
    if outside.size:
        raise DataError(f"expected {name} in [0, 1], found {outside[0]:g}")
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix
