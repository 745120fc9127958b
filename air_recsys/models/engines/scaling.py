"""Numbers that follow from the data: the scaling of ratings, the width, edges and strengths of graphs, step sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.nn.posterior.features import DEGREES
from air_recsys.training.plan import LEAST_REFRESH

_EDGES, _EDGES_OF_EXACT = 20, 10  # see benchmarks/reports/graphs.md and accuracy.md
_ALL_PAIRS = 1000  # rows up to which a graph of all pairs takes milliseconds a step
_NARROWEST, _WIDEST, _RATINGS_PER_FACTOR = 20, 40, 2  # see benchmarks/reports/accuracy.md
_SAME = 1e-12  # relative range of ratings below which they count as equal
_DEVIATION = 1.126  # of the ratings of MovieLens-100K, in whose unit the values of the ratings preset were chosen
# Chosen on validation parts of Syn-Netflix and of made matrices, see benchmarks/reports/accuracy.md.
_EPOCHS, _CELLS, _STEP, _START, _TRAVEL = 6000, 30_000, 0.3, 0.03, 30.0
_EXACT, _BEFORE_EXACT, _TRAVEL_BEFORE_EXACT = 60, 600, 12.0
_REFRESH = 100
RESIDUALS = 8.0  # strength of what the item graph carries, see benchmarks/reports/graph-residuals.md
_FULL_WIDTH, _NARROW = 500, 64  # rows and columns up to which a matrix is completed as a whole, and the width above
# Chosen on validation parts of MovieLens, and for factors without biases of IC and GPCR, see the same page.
_AUTO_STRENGTH, _AUTO_STRENGTH_OF_LEVELS = 3.0, 0.5


@dataclass(frozen=True)
class Scaling:
    """rating = mean + unit * value."""

    mean: float
    unit: float

    @classmethod
    def standard(cls, ratings: np.ndarray) -> Self:
        """Take mean and standard deviation from the ratings; where they hardly vary the unit is 1."""
        return cls(float(ratings.mean()), _deviation(ratings))

    @classmethod
    def of_moments(cls, mean: float, deviation: float, largest: float) -> Self:
        """Take the same from mean, standard deviation and largest absolute value of the ratings.

        Examples
        --------
        >>> Scaling.of_moments(3.0, 1.0, 4.0) == Scaling.standard(np.array([2.0, 4.0]))
        True
        """
        return cls(mean, _unit(deviation, largest))

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
        """The values that stand for `ratings`."""
        return (ratings - self.mean) / self.unit


def _deviation(ratings: np.ndarray, of_unit: float = 1.0) -> float:
    """The unit in which the standard deviation of the ratings is `of_unit`."""
    return _unit(float(ratings.std()), float(np.abs(ratings).max()), of_unit)


def _unit(deviation: float, largest: float, of_unit: float = 1.0) -> float:
    """The unit in which a deviation is `of_unit`; where ratings hardly vary it is the largest of them."""
    return deviation / of_unit if deviation > _SAME * largest else (largest or 1.0)


def counted_ratings(data: Interactions) -> np.ndarray:
    """The ratings whose weight is above 0, which mean and unit are taken from; all where there is none.

    Examples
    --------
    >>> pairs = {"user_index": [0, 1], "item_index": [0, 1], "user_ids": [0, 1], "item_ids": [0, 1]}
    >>> counted_ratings(Interactions(ratings=[3.0, 5.0], weights=[1.0, 0.0], **pairs))
    array([3.])
    """
    counted = None if data.weights is None else data.weights > 0
    return data.ratings if counted is None or not counted.any() else data.ratings[counted]


def width_of(n_factors: int | str | None, data: Extent, *, by_size: bool = False, exact: bool = False) -> int | None:
    """The width of a model's factors, None for full width.

    "auto" is 20; `by_size`, for a posterior, which leaves factors idle that bring nothing, it is one for every two
    ratings of the average user or item, from 20 to 40, and 0 where ratings are scarce. For `exact` data, which depth
    and graphs alone regularize, it is full width up to 500 users or items, else 64.
    """
    if n_factors != "auto":
        return None if n_factors is None else int(n_factors)
    if exact:
        return None if min(data.n_users, data.n_items) <= _FULL_WIDTH else _NARROW
    if by_size and is_scarce(data):
        return 0
    wanted = data.n_ratings / (data.n_users + data.n_items) / _RATINGS_PER_FACTOR if by_size else 0.0
    return int(min(max(_NARROWEST, wanted), _WIDEST))


def edges_per_node(value: int | str | None, *, exact: bool = False, n_rows: int | None = None) -> int | None:
    """The number of edges of a node of a learned graph, None for all pairs.

    "auto" is 10 for `exact` data. Else it is 20, and where the number of rows of the larger side is given, which of a
    posterior it is not, all pairs up to 1,000.
    """
    if value != "auto":
        return None if value is None else int(value)
    if exact:
        return _EDGES_OF_EXACT
    return None if n_rows is not None and n_rows <= _ALL_PAIRS else _EDGES


def epochs_of(value: int | str, data: Interactions, exact_epochs: int = 0) -> int:
    """The epochs of a training; "auto" is 6,000 up to 30,000 cells, and fewer, down to 3,000, above.

    Before exact epochs it is 600.
    """
    if not isinstance(value, str):
        return value
    if exact_epochs > 0:
        return _BEFORE_EXACT + exact_epochs
    cells = data.n_users * data.n_items
    return int(min(max(_EPOCHS * math.sqrt(_CELLS / cells), _EPOCHS / 2), _EPOCHS))


def exact_epochs_of(value: int | str, n_epochs: int | str) -> int:
    """The exact epochs of a training that can have some; "auto" is 60, and at most half of its epochs."""
    if not isinstance(value, str):
        return value
    return _EXACT if isinstance(n_epochs, str) else min(_EXACT, n_epochs // 2)


def step_size(value: float | str, data: Interactions, width: int | None, depth: int) -> float:
    """Adam's step size; "auto" is a share of the entries of layers whose product has entries of 1.

    Layers of width r with equal entries e have a product of entries e^L r^(L - 1), which is 1 where
    e = r^(-(L - 1) / L).
    """
    if not isinstance(value, str):
        return float(value)
    return _STEP * (width or min(data.n_users, data.n_items)) ** (-(depth - 1) / depth)


def start_width(value: float | str, data: Interactions, width: int | None, depth: int) -> float:
    """The standard deviation of the factors' start; "auto" starts the entries of the product at 0.03.

    An entry of the product of L layers of width r and deviation s has the deviation s^L r^((L - 1) / 2).
    """
    if not isinstance(value, str):
        return float(value)
    wide = width or min(data.n_users, data.n_items)
    return (_START / wide ** ((depth - 1) / 2)) ** (1 / depth)


def logits_rate(value: float | str, learning_rate: float, n_steps: int, *, exact: bool = False) -> float:
    """The step size of the logits as a multiple of that of the factors.

    "auto" lets them travel by 30 in the whole training, by 12 before exact epochs, and by at most 1 in a step.

    Adam moves a logit by about its step size in every step, however weak the energy: the product of both rates and
    the number of steps decides how far the graphs can narrow.
    """
    travel = _TRAVEL_BEFORE_EXACT if exact else _TRAVEL
    return min(travel / n_steps, 1.0) / learning_rate if isinstance(value, str) else float(value)


def steps_between_choices(value: int | str | None, n_epochs: int) -> int:
    """The epochs between two choices of a sparse graph's edges; None is 100, "auto" a 300th of the training."""
    if isinstance(value, str):
        return max(LEAST_REFRESH, n_epochs // 300)
    return value or _REFRESH


def energy_weight(value: float | str, data: Interactions, *, levels: bool = False) -> float:
    """The weight m n eta of an energy against the *sum* of squared errors, in the equations of one row."""
    return data.n_users * data.n_items * graph_strength(value, data, levels=levels)


def graph_strength(value: float | str, data: Interactions, *, levels: bool = False) -> float:
    """The strength eta; "auto" weighs a user's energy against its ratings alike at every size of the data.

    It is 3 n_ratings / (n_users n_items)^2, and a sixth of that where factors under a weight decay also carry the
    `levels` of users and items, for want of biases: an energy then draws these to each other as well.
    """
    if value == "auto":
        factor = _AUTO_STRENGTH_OF_LEVELS if levels else _AUTO_STRENGTH
        return factor * data.n_ratings / (data.n_users * data.n_items) ** 2
    return float(value)


_CHEAP, _FEWEST_OF_DRAWS = 5.0, 2000  # seconds of one core, and ratings; see benchmarks/reports/accuracy.md
_ROW, _SUM = 3e-7, 8e-11  # seconds of a sweep for each number of a row, and for each number that is summed


def draws_are_cheap(data: Extent, width: int, n_sweeps: int) -> bool:
    """Whether the sweeps that draw take less than about five seconds of one core, by the sizes alone.

    Of rows without factors, and of fewer than 2,000 ratings, none are drawn.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> draws_are_cheap(Interactions.from_dense(np.ones((50, 50))), 20, 80)
    True
    """
    d = width + 1
    seconds = n_sweeps * (_ROW * d * (data.n_users + data.n_items) + _SUM * data.n_ratings * d * (d + 1))
    return width > 0 and data.n_ratings >= _FEWEST_OF_DRAWS and seconds < _CHEAP


_FEW = 2.5  # chosen on parts of MovieLens, Flixster and Douban and on made data, see benchmarks/reports/accuracy.md
_DENSE = 0.1  # share of all pairs; a small matrix that is known for such a part has factors to find
_FEATURES = 100
_MOST_RATED = 0.5  # share of all pairs, above which who rated what says nothing; chosen on training folds of Davis


def is_scarce(data: Extent) -> bool:
    """Whether there are fewer than 2.5 ratings for every user and item that has one, and for a tenth of pairs."""
    users, items = data.n_rated
    return data.n_ratings < min(_FEW * (users + items), _DENSE * users * items)


def features_of(value: int | str, data: Extent) -> int | str:
    """The features of the pattern that a posterior sees; "auto" is 100, of scarce data the degrees alone.

    Where more than half of all pairs are rated it is 0: rows there have the same pattern, and one with few ratings
    would be unlike all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from air_recsys import Interactions
    >>> whole = Interactions.from_dense(np.ones((5, 5)))
    >>> features_of("auto", whole), features_of(7, whole)
    (0, 7)
    """
    if value != "auto":
        return value
    users, items = data.n_rated
    if data.n_ratings > _MOST_RATED * users * items:
        return 0
    return DEGREES if is_scarce(data) else _FEATURES
