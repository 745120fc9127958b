"""Affinities as logarithms: single values, and measurements of pairs with units, limits and repetitions."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from air_recsys.data.columns import joined_relations, named_column, split_signs, time_column
from air_recsys.data.frames import as_pandas
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.exceptions import DataError, DataWarning, quoted
from air_recsys.storage.validation import check_choice

_POWERS = {"M": 0, "mM": 3, "uM": 6, "nM": 9, "pM": 12, "fM": 15}
_SPELLED = {f"{sign}mol/l": f"{sign}M" for sign in ("", "m", "u", "n", "p", "f")}
_LEAST, _LARGEST = 1e-14, 1e-1  # mol/l: tighter and looser than what is measured
_OF_LOGARITHMS, _MANY = 12, 10  # the largest of values that are logarithms already, where they are so many
_NAMED = 5
ROLES = {
    "user": ("user", "drug", "compound", "molecule", "ligand"),
    "item": ("item", "target", "protein", "kinase"),
    "rating": ("rating", "value", "affinity", "standard_value", "kd", "ki", "ic50", "ec50"),
    "relation": ("relation", "standard_relation"),
    "unit": ("unit", "units", "standard_units"),
}
_PRIOR = 4.0  # repetitions whose variance is that of all pairs

Words = tuple[str, str]
Table = TypeVar("Table", pd.Series, pd.DataFrame)


def as_p_affinity(values: Table, unit: str | None = None) -> Table:
    r"""Return :math:`-\log_{10}` of affinities (Kd, Ki, IC50, EC50) in mol/l: pKd, pKi, ...

    A table with a column of drugs (or user) and one of targets (or item) is one of measurements: value, relation and
    unit are further columns. It becomes one with a row a pair, ready for ``AIR.for_ratings().fit``. Relations turn
    with the logarithm: ``> 10000`` nM is ``< 5``. A value may have its sign in front, ``">10000"``. What is measured
    of a pair becomes its mean; where some pairs are repeated, a column weight says how sure that is: w = 2 / (1 + v),
    with the variance v of the mean in units of that of one measurement, as if half of the noise came from repeating.
    Of limits alone the tightest stays, and between one above and one below the middle.

    Parameters
    ----------
    values : Series or DataFrame
        Positive; missing ones stay missing, rows of measurements without one are left out.
    unit : {"M", "mM", "uM", "nM", "pM", "fM"}, optional
        Of all values: nM where not given. Measurements need it, or a column unit (units, standard_units).

    Raises
    ------
    DataError
        For text, numbers that are not positive, and units that are missing or unknown.

    Warns
    -----
    DataWarning
        If rows are below 0.01 pM or above 0.1 M, as if units were mixed, or all are like logarithms already. For
        limits that contradict all that is measured of their pair, or each other: they are left out.

    Examples
    --------
    >>> as_p_affinity(pd.Series([10.0, 10_000.0], ["imatinib", "caffeine"])).to_dict()
    {'imatinib': 8.0, 'caffeine': 5.0}
    >>> columns = ["drug", "target", "value", "unit"]
    >>> measured = [("imatinib", "ABL1", "10", "nM"), ("caffeine", "ABL1", ">10", "uM"), ("imatinib", "KIT", 1, "µM")]
    >>> as_p_affinity(pd.DataFrame(measured, columns=columns))
           user  item  rating relation
    0  caffeine  ABL1     5.0        <
    1  imatinib  ABL1     8.0        =
    2  imatinib   KIT     6.0        =
    """
    if not isinstance(values, pd.Series | pd.DataFrame):
        raise DataError(f"expected affinities as a Series or a DataFrame, found {type(values).__name__}")
    if unit is not None:
        check_choice("unit", unit, tuple(_POWERS))
    if isinstance(values, pd.DataFrame):
        columns = {role: _column(values, names) for role, names in ROLES.items()}
        if columns["user"] is not None and columns["item"] is not None:
            return _of_pairs(values, columns, unit)
    try:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        hint = "; a table with the columns drug, target and value may have signs in front"
        raise DataError(f"expected affinities as numbers, found {error}{hint}") from None
    found: Any = values.astype(np.float64)
    found[:] = _logarithms(numbers, np.full(numbers.shape, 10.0 ** _POWERS[unit or "nM"]), unit or "nM", values.index)
    return found


def as_affinities(given: Any, words: Words) -> Interactions:
    """Return affinities of pairs, with what is known of their limits, weights and times.

    Parameters
    ----------
    given : DataFrame, Interactions, sparse matrix or ndarray
        A table of one pair a row: with a column unit its values are turned as by `as_p_affinity`, else they are
        logarithms already. All else as for `AIR.fit`.
    words : tuple of str
        What the columns of drugs and targets are called, where not as usual.
    """
    given = as_pandas(given)
    if not isinstance(given, pd.DataFrame):
        return as_interactions(given, reads=("timestamp", "weight", "relation"))
    table = given.rename(columns=dict(zip(words, ("user", "item"), strict=True)))
    table = table if _column(table, ROLES["unit"]) is None else as_p_affinity(table)
    columns = {role: _column(table, names) for role, names in ROLES.items() if role != "unit"}
    columns |= {"timestamp": time_column(list(table.columns)), "weight": _column(table, ("weight",))}
    roles: Any = {role: name for role, name in columns.items() if name is not None}
    if not {"user", "item", "rating"} <= roles.keys():
        return as_interactions(given, allow_negative=True, reads=("timestamp", "weight", "relation"))
    return Interactions.from_frame(table, **roles, allow_negative=True)


def _logarithms(numbers: np.ndarray, powers: np.ndarray, unit: str, index: pd.Index) -> np.ndarray:
    wrong = _rows(index, ~(np.isnan(numbers) | ((numbers > 0) & np.isfinite(numbers))))
    if wrong:
        found = f"found others, such as logarithms, in {len(wrong)} rows: {quoted(wrong[:_NAMED])}"
        raise DataError(f"expected positive affinities, {found}")
    molar = numbers / powers
    if strange := _rows(index, (molar < _LEAST) | (molar > _LARGEST)):
        warnings.warn(
            f"{len(strange)} rows have affinities below 0.01 pM or above 0.1 M, as if not all were in {unit}: "
            f"{quoted(strange[:_NAMED])}",
            DataWarning,
            stacklevel=3,
        )
    known, least = numbers[~np.isnan(numbers)], 0 if powers.min(initial=1e9) >= 1e9 else 2  # in uM some are negative
    if known.size >= _MANY and least <= known.min() and known.max() <= _OF_LOGARITHMS:
        told = f"all values lie in {known.min():g}..{known.max():g}, as if they were pKd or another logarithm already"
        warnings.warn(told, DataWarning, stacklevel=3)
    return -np.log10(molar)


def _rows(index: pd.Index, where: np.ndarray) -> list[Any]:
    wrong = where.reshape(len(index), -1).any(axis=1)
    return index[np.flatnonzero(wrong)].tolist()


def _column(table: pd.DataFrame, names: tuple[str, ...]) -> Hashable | None:
    found = (named_column(name, list(table.columns)) for name in names)
    return next((name for name in found if name is not None), None)


def _of_pairs(table: pd.DataFrame, columns: dict[str, Hashable | None], unit: str | None) -> Any:
    """Measurements as a table with a row a pair."""
    if columns["rating"] is None:
        raise DataError(f"expected a column of values, such as value or Kd, found {quoted(list(table.columns))}")
    numbers, signs = split_signs(table[columns["rating"]].to_numpy())
    column = None if columns["relation"] is None else table[columns["relation"]].to_numpy()
    found = joined_relations(signs, column, len(table))
    signs = np.zeros(len(table), np.int8) if found is None else found
    units = _units(table, columns["unit"], unit, numbers)
    values = _logarithms(numbers, units, unit or "their unit", table.index)
    kept = ~np.isnan(values)
    if not kept.all():
        warnings.warn(f"{np.count_nonzero(~kept)} rows without a value are left out", DataWarning, stacklevel=3)
    names: list[Any] = [columns["user"], columns["item"]]
    pairs = table.loc[kept, names].set_axis(["user", "item"], axis=1)
    if (time := time_column(list(table.columns))) is not None:
        pairs[time] = table.loc[kept, time]
    pairs = pairs.reset_index(drop=True)
    if lacking := _rows(table.index[kept], pairs[["user", "item"]].isna().to_numpy()):
        raise DataError(f"expected a drug and a target of each value, found none in rows {quoted(lacking[:_NAMED])}")
    return _merged(pairs.assign(value=values[kept], sign=-signs[kept].astype(np.int64)), time)


def _units(table: pd.DataFrame, column: Hashable | None, unit: str | None, numbers: np.ndarray) -> np.ndarray:
    """The number of each unit in a mol/l."""
    if column is None:
        if unit is None:
            raise DataError("expected the unit of the values: a column unit, or as_p_affinity(table, unit='nM')")
        return np.full(len(table), 10.0 ** _POWERS[unit])
    spelled = table[column].astype("string").str.strip().str.replace("[µμ]", "u", regex=True)
    spelled = spelled.fillna(unit) if unit is not None else spelled
    powers = spelled.replace(_SPELLED).map(_POWERS).to_numpy(dtype=np.float64, na_value=np.nan)
    if wrong := _rows(table.index, np.isnan(powers) & ~np.isnan(numbers)):
        others = quoted(spelled.loc[np.isnan(powers)].dropna().unique().tolist()[:_NAMED])
        raise DataError(
            f"expected the units {', '.join(_POWERS)}, found others ({others}) or none in {len(wrong)} rows: "
            f"{quoted(wrong[:_NAMED])}"
        )
    return 10.0**powers


def _merged(rows: pd.DataFrame, time: Any) -> pd.DataFrame:
    """A row a pair of rows with the columns user, item, value and sign (-1, 0, 1), with its latest time."""
    pairs = rows.groupby(["user", "item"], sort=True)
    number, n = pairs.ngroup().to_numpy(), pairs.ngroups
    values, signs = rows["value"].to_numpy(), rows["sign"].to_numpy()

    def most(sign: int, direction: int) -> np.ndarray:
        found, chosen = np.full(n, -np.inf), signs == sign
        np.maximum.at(found, number[chosen], direction * values[chosen])
        return direction * found

    above, below, measured = most(1, 1), most(-1, -1), signs == 0
    counts = np.bincount(number[measured], minlength=n)
    means = np.bincount(number[measured], values[measured], n) / np.maximum(counts, 1)
    known, has_above = counts > 0, np.isfinite(above)
    between = has_above & np.isfinite(below)
    wrong = np.where(known, (above > most(0, 1)) | (below < most(0, -1)), above >= below)
    limits = np.where(has_above, above, below)
    limits[between] = (above[between] + below[between]) / 2
    signs_of_pairs = np.where(known | between, 0, np.where(has_above, 1, -1))
    relations = np.array(["=", ">", "<"])[signs_of_pairs]
    merged = rows.groupby(number)[["user", "item"]].first()
    merged = merged.assign(rating=np.where(known, means, limits), relation=relations)
    if time is not None:
        merged[time] = rows.groupby(number)[time].max()
    freedom, own_pair = np.maximum(counts - 1, 0), number[measured]
    if freedom.any():
        squares = np.bincount(own_pair, np.square(values[measured] - means[own_pair]), n)
        own = (_PRIOR + squares / (squares.sum() / freedom.sum() or 1.0)) / (_PRIOR + freedom)
        merged["weight"] = 2 / (1 + own / np.maximum(counts, 1))
    if wrong.any():
        named = merged.loc[wrong, ["user", "item"]].head(_NAMED).itertuples(index=False, name=None)
        told = f"limits contradict other measurements of {wrong.sum()} pairs, and are left out"
        warnings.warn(f"{told}: {quoted(list(named))}", DataWarning, stacklevel=5)
    return merged.loc[known | ~wrong].reset_index(drop=True)
