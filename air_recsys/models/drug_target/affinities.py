"""Affinities as logarithms."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import check_choice

_POWERS = {"M": 0, "mM": 3, "uM": 6, "nM": 9, "pM": 12}
_LEAST, _LARGEST = 1e-14, 1e-1  # mol/l: tighter and looser than what is measured
_OF_LOGARITHMS, _MANY = 12, 10  # the largest of values that are logarithms already, where they are so many
_NAMED = 5

Table = TypeVar("Table", pd.Series, pd.DataFrame)


def as_p_affinity(values: Table, unit: str = "nM") -> Table:
    r"""Return :math:`-\log_{10}` of affinities (Kd, Ki, IC50, EC50) in mol/l: pKd, pKi, ...

    Parameters
    ----------
    values : Series or DataFrame
        Positive; missing ones stay missing.
    unit : {"M", "mM", "uM", "nM", "pM"}

    Raises
    ------
    DataError
        For text, and numbers that are not positive.

    Warns
    -----
    DataWarning
        If rows are below 0.01 pM or above 0.1 M, as if units were mixed, or all are like logarithms already.

    Examples
    --------
    >>> as_p_affinity(pd.Series([10.0, 10_000.0], ["imatinib", "caffeine"])).to_dict()
    {'imatinib': 8.0, 'caffeine': 5.0}
    """
    check_choice("unit", unit, tuple(_POWERS))
    if not isinstance(values, pd.Series | pd.DataFrame):
        raise DataError(f"expected affinities as a Series or a DataFrame, found {type(values).__name__}")
    try:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise DataError(f"expected affinities as numbers, found {error}") from None
    wrong = _rows(values.index, ~(np.isnan(numbers) | ((numbers > 0) & np.isfinite(numbers))))
    if wrong:
        found = f"found others, such as logarithms, in {len(wrong)} rows: {quoted(wrong[:_NAMED])}"
        raise DataError(f"expected positive affinities, {found}")
    molar = numbers / 10.0 ** _POWERS[unit]
    if strange := _rows(values.index, (molar < _LEAST) | (molar > _LARGEST)):
        warnings.warn(
            f"{len(strange)} rows have affinities below 0.01 pM or above 0.1 M, as if not all were in {unit}: "
            f"{quoted(strange[:_NAMED])}",
            DataWarning,
            stacklevel=2,
        )
    known = numbers[~np.isnan(numbers)]
    least = 0 if unit in ("nM", "pM") else 2  # in larger units logarithms are negative
    if known.size >= _MANY and least <= known.min() and known.max() <= _OF_LOGARITHMS:
        told = f"all values lie in {known.min():g}..{known.max():g}, as if they were pKd or another logarithm already"
        warnings.warn(told, DataWarning, stacklevel=2)
    found: Any = values.astype(np.float64)
    found[:] = -np.log10(molar)
    return found


def _rows(index: pd.Index, where: np.ndarray) -> list[Any]:
    wrong = where.reshape(len(index), -1).any(axis=1)
    return index[np.flatnonzero(wrong)].tolist()
