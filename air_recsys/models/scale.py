"""What new ratings have to keep to: the rules of `fit`, and the scale of the training data."""

from __future__ import annotations

import numpy as np

from air_recsys.data.scales import outside_of
from air_recsys.exceptions import DataError
from air_recsys.models.rows import Folded
from air_recsys.models.state import FittedState


def check_on_scale(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for ratings that the training data could not hold.

    These are ratings outside of the scale that was stated, else of what `fit` saw, smallest to largest. Where all that
    it saw are equal there is no scale, and only negative ones are refused.
    """
    low, high = state.rating_scale
    if low < high:
        outside = ratings[outside_of(ratings, (low, high))]
        if outside.size:
            raise DataError(
                f"expected ratings in {low:g}..{high:g} (the scale of the training data), found {outside[0]:g}; "
                "clip them to rating_scale_, or fit again with rating_scale=(low, high)"
            )
    check_signs(state, ratings)


def check_signs(state: FittedState, ratings: np.ndarray) -> None:
    """Raise `DataError` for negative ratings where the training data had none."""
    negative = ratings[ratings < 0]
    if negative.size and state.rating_scale[0] >= 0:
        raise DataError(f"ratings must be >= 0, as those of the training data are, found {negative[0]:g}")


def check_finite(folded: Folded) -> None:
    """Raise `DataError` where factors or biases left the finite numbers."""
    if not all(np.isfinite(array).all() for array in folded):
        raise DataError("expected ratings and weights near those of the training data, found too large ones")
