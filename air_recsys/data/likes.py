"""Likes of tables and matrices: who has what, how much of it, and events of other kinds beside that."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from copy import copy
from typing import Any

import numpy as np
import pandas as pd

from air_recsys.data.columns import amount_column, told_kinds, wide_frame
from air_recsys.data.frames import as_pandas
from air_recsys.data.interactions import Interactions, as_interactions, present_columns
from air_recsys.data.repeated import Duplicates
from air_recsys.data.scales import like_of
from air_recsys.exceptions import DataError, DataWarning

LIKED, DISLIKED = "liked", "disliked"  # kinds of ratings
_TEN = 10  # the highest of most grades


def as_likes(
    data: Any,
    *,
    allow_negative: bool = False,
    timed: bool = False,
    target: Hashable = None,
    liked: float | None = None,
) -> Interactions:
    """Return what `as_interactions` does, for models of who has what.

    In a matrix, sparse, dense or a wide DataFrame, a 0 is no like. In a table with one row per pair each row is one,
    whatever its rating. Columns ``weight``, and without ratings one of plays, hours, ..., are its weights. Without a
    column of ratings a repeated like counts once, with the sum of its weights. With `timed` a column ``timestamp`` is
    read where there is one; a repeated like has its latest time.

    Of a table with a column ``kind`` the rows of the kind `target` are likes, and the others stand beside them as
    `Interactions.kinds`; what is repeated within a kind adds up. Of ratings those from `liked` on are likes, and the
    others stand beside them as the kind `DISLIKED`.

    Examples
    --------
    >>> import pandas as pd
    >>> as_likes(pd.DataFrame({"user": ["ann", "bob", "bob"], "item": ["x", "y", "y"]})).n_ratings
    2
    >>> as_likes([[1, 0], [1, 1]]).n_ratings
    3
    """
    if isinstance(data, Interactions):
        data.check_measured()
        if data.kinds is not None and target is not None and data.kinds.target != str(target):
            raise DataError(f"expected events beside the target {target!r}, found {data.kinds.target!r}")
        if liked is not None:
            return data if data.kinds is not None else _divided(data, liked)
        if data.n_ratings and data.ratings.min() <= 0:
            _tell_values_of_likes(data.ratings)
        return data
    data = as_pandas(data)
    if not isinstance(data, pd.DataFrame) or wide_frame(data) is not None:
        matrix = as_interactions(data, allow_negative=allow_negative or liked is not None, missing=0)
        if liked is not None:
            return _divided(matrix, liked)
        ratings = matrix.ratings
        if 2 < ratings.max() <= _TEN and np.mean(ratings <= 1) < 0.5 and (2 * ratings % 1 == 0).all():  # grades
            _tell_values_of_likes(ratings)
        likes = ratings != 0
        return matrix if likes.all() else matrix.select(likes)
    read = present_columns(data, ("timestamp",)) if timed else {}
    if (kind := told_kinds(data)) is not None or (target is not None and present_columns(data, ("kind",))):
        rating, named = ("rating" if present_columns(data, ("rating",)) else None), "kind" if kind is None else kind
        of_kinds: Any = {"weight": amount_column(list(data.columns)), "kind": named, "target": target}
        return Interactions.from_frame(data, rating=rating, **of_kinds, **read, duplicates="sum")
    if not present_columns(data, ("rating",)):
        amount: Any = amount_column(list(data.columns))
        rule: Duplicates = "mean" if amount is None else "sum"
        return Interactions.from_frame(data, rating=None, weight=amount, **read, duplicates=rule).alike()
    read |= present_columns(data, ("weight",))
    likes = Interactions.from_frame(data, **read, allow_negative=allow_negative or liked is not None)
    if liked is not None:
        return _divided(likes, liked)
    _tell_values_of_likes(likes.ratings)
    return likes


def _divided(data: Interactions, liked: float) -> Interactions:
    """Ratings as likes and dislikes, of which there may be none, alike in each."""
    alike, kinds = copy(data), np.where(data.ratings >= liked, LIKED, DISLIKED).astype(object)
    alike.weights = None
    found = alike.divided(kinds, LIKED, "error")
    assert found.kinds is not None
    none = found.without_ratings()
    found.kinds = found.kinds._replace(beside={DISLIKED: none, **found.kinds.beside})
    return found


def _tell_values_of_likes(ratings: np.ndarray) -> None:
    """Warn of ratings that differ, or are none of a like, where each row is one."""
    low, high = ratings.min(), ratings.max()
    if low < high or low <= 0:
        least = ratings[ratings > 0].min() if low <= 0 < high else like_of(ratings)
        share = f"{100 * np.mean(ratings >= least):.0f} % of the ratings"
        mends = [f"leave out the {np.count_nonzero(ratings <= 0)} of 0 or less"] if low <= 0 else []
        if low < high:
            mends.append(f"with liked={least:g} those from {least:g} on are likes ({share}), the others dislikes")
        found = f"found {low:g}..{high:g}: {', or '.join(mends)}"
        told = f"each row counts as one like, by as much as its rating, {found}"
        warnings.warn(told, DataWarning, stacklevel=5)
