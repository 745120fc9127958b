"""Groups of users by what is known of them, for figures of each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.features import as_table
from air_recsys.data.ids import IdIndex
from air_recsys.evaluation.elsewhere import alike
from air_recsys.evaluation.rating_errors import groups_of_values

UNKNOWN = "unknown"
_MOST = 30  # groups of an attribute


def groups_of(attributes: Any, ids: np.ndarray) -> tuple[dict[tuple[str, str], np.ndarray], list[str]]:
    """Which users belong to each group, by attribute and group, and a line for each attribute of too many groups.

    Parameters
    ----------
    attributes : DataFrame or Series
        Indexed by user id, or with a column of these.
    ids : ndarray
        Of all users.

    Examples
    --------
    >>> ages = pd.Series([7.0, 8.0, np.nan], index=["ann", "bob", "cid"], name="age")
    >>> {group: mask.tolist() for group, mask in groups_of(ages, np.array(["bob", "cid"], dtype=object))[0].items()}
    {('age', '8'): [True, False], ('age', 'unknown'): [False, True]}
    """
    named = attributes.to_frame(attributes.name or "group") if isinstance(attributes, pd.Series) else attributes
    table = as_table(named, "user", np.empty(0))
    table.index = pd.Index(alike(table.index.to_numpy(), ids))
    IdIndex(ids, "user").check_shared(table.index.to_numpy(), "groups")
    groups, left_out = {}, []
    for name, column in table.reindex(ids).items():
        labels = _labels(column)
        distinct = dict.fromkeys([*labels.categories, UNKNOWN])
        if len(distinct) > _MOST + 1:
            left_out.append(f"groups: {name} has {len(distinct) - 1:,} labels, more than {_MOST}, and is left out")
            continue
        of_users = np.where(labels.codes >= 0, labels.astype(object), UNKNOWN)
        masks = {(str(name), label): of_users == label for label in distinct}
        groups |= {group: mask for group, mask in masks.items() if mask.any()}
    return groups, left_out


def _labels(column: pd.Series) -> pd.Categorical:
    """The group of each value, in the order of values."""
    known = column.dropna()
    if pd.api.types.is_numeric_dtype(known.infer_objects().dtype) and known.dtype.kind != "b" and len(known):
        values = known.to_numpy(dtype=np.float64)
        number = groups_of_values(values)
        ends = [(values[number == each].min(), values[number == each].max()) for each in range(number.max() + 1)]
        names = [f"{low:g}" if low == high else f"{low:g}..{high:g}" for low, high in ends]
        labels = pd.Series([names[each] for each in number], index=known.index)
    else:
        labels = known.astype(str)
        names = sorted(labels.unique())
    return pd.Categorical(labels.reindex(column.index), categories=names)
