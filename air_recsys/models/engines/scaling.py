"""What the size of the data sets: the affine map to the numbers trained on, the width, and the graphs' strength."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from air_recsys.interactions import Interactions

_ALL_PAIRS, _EDGES = 1000, 20  # see docs/sparse-graphs.md
_NARROWEST, _WIDEST, _RATINGS_PER_FACTOR = 20, 40, 2  # see docs/presets.md
_SAME = 1e-12  # relative range of ratings below which they count as equal
_DEVIATION = 1.126  # of the ratings of MovieLens-100K, in whose unit the values of the ratings preset were chosen
_AUTO_STRENGTH = 3.0  # chosen on validation parts of MovieLens, see docs/presets.md


@dataclass(frozen=True)
class Scaling:
    """rating = mean + unit * value.

    Examples
    --------
    >>> scaling = Scaling.of(np.array([2.0, 4.0]), center=True, scale=True)
    >>> scaling.mean, scaling.unit, scaling.forward(np.array([4.0]))
    (3.0, 4.0, array([0.25]))
    """

    mean: float
    unit: float

    @classmethod
    def standard(cls, ratings: np.ndarray) -> Self:
        """Take mean and standard deviation from the ratings; where they hardly vary the unit is 1."""
        return cls(float(ratings.mean()), _deviation(ratings))

    @classmethod
    def of(cls, ratings: np.ndarray, *, center: bool, scale: bool | str) -> Self:
        """Take the mean from the ratings if `center`, and the unit that `scale` says.

        True is the largest absolute rating. "deviation" is the unit in which ratings vary as those of MovieLens-100K
        do. False is 1.
        """
        unit = 1.0
        if scale == "deviation":
            unit = _deviation(ratings, _DEVIATION)
        elif scale:
            unit = float(np.abs(ratings).max()) or 1.0
        return cls(float(ratings.mean()) if center else 0.0, unit)

    def forward(self, ratings: np.ndarray) -> np.ndarray:
        """Return the values that stand for `ratings`."""
        return (ratings - self.mean) / self.unit


def _deviation(ratings: np.ndarray, of_unit: float = 1.0) -> float:
    """Return the unit in which the standard deviation is `of_unit`; where ratings hardly vary it is their largest."""
    largest, deviation = float(np.abs(ratings).max()), float(ratings.std())
    return deviation / of_unit if deviation > _SAME * largest else (largest or 1.0)


def counted_ratings(data: Interactions) -> np.ndarray:
    """Return the ratings whose weight is above 0, which mean and unit are taken from; all where there is none.

    Examples
    --------
    >>> pairs = {"user_index": [0, 1], "item_index": [0, 1], "user_ids": [0, 1], "item_ids": [0, 1]}
    >>> counted_ratings(Interactions(ratings=[3.0, 5.0], weights=[1.0, 0.0], **pairs))
    array([3.])
    """
    counted = None if data.weights is None else data.weights > 0
    return data.ratings if counted is None or not counted.any() else data.ratings[counted]


def width_of(n_factors: int | str | None, data: Interactions, *, by_size: bool) -> int | None:
    """Return the width of a model's factors, None for full width.

    "auto" is 20; `by_size`, for a posterior, which leaves factors idle that bring nothing, it is one for every two
    ratings of the average user or item, from 20 to 40.

    Examples
    --------
    >>> data = Interactions.from_dense(np.ones((100, 100)))
    >>> width_of("auto", data, by_size=True), width_of("auto", data, by_size=False), width_of(7, data, by_size=True)
    (25, 20, 7)
    """
    if n_factors != "auto":
        return None if n_factors is None else int(n_factors)
    wanted = data.n_ratings / (data.n_users + data.n_items) / _RATINGS_PER_FACTOR if by_size else 0.0
    return int(min(max(_NARROWEST, wanted), _WIDEST))


def edges_per_node(value: int | str | None, data: Interactions, n_factors: int | None) -> int | None:
    """Return how many edges a node of a learned graph has, None for all pairs.

    "auto" weighs all pairs at full width and up to 1,000 users and items, as the paper does, and else 20 edges a node.

    Examples
    --------
    >>> small = Interactions.from_dense(np.eye(5))
    >>> edges_per_node("auto", small, None), edges_per_node("auto", small, 2), edges_per_node(7, small, 2)
    (None, 20, 7)
    """
    if value != "auto":
        return None if value is None else int(value)
    full_width = n_factors is None or n_factors >= min(data.n_users, data.n_items)
    return None if full_width and max(data.n_users, data.n_items) <= _ALL_PAIRS else _EDGES


def energy_weight(value: float | str, data: Interactions) -> float:
    """Return m n eta: what an energy weighs against the *sum* of squared errors, in the equations of one row."""
    return data.n_users * data.n_items * graph_strength(value, data)


def graph_strength(value: float | str, data: Interactions) -> float:
    """Return eta; "auto" weighs a user's energy against its ratings alike at every size of the data."""
    if value == "auto":
        return _AUTO_STRENGTH * data.n_ratings / (data.n_users * data.n_items) ** 2
    return float(value)
