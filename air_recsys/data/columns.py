"""Checks of the columns of a table of ratings."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.scales import found_below_zero, hint_at_scale
from air_recsys.exceptions import DataError, DataWarning

_STACKLEVEL = 6  # of a warning: the caller of a model's fit


def index_type(size: int) -> type[np.signedinteger]:
    """Return the type of positions in 0..size - 1: 32 bits where they are enough."""
    return np.int32 if size <= 2**31 else np.int64


def as_index(values: Any, size: int, kind: str, *, copy: bool = True) -> np.ndarray:
    """Return positions in 0..size - 1 as int32, or int64 where that is too small, shape (n,)."""
    index = np.asarray(values)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise DataError(f"{kind} indices must be a 1-D array of integers, found {index.dtype} {index.shape}")
    if index.size and (index.min() < 0 or index.max() >= size):
        raise DataError(f"{kind} indices must lie in 0..{size - 1}, found {index.min()}..{index.max()}")
    return index.astype(index_type(size), copy=copy)


def as_float(values: Any, name: str = "ratings") -> np.ndarray:
    """Return real numbers as float64, of any shape, NaN where a masked array has none."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM":
            raise TypeError("NumPy converts complex numbers and dates to real numbers")
        real = array.astype(np.float64)
        if isinstance(values, np.ma.MaskedArray):
            real[np.ma.getmaskarray(values)] = np.nan
        return real
    except (TypeError, ValueError):
        objects = np.ravel(np.asarray(values, dtype=object))
        other = next((value for value in objects if not _is_number(value)), "dates")
        raise DataError(f"{name} must be numbers, found {other!r}") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _require(holds: np.ndarray, values: np.ndarray, expected: str, others: str, hint: str = "") -> None:
    rows = np.flatnonzero(~holds)
    if rows.size:
        first = f"the first in row {rows[0]}: {values[rows[0]]:g}"
        raise DataError(f"{expected}, found {rows.size} {others}, {first}{hint}")


def narrowed(numbers: np.ndarray) -> np.ndarray:
    """Return finite numbers as float32 where each of them is one, else as they are.

    Examples
    --------
    >>> narrowed(np.array([3.5, 4.0])).dtype, narrowed(np.array([3.5, 4.1])).dtype
    (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore"):
        half = numbers.astype(np.float32)
    return half if np.array_equal(half, numbers) else numbers


def as_ratings(values: Any, size: int, allow_negative: bool | None, *, copy: bool = True) -> np.ndarray:
    """Return finite ratings, shape (size,), as float32 where that loses nothing, else as float64.

    None for `allow_negative` takes negative ones with a warning where they are part of the scale.
    """
    kind = values.dtype.type if type(values) is np.ndarray else None
    ratings = values.astype(kind, copy=copy) if kind in (np.float32, np.float64) else as_float(values)
    if ratings.shape != (size,):
        raise DataError(f"expected one rating for each of {size} pairs, found shape {ratings.shape}")
    _require(np.isfinite(ratings), ratings, "ratings must be finite", "NaN or infinite", "; drop those rows")
    if not allow_negative and (ratings < 0).any():
        if allow_negative is None and found_below_zero(ratings):
            warnings.warn(
                f"ratings below 0 are taken as part of the scale: state {hint_at_scale(ratings)} where it is that",
                DataWarning,
                stacklevel=_STACKLEVEL,
            )
            return ratings if ratings.dtype == np.float32 else narrowed(ratings)
        hint = f"; if these are no code for missing, state {hint_at_scale(ratings)}, or pass allow_negative=True"
        _require(ratings >= 0, ratings, "ratings must be >= 0", "negative", f"{hint} (in the shell --negative)")
    return ratings if ratings.dtype == np.float32 else narrowed(ratings)


def as_weights(values: Any, size: int) -> np.ndarray:
    """Return finite weights >= 0 as float64, shape (size,)."""
    weights = as_float(values, "weights")
    if weights.shape != (size,):
        raise DataError(f"expected one weight for each of {size} ratings, found shape {weights.shape}")
    _require(np.isfinite(weights) & (weights >= 0), weights, "weights must be finite and >= 0", "others")
    if size and not weights.any():
        raise DataError("expected at least one weight > 0, found only zeros")
    return weights


def as_timestamps(values: Any, size: int, *, copy: bool = True) -> np.ndarray:
    """Return times as int64 (nanoseconds for dates) or float64, shape (size,)."""
    array = np.asarray(values)
    if array.shape != (size,):
        raise DataError(f"timestamps must be {size} finite numbers or dates, found shape {array.shape}")
    column = pd.Series(array, copy=False).infer_objects()  # dates with a time zone come as objects
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        missing, times = column.isna().to_numpy(), _nanoseconds(column)
    else:
        times = array.astype(np.int64, copy=copy) if array.dtype.kind == "i" else as_float(array, "timestamps")
        missing = ~np.isfinite(times)
    if missing.any():
        raise DataError(
            f"timestamps must be finite numbers or dates, found {missing.sum()} missing, the first in row "
            f"{missing.argmax()}"
        )
    return times


def _nanoseconds(column: pd.Series) -> np.ndarray:
    try:
        return pd.DatetimeIndex(column).as_unit("ns").asi8
    except pd.errors.OutOfBoundsDatetime as error:
        raise DataError(f"timestamps must lie in the years 1677 to 2262, found {error}") from None


def ids_or_range(ids: Iterable[Hashable] | None, size: int, kind: str) -> Iterable[Hashable]:
    """Return ids, one a row or column of a matrix; their numbers where none are given."""
    if ids is None:
        return np.arange(size)
    chosen = list(ids)
    if len(chosen) != size:
        raise DataError(
            f"expected {size} {kind} ids, one per matrix {'row' if kind == 'user' else 'column'}, found {len(chosen)}"
        )
    return chosen
