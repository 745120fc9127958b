"""Ratings so few that they tell biases at most, and what a posterior takes of them.

Where users and items have hardly more than one rating each, factors fit noise. So the width "auto" is 0 there, the
features "auto" are the numbers of ratings alone, and the variances come from `air_recsys.nn.posterior.components`.
"""

from __future__ import annotations

from air_recsys.data.interactions import Extent
from air_recsys.nn.posterior.features import DEGREES

_FEW = 2.5  # chosen on parts of MovieLens, Flixster and Douban and on made data, see docs/presets.md
_DENSE = 0.1  # share of all pairs; a small matrix that is known for such a part has factors to find
_FEATURES = 100


def is_scarce(data: Extent) -> bool:
    """Return whether there are fewer than 2.5 ratings for every user and item that has one, and for a tenth of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import Interactions
    >>> is_scarce(Interactions.from_dense(np.where(np.eye(100) == 1, 3.0, np.nan)))
    True
    >>> is_scarce(Interactions.from_dense(np.ones((5, 5))))
    False
    """
    users, items = data.n_rated
    return data.n_ratings < min(_FEW * (users + items), _DENSE * users * items)


def features_of(value: int | str, data: Extent) -> int | str:
    """Return which features of the pattern a posterior sees; "auto" is 100, of scarce data the degrees alone.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import Interactions
    >>> features_of("auto", Interactions.from_dense(np.ones((5, 5)))), features_of(7, Interactions.from_dense([[1.0]]))
    (100, 7)
    """
    if value != "auto":
        return value
    return DEGREES if is_scarce(data) else _FEATURES
