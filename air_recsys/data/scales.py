"""The scale of ratings: the values between which they lie, and codes for missing that look like ratings."""

from __future__ import annotations

from typing import Any

import numpy as np

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.validation import check_real

Scale = tuple[float, float]
_ROUNDING = 1e-6  # share of the scale by which a rating may lie outside: numbers that were float32 once
_OUTSIDE = 0.1  # share of test ratings beyond the training ratings that chance does not explain
_BY_CHANCE = 0.01  # largest probability of what chance does not explain
_FEW = 5  # test ratings that may all be equal
_CODES = (99.0, 255.0, 999.0, 9999.0, 99999.0)
_FEWEST = 5  # other numbers, beside which one is far


def as_scale(rating_scale: Any) -> Scale:
    """Return the ends of a scale that a caller states, or raise `ParameterError` unless these are two numbers."""
    if not isinstance(rating_scale, tuple | list) or len(rating_scale) != 2:
        raise ParameterError(f"rating_scale must be (lowest, highest), found {rating_scale!r}")
    low, high = (check_real("an end of rating_scale", end, minimum=-np.inf) for end in rating_scale)
    if low >= high:
        raise ParameterError(f"rating_scale must be (lowest, highest), found {rating_scale!r}")
    return low, high


def like_of(ratings: np.ndarray) -> float:
    """The least rating that is a like: the least one not below the mean of all.

    Examples
    --------
    >>> like_of(np.array([1.0, 3.0, 4.0, 4.0, 5.0])), like_of(np.array([0.1, 0.1, 0.1]))
    (4.0, 0.1)
    """
    return float(ratings[ratings >= min(ratings.mean(), ratings.max())].min())


def outside_of(ratings: np.ndarray, scale: Scale) -> np.ndarray:
    """Return the positions of the ratings that are not on a scale, up to rounding."""
    margin = _ROUNDING * (scale[1] - scale[0])
    return np.flatnonzero((ratings < scale[0] - margin) | (ratings > scale[1] + margin))


def told_of_test(ratings: np.ndarray, scale: Scale) -> str:
    """Say where test ratings seem to be on another scale than those of the training, or all equal; else "".

    Beside likes, all of which are equal, those of 0 or less are told.
    """
    if scale[0] == scale[1] > 0 >= ratings.min():
        return f"{np.count_nonzero(ratings <= 0)} test ratings are 0 or less, and count as likes: leave them out"
    all_equal = ratings.size >= _FEW and np.ptp(ratings) == 0
    some = max(_OUTSIDE * ratings.size, 2)
    if scale[0] == scale[1] or not (all_equal or outside_of(ratings, scale).size > some):
        return ""
    found = f"{ratings.min():g}..{ratings.max():g}, those of the training in {scale[0]:g}..{scale[1]:g}"
    return f"test ratings are in {found}: likes, or another scale?"


def told_of_new(ratings: np.ndarray, known: np.ndarray) -> str:
    """Say where new ratings may be likes: three or more, all 1, where by chance they would hardly be so; else ""."""
    if (
        ratings.size < 3
        or known.max() <= 1
        or (ratings != 1).any()
        or np.mean(known == 1) ** ratings.size > _BY_CHANCE
    ):
        return ""
    return f"all {ratings.size} new ratings are 1, those of the training in {known.min():g}..{known.max():g}: likes?"


def check_stated(ratings: np.ndarray, scale: Scale) -> None:
    """Raise `DataError` for ratings outside of a scale that the caller states."""
    rows = outside_of(ratings, scale)
    if rows.size:
        first = f"{ratings[rows[0]]:g}"
        raise DataError(
            f"expected ratings in {scale[0]:g}..{scale[1]:g} (rating_scale), found {rows.size} outside, the first in "
            f"row {rows[0]}: {first}; drop those that stand for missing (in the shell --missing {first})"
        )


def check_no_code(ratings: np.ndarray) -> None:
    """Raise `DataError` where ratings hold a code for missing: 99, 255, 999, ... or -99, ..., far from all others.

    Far is further from the nearest of the others than these are from each other. Ratings that are all equal have no
    scale.
    """
    low, high, code = _without_code(ratings)
    if code is None:
        return
    ends = min(low, code), max(high, code)
    found = f"{np.count_nonzero(ratings == code)} of {ratings.size} to be {code:g}"
    raise DataError(
        f"expected ratings of one scale, found {found}, where all others lie in {low:g}..{high:g}: drop them if they "
        f"stand for missing (in the shell --missing {code:g}), or state rating_scale=({ends[0]:g}, {ends[1]:g})"
    )


def found_below_zero(ratings: np.ndarray) -> bool:
    """Return whether finite ratings, some of them negative, lie on a scale that has negative ones.

    They do where several values are negative, or the only one is the largest value with the other sign. A single other
    one is mostly a code for missing, such as -1 beside 1..10.
    """
    check_no_code(ratings)
    below = ratings[ratings < 0]
    return bool(below.min() < below.max() or ratings.max() == -below[0])


def hint_at_scale(ratings: np.ndarray) -> str:
    """Return how to state the scale of finite ratings, codes for missing left out."""
    low, high, _ = _without_code(ratings)
    return f"rating_scale=({low:g}, {high:g}) (in the shell --rating-scale={low:g},{high:g})"


def code_among(numbers: np.ndarray) -> float | None:
    """Return the end of some numbers that is probably a code for missing: 0, -1, 99, ... far from all others.

    Examples
    --------
    >>> code_among(np.array([0.0, 1990, 1991, 1999, 2000, 2003])), code_among(np.array([-1.0, 20, 30, 41, 52, 60]))
    (0.0, -1.0)
    """
    for code in (numbers.min(), numbers.max()):
        others = numbers[numbers != code]
        if abs(code) in (0, 1, 9, *_CODES) and np.unique(others).size >= _FEWEST:
            gap = max(others.min() - code, code - others.max())
            if gap > np.ptp(others) or (code == -1 and others.min() >= 0):
                return float(code)
    return None


def _without_code(ratings: np.ndarray) -> tuple[float, float, float | None]:
    """Return the smallest and the largest rating, and a code for missing that is none of them."""
    for code, is_top in ((ratings.max(), True), (ratings.min(), False)):
        others = ratings[ratings != code]
        if abs(code) in _CODES and others.size:
            low, high = others.min(), others.max()
            if low < high and (code - high if is_top else low - code) > high - low:
                return float(low), float(high), float(code)
    return float(ratings.min()), float(ratings.max()), None
