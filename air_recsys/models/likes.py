"""Likes alone: pairs that are recorded and say no more than that they are."""

from __future__ import annotations

import warnings

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataWarning


def only_likes(data: Interactions) -> bool:
    """Return whether only positive pairs are recorded: all values equal and above 0, and pairs that have none.

    Examples
    --------
    >>> import numpy as np
    >>> only_likes(Interactions.from_dense([[1, np.nan], [np.nan, 1]]))
    True
    >>> only_likes(Interactions.from_dense([[1, 0], [0, 1]])), only_likes(Interactions.from_dense([[4, 4], [4, 4]]))
    (False, False)
    """
    return _is_constant(data) and data.ratings[0] > 0 and data.density < 1


def warn_if_constant(data: Interactions, stacklevel: int = 3) -> None:
    """Warn of ratings that are all equal, which teach most engines nothing; likes have models of their own."""
    if _is_constant(data):
        warn_of_constant(data.n_ratings, data.ratings[0], likes=only_likes(data), stacklevel=stacklevel + 1)


def warn_of_constant(n_ratings: int, value: float, *, likes: bool, stacklevel: int) -> None:
    """Warn of so many ratings that are all equal to a value."""
    advice = (
        "; only positive pairs are recorded: to rank by likes take AIR.for_likes(), or ImplicitAIR of "
        "air_recsys.adapters.implicit, or set unobserved_weight > 0 of Adam"
    )
    warnings.warn(
        f"all {n_ratings} rating(s) equal {value:g}: nothing tells good pairs from bad ones"
        + (advice if likes else ""),
        DataWarning,
        stacklevel=stacklevel,
    )


def _is_constant(data: Interactions) -> bool:
    return bool(data.ratings.min() == data.ratings.max())
