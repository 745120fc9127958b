"""Recorded pairs of drugs and targets: a wide table, a long table, or a container that `Interactions` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.frames import as_pandas
from air_recsys.data.interactions import Interactions, as_interactions
from air_recsys.exceptions import DataError, quoted

_SIDES = (("drug", "target"), ("user", "item"))
_VALUES = ("interaction", "value", "label", "rating")
_SHOWN = 3


def as_pairs(given: Any) -> Interactions:
    """Return recorded pairs, drugs as users and targets as items.

    Parameters
    ----------
    given : DataFrame, Interactions, SciPy sparse or array
        A table is long if it has the columns drug and target (or user and item), in upper or lower case: one pair per
        row, with its value in the column interaction, value, label or rating. Without such a column all of its pairs
        interact. Any other table is wide: one row per drug, named by the index, and one column per target; NaN if
        nothing is recorded. Other containers are read as by `Interactions.from_csr` and `Interactions.from_dense`.
    """
    given = as_pandas(given)
    if not isinstance(given, pd.DataFrame):
        return as_interactions(given)
    names = {str(name).strip().casefold(): name for name in given.columns}
    for drug, target in _SIDES:
        if drug in names and target in names:
            return _long(given, names, drug, target)
    return _wide(given)


def with_ids(data: Interactions, drug_ids: np.ndarray, target_ids: np.ndarray) -> Interactions:
    """Return the pairs with further drugs and targets, of which nothing is recorded.

    Examples
    --------
    >>> pairs = as_pairs(pd.DataFrame({"t1": [1, 0]}, index=["a", "b"]))
    >>> with_ids(pairs, np.array(["b", "c"]), np.array([])).user_ids.tolist()
    ['a', 'b', 'c']
    """
    sides = [index.joined(ids) for index, ids in ((data.users, drug_ids), (data.items, target_ids))]
    if [len(index) for index in sides] == [data.n_users, data.n_items]:
        return data
    return Interactions(
        data.user_index, data.item_index, data.ratings, *(index.ids for index in sides), weights=data.weights
    )


def with_zeros(data: Interactions) -> Interactions:
    """Return the pairs with all others as zeros, where interactions alone are recorded; else the same pairs.

    Examples
    --------
    >>> with_zeros(as_pairs(pd.DataFrame({"drug": ["a", "b"], "target": ["t", "u"]}))).ratings.tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if data.n_ratings == 0 or not data.ratings.all():
        return data
    return Interactions.from_dense(np.nan_to_num(data.to_dense()), data.user_ids, data.item_ids)


def without_evidence(data: Interactions, similarities: Sequence[np.ndarray | None]) -> str:
    """Return a warning of drugs and targets of which neither a pair nor a similarity is known; "" without any."""
    places = (("drug", data.users, data.user_index), ("target", data.items, data.item_index))
    parts = []
    for (kind, index, used), similarity in zip(places, similarities, strict=True):
        idle = np.flatnonzero(np.bincount(used, minlength=len(index)) == 0)
        if similarity is None and idle.size:
            parts.append(f"{idle.size} {kind}(s) have no recorded pair, {quoted(index.ids[idle[:_SHOWN]].tolist())}")
    told = " and ".join(parts)
    return told and f"{told}, and no similarity is given: their scores say nothing"


def _long(table: pd.DataFrame, names: dict[str, Any], drug: str, target: str) -> Interactions:
    values = [names[name] for name in _VALUES if name in names]
    others = [name for key, name in names.items() if key not in (*_VALUES, drug, target)]
    numbers = [name for name in others if pd.api.types.is_numeric_dtype(table[name])]
    if len(values) > 1 or (not values and numbers):
        raise DataError(
            f"expected one column of values named {', '.join(_VALUES[:-1])} or {_VALUES[-1]}, or none where all pairs "
            f"interact, found {quoted(values or numbers)}: rename it, or drop it"
        )
    if values and pd.api.types.is_bool_dtype(table[values[0]]):
        table = table.assign(**{str(values[0]): table[values[0]].astype(float)})
    return Interactions.from_frame(
        table, user=names[drug], item=names[target], rating=values[0] if values else None, duplicates="error"
    )


def _wide(table: pd.DataFrame) -> Interactions:
    if table.empty:
        raise DataError(f"expected one row per drug and one column per target, found a table of shape {table.shape}")
    for kind, labels in (("drug", table.index), ("target", table.columns)):
        twice = labels[labels.duplicated()].unique()
        if len(twice):
            raise DataError(
                f"expected each {kind} once, found {len(twice)} of them again: {quoted(list(twice[:_SHOWN]))}"
            )
    columns = [_numbers(table, name) for name in table.columns]
    return Interactions.from_dense(np.column_stack(columns), table.index, table.columns, allow_negative=True)


def _numbers(table: pd.DataFrame, name: Any) -> np.ndarray:
    """Return a column as numbers, (n_drugs,)."""
    found = table[name]
    numbers = pd.Series(pd.to_numeric(found, errors="coerce"))
    text = np.flatnonzero(numbers.isna() & found.notna())
    if not text.size:
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if name == table.columns[0] and text.size == len(table):
        raise DataError(
            f"expected numbers, found text in the whole first column {name!r}: if it has the names of the drugs, take "
            f"table.set_index({name!r})"
        )
    row = text[0]
    raise DataError(
        f"expected numbers, found {found.iloc[row]!r} for the drug {table.index[row]!r} and the target {name!r}"
    )
