"""Groups of users by what is known of them, for figures of each group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.features import as_table
from air_recsys.data.ids import IdIndex, alike
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
        distinct = dict.fromkeys(labels)
        if len(distinct) > _MOST:
            left_out.append(f"groups: {name} has {len(distinct):,} labels, more than {_MOST}, and is left out")
            continue
        of_users = labels.reindex(column.index).fillna(UNKNOWN).to_numpy()
        groups |= {(str(name), label): of_users == label for label in dict.fromkeys([*distinct, *of_users])}
    return groups, left_out


def _labels(column: pd.Series) -> pd.Series:
    """The group of each value that is known, in the order of values."""
    known = column.dropna().infer_objects()
    if known.dtype.kind not in "iuf" or known.empty:
        return known.astype(str).sort_values()
    ordered = known.sort_values()
    groups = ordered.groupby(groups_of_values(ordered.to_numpy(dtype=np.float64)))
    ends = zip(groups.transform("min"), groups.transform("max"), strict=True)
    return pd.Series([f"{low:g}" if low == high else f"{low:g}..{high:g}" for low, high in ends], ordered.index)
