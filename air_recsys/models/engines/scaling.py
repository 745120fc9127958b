"""What the size of the data sets: the affine map to the numbers trained on, the width, and the graphs' strength."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from air_recsys.interactions import Interactions

_ALL_PAIRS, _EDGES = 1000, 20  # see docs/sparse-graphs.md
_NARROWEST, _WIDEST, _RATINGS_PER_FACTOR = 20, 40, 2  # see docs/presets.md
_SAME = 1e-12  # relative range of ratings below which they count as equal
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
        deviation = float(ratings.std())
        return cls(float(ratings.mean()), deviation if deviation > _SAME * np.abs(ratings).max() else 1.0)

    @classmethod
    def of(cls, ratings: np.ndarray, *, center: bool, scale: bool) -> Self:
        """Take the mean from the ratings if `center`, and their largest absolute value as unit if `scale`."""
        largest = float(np.abs(ratings).max())
        return cls(float(ratings.mean()) if center else 0.0, largest if scale and largest > 0 else 1.0)

    def forward(self, ratings: np.ndarray) -> np.ndarray:
        """Return the values that stand for `ratings`."""
        return (ratings - self.mean) / self.unit


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
