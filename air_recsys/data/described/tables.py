"""Tables of similarities as people give them: checked, and put in the order of ids."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.columns import as_float
from air_recsys.exceptions import DataError, DataWarning, quoted

_EVEN = 1e-6  # of the two values of a pair: rounding
_UNEVEN = 0.1  # more is no similarity
_SHOWN = 3


def as_similarity(name: str, given: Any, ids: np.ndarray, stacklevel: int = 2) -> np.ndarray:
    """Return a similarity in the order of `ids`, symmetric and with unit diagonal.

    Parameters
    ----------
    name : str
        For messages.
    given : DataFrame with ids as index and columns, or ndarray in the order of `ids`, shape (n, n)
        In [0, 1], nothing more similar to a row than itself. Of two values that differ by 0.1 at most the mean is
        taken.
    ids : ndarray, shape (n,)

    Warns
    -----
    DataWarning
        Of a matrix that is a little off symmetry.
    """
    if isinstance(given, pd.DataFrame):
        check_aligned(name, given, ids, ids)
        given = given.loc[ids, ids]
    if sp.issparse(given):
        raise DataError(f"expected {name} as a DataFrame or an array, found a {type(given).__name__}")
    given = as_float(given, name)
    near = given.clip(0, 1)  # of values that rounding has put a little outside
    matrix = np.where(np.abs(given - near) <= _EVEN, near, given)
    if matrix.shape != (len(ids), len(ids)):
        raise DataError(f"expected {name} of shape {(len(ids), len(ids))}, found {matrix.shape}")
    _check_scale(name, matrix)
    _check_own(name, matrix, ids)
    _check_symmetry(name, matrix, ids, stacklevel + 1)
    matrix = (matrix + matrix.T) / 2
    np.fill_diagonal(matrix, 1)
    return matrix


def later_rows(name: str, known: np.ndarray, given: Any, ids: np.ndarray, n_known: int) -> np.ndarray:
    """Return the similarities of later ids, the last, to all, (k, n + k), of those that are known, (n, n).

    Without columns of later ids these are unlike each other.
    """
    new = ids[n_known:]
    if not isinstance(given, pd.DataFrame):
        raise DataError(f"expected {name} of new and known ids as a DataFrame, found a {type(given).__name__}")
    check_aligned(name, given, new, ids[:n_known])
    absent = dict.fromkeys((id for id in new.tolist() if id not in given.columns), 0.0)
    rows = as_float(given.loc[new].reindex(columns=ids).fillna(absent), name)
    whole = np.block([[known, rows[:, :n_known].T], [rows]])
    np.fill_diagonal(whole, 1)
    return as_similarity(name, whole, ids)[n_known:]


def check_aligned(name: str, table: pd.DataFrame, rows: np.ndarray, columns: np.ndarray) -> None:
    """Raise an error unless a table has each id once, with some rows and columns."""
    for axis, labels, ids in (("rows", table.index, rows), ("columns", table.columns, columns)):
        twice = labels[labels.duplicated()].unique()
        if len(ids) and len(twice):
            raise DataError(
                f"expected {name} with each id once in its {axis}, found again: {quoted(list(twice[:_SHOWN]))}"
            )
        lacking = [id for id in ids.tolist() if id not in labels]
        if lacking:
            shown = ", ".join(with_nearest(id, labels.tolist()) for id in lacking[:_SHOWN])
            more = "" if len(lacking) <= _SHOWN else ", ..."
            raise DataError(
                f"expected {name} with the {len(ids)} ids among its {axis}, found {len(lacking)} of them without one: "
                f"{shown}{more}"
            )


def with_nearest(id: Any, labels: Sequence[Any]) -> str:
    """Return an id as text, with the nearest of some labels if one is near."""
    names = {str(label).casefold(): label for label in labels}
    close = difflib.get_close_matches(str(id).casefold(), names, n=1)
    return f"{id!r}" + (f" (the nearest is {names[close[0]]!r})" if close else "")


def _check_scale(name: str, matrix: np.ndarray) -> None:
    outside = matrix[~((matrix >= 0) & (matrix <= 1))]  # NaN too
    if not outside.size:
        return
    largest = matrix.max()
    by_scale = f": on a scale of 0..{largest:g}, divide by {largest:g}" if largest > 1 and matrix.min() >= 0 else ""
    raise DataError(f"expected {name} in [0, 1], found {outside[0]:g}{by_scale}")


def _check_own(name: str, matrix: np.ndarray, ids: np.ndarray) -> None:
    """Refuse distances: nothing is more similar to a row than itself."""
    own, others = np.diag(matrix), matrix - np.diag(np.diag(matrix))
    if len(ids) > 1 and not own.any() and others.any():
        raise DataError(
            f"expected {name} of 1 between an id and itself, found 0 everywhere, as distances have it: take "
            "1 - distance, or exp(-distance); if they are similarities, fill the diagonal with 1"
        )
    over = np.flatnonzero(others.max(axis=1, initial=0) > own + _EVEN)
    if over.size:
        row = over[0]
        nearest = int(others[row].argmax())
        raise DataError(
            f"expected {name} largest between an id and itself, found {own[row]:g} for {ids[row]!r} and "
            f"{others[row, nearest]:g} between it and {ids[nearest]!r}"
        )


def _check_symmetry(name: str, matrix: np.ndarray, ids: np.ndarray, stacklevel: int) -> None:
    apart = np.abs(matrix - matrix.T)
    if apart.max(initial=0) <= _EVEN:
        return
    first, second = np.unravel_index(int(apart.argmax()), apart.shape)
    found = (
        f"{matrix[first, second]:g} from {ids[first]!r} to {ids[second]!r} and {matrix[second, first]:g} the other way"
    )
    if apart.max() > _UNEVEN:
        raise DataError(f"expected a symmetric {name}, found {found}")
    warnings.warn(
        f"{name} is a little off symmetry, {found}: the mean of both is taken", DataWarning, stacklevel=stacklevel
    )


def mended(similarity: np.ndarray) -> np.ndarray:
    """Symmetric and at most 1, with unit diagonal: products of both orders may differ in their last digits."""
    similarity = np.minimum((similarity + similarity.T) / 2, 1)
    np.fill_diagonal(similarity, 1)
    return similarity


def texts_of(name: str, given: Any, *, missing: bool = False) -> pd.Series:
    """Return one text for each id, and None where there is none, if that may be."""
    if not isinstance(given, pd.Series | Mapping):
        raise DataError(f"expected {name} as a Series by id or a mapping of ids, found {type(given).__name__}")
    texts = given if isinstance(given, pd.Series) else pd.Series(dict(given), dtype=object)
    if texts.empty:
        raise DataError(f"expected {name}, found none")
    texts = texts.astype(object).where(texts.notna(), None)
    other = [
        id for id, text in texts.items() if not (text is None and missing) and (not isinstance(text, str) or not text)
    ]
    if other:
        raise DataError(f"expected {name} as text, found {texts[other[0]]!r} for {other[0]!r}")
    return texts
