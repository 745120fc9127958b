r"""Given similarities of users and of items as kernels of what scores leave: a part of the scores of a posterior.

Let S be the given similarities of a side, made positive semidefinite with a diagonal of ones, and d the distances of
its learned factors. The kernel of a side is "identity" I, "half" :math:`(I + S) / 2`, or "factors" :math:`S
\circ \exp(-d^2 / \operatorname{median} d^2)`. Scores limited to the range of the ratings leave residuals of the
process of `air_recsys.nn.kronecker.PairProcess`; kernels and noise are those with the lowest error on hidden ratings
of a training without these, and nothing is added where none of them helps there.

Users (items) without ratings have neither factors nor residuals of their own. They follow from the matrix of those
that have, completed by these scores, as `air_recsys.nn.kronecker.RowRegression` over a power of S. Power, noise and
intercept have the lowest error where a row that has ratings is left out. One that is similar to no such row keeps its
score by the posterior.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cached_property

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.graphs.agreement import N_EDGES
from air_recsys.models.carried import CarriedResiduals, agreements
from air_recsys.models.learned import KERNELS, Factors, Kernels
from air_recsys.nn.kronecker import PairProcess, RowRegression, mended, squared_distances, with_unit_diagonal
from air_recsys.nn.residuals import RowProcesses

_PAIRS = ("identity", "factors"), ("factors", "identity"), ("half", "factors"), ("factors", "half")
_NOISES = [4.0**power for power in range(-3, 4)]
_POWERS, _NEW_NOISES = (1, 2, 4), [2.0**power for power in range(-4, 6)]
_MOST_WORK = 4e9  # products of a step of the equations
_FEWEST = 3  # rows with ratings that say something of others
_RATED, _NEW, _OTHER = 0, 1, 2
_LEVEL, _NORMAL = 0.9, 1.6449  # of the errors that deviations hold
Pairs = tuple[np.ndarray, np.ndarray]
Range = tuple[float, float]
New = tuple[int, float, bool]


def takes_kernels(data: Interactions) -> bool:
    """Whether both sides have given similarities, of few enough rows."""
    m, n = data.n_users, data.n_items
    return all(each is not None for each in _given(data)) and m * n * (m + n) <= _MOST_WORK


def _given(data: Interactions) -> tuple[np.ndarray | None, np.ndarray | None]:
    users, items = (None if side is None else side.similarity for side in (data.user_features, data.item_features))
    return users, items


def range_of(data: Interactions) -> Range:
    """The range of the ratings: as stated, else what there is."""
    return data.rating_scale or data.rating_range


def chosen_kernels(
    shown: Interactions, hidden: Interactions, factors: Factors, deviations: np.ndarray, strength: float
) -> tuple[Kernels | None, str]:
    """The kernels with the lowest error on hidden ratings, None where none of them helps, and what was found in words.

    Parameters
    ----------
    shown, hidden : Interactions
    factors : Factors
        Trained on `shown`.
    deviations : ndarray, shape (n_hidden,)
        Of the hidden ratings, by the posterior of that training.
    strength : float
        Of the item graph, which counts where kernels do not.
    """
    low, high = range_of(shown)
    of_shown, of_hidden = ((part.user_index, part.item_index) for part in (shown, hidden))
    scores = factors.scores(*of_hidden)
    residuals = shown.ratings - factors.scores(*of_shown).clip(low, high)
    without = scores + _over_items(shown, factors, of_hidden, strength)

    def errors_of(predicted: np.ndarray) -> np.ndarray:
        return np.square(hidden.misses(predicted.clip(low, high)))

    start = min(errors_of(scores), errors_of(without), key=np.mean)
    tried: list[tuple[np.ndarray, np.ndarray, tuple[str, str, float]]] = []
    sides, shape = _sides(shown, factors), (shown.n_users, shown.n_items)
    of_users, of_items = ({name: side.kernel(name, side.width) for name in KERNELS} for side in sides)
    for users, items in _PAIRS:
        process = PairProcess(of_users[users], of_items[items])
        found = process.coefficients(shape, of_shown, residuals, _NOISES, shown.weights)
        for noise, coefficients in zip(_NOISES, found, strict=True):
            predicted = scores.clip(low, high) + process.of(coefficients)[of_hidden]
            tried.append((errors_of(predicted), predicted, (users, items, noise)))
    errors, predicted, (users, items, noise) = min(tried, key=lambda each: float(each[0].mean()))
    gains = start - errors
    told = f"hidden pairs: MSE {start.mean():.4g} without similarities as kernels, {errors.mean():.4g} with them"
    if gains.mean() <= gains.std() / np.sqrt(gains.size):
        return None, f"{told}, no sure lead"
    told += f" (users {users}, items {items}, noise {noise:g})"
    for name, side in zip(("users", "items"), sides, strict=True):
        if side.negative:
            told += f"; similarities of {name} are not positive semidefinite, {side.negative:.1%} of them left out"
    measured = hidden.measured
    reach = float(np.quantile(abs(predicted - hidden.ratings)[measured] / deviations[measured], _LEVEL)) / _NORMAL
    return Kernels(users, items, noise, reach), told


def settled(kernels: Kernels, data: Interactions, factors: Factors, ratings: np.ndarray, limits: Range) -> Kernels:
    """Chosen kernels after the training, with what rows without ratings follow from; see `KernelResiduals`."""
    sides = _sides(data, factors)
    kernels, known = kernels._replace(widths=(sides[0].width, sides[1].width)), _rated(data)
    has_new = [
        np.count_nonzero(each) >= _FEWEST and side.near(each).any() for side, each in zip(sides, known, strict=True)
    ]
    if not any(has_new):
        return kernels
    values, observed = KernelResiduals(kernels, data, factors, ratings, limits).completed
    return kernels._replace(
        new_users=_of_new_rows(sides[0], known[0], values, observed) if has_new[0] else None,
        new_items=_of_new_rows(sides[1], known[1], values.T, observed.T) if has_new[1] else None,
    )


def _of_new_rows(side: _Side, known: np.ndarray, values: np.ndarray, observed: np.ndarray) -> New:
    """Power, noise and whether with an intercept, by leaving out each of the rows with ratings."""
    errors: dict[New, float] = {}
    for power in _POWERS:
        regression = RowRegression.of(side.power(power)[np.ix_(known, known)], 1.0, intercept=False)
        for noise, intercept in itertools.product(_NEW_NOISES, (False, True)):
            left_out = replace(regression, noise=noise, intercept=intercept).left_out(values)
            errors[power, noise, intercept] = float(np.square(left_out[observed]).mean())
    return min(errors, key=errors.__getitem__)


def _rated(data: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """Which users and which items have ratings."""
    users, items = np.zeros(data.n_users, dtype=bool), np.zeros(data.n_items, dtype=bool)
    users[data.user_index], items[data.item_index] = True, True
    return users, items


def _over_items(shown: Interactions, factors: Factors, pairs: Pairs, strength: float) -> np.ndarray:
    """What the item graph would carry to some pairs, (n,)."""
    if not factors.item_factors.shape[1]:
        return np.zeros(pairs[0].size)
    residuals = shown.ratings - factors.scores(shown.user_index, shown.item_index)
    _, items = agreements(shown, residuals, factors, (0, N_EDGES))
    if items is None:
        return np.zeros(pairs[0].size)
    return CarriedResiduals(shown, residuals, RowProcesses.of_graph(items.graph, strength)).scores(*pairs)


def _sides(data: Interactions, factors: Factors) -> tuple[_Side, _Side]:
    users, items = _given(data)
    return _Side(users, factors.user_factors), _Side(items, factors.item_factors)


class _Side:
    """The given similarities and the learned factors of a side; new rows alone are similar to no others."""

    def __init__(self, similarity: np.ndarray | None, factors: np.ndarray) -> None:
        self._given = None if similarity is None else with_unit_diagonal(similarity)
        self._factors = factors

    @cached_property
    def _mended(self) -> tuple[np.ndarray, float]:
        assert self._given is not None
        return mended(self._given)

    @property
    def negative(self) -> float:
        """The share of the spectrum below 0."""
        return self._mended[1]

    @property
    def width(self) -> float:
        """The median squared distance of the factors, 1 where most are the same."""
        return float(np.median(squared_distances(self._factors))) or 1.0

    def kernel(self, name: str, width: float) -> np.ndarray | None:
        """The kernel of pairs by its name, None for the identity."""
        if name == "identity" or self._given is None:
            return None
        alike = self._mended[0]
        if name == "half":
            return (np.eye(len(alike)) + alike) / 2
        return mended(alike * np.exp(-squared_distances(self._factors) / width))[0]

    def power(self, power: int) -> np.ndarray:
        """The kernel of rows without ratings."""
        assert self._given is not None
        return self._mended[0] if power == 1 else mended(self._given**power)[0]

    def near(self, known: np.ndarray) -> np.ndarray:
        """Which others are similar to one of the known rows, (n,)."""
        if self._given is None:
            return np.zeros(known.size, dtype=bool)
        return (self._given[:, known] > 0).any(axis=1) & ~known


class KernelResiduals:
    """What given similarities add to scores: of pairs whose rows both have ratings, and of others.

    Parameters
    ----------
    kernels : Kernels
    data : Interactions
    factors : Factors
    ratings : ndarray, shape (n_ratings,)
        Those of `data`, without what belongs to their times.
    limits : tuple of float
        The range of the ratings.
    known : KernelResiduals, optional
        Of new rows of one side alone: those of the model that they were folded into.

    All is made when first asked for, for all pairs: there are few, see `takes_kernels`.
    """

    def __init__(
        self,
        kernels: Kernels,
        data: Interactions,
        factors: Factors,
        ratings: np.ndarray,
        limits: Range,
        known: KernelResiduals | None = None,
    ) -> None:
        self._kernels, self._data, self._factors, self._limits = kernels, data, factors, limits
        self._ratings, self._known, self._pairs = ratings, known, (data.user_index, data.item_index)
        self._of_new_items = known is not None and data.items is not known._data.items

    def rows(self, users: np.ndarray) -> np.ndarray:
        """What is added to the scores of some users, for all items, (b, n_items)."""
        return self._added[users]

    def scores(self, users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None) -> np.ndarray:
        """What is added to the score of each pair of indices, (n,); the same at all times."""
        return self._added[users, items]

    def score(self, user: int, item: int) -> float:
        """What is added to the score of one pair."""
        return float(self._added[user, item])

    def shares(self, user: int, item: int, rated: np.ndarray) -> np.ndarray:
        """What the residual of each rated item of a user adds to the score of an item that has ratings, (k,)."""
        if self._of_new_items or self._kind[0][user] or self._kind[1][item]:
            return np.zeros(rated.size)
        near = rated == item if self._process.columns is None else self._process.columns[rated, item]
        return self._coefficients[user, rated] * near

    def deviations(self, posterior: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The deviations of new ratings of pairs of indices, from those of the posterior, (n,)."""
        found = posterior * self._kernels.reach
        of_users, of_items = self._kind[0][users], self._kind[1][items]
        for kinds, deviation in self._new_deviations.items():
            found[(of_users == kinds[0]) & (of_items == kinds[1])] = deviation
        return np.where((of_users == _OTHER) | (of_items == _OTHER), posterior, found)

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        return _sides(self._data, self._factors)

    @cached_property
    def _kind(self) -> list[np.ndarray]:
        """Whether each user, and each item, has ratings, follows from others, or from the posterior alone."""
        if self._known is not None:
            own = [np.where(each, _RATED, _OTHER) for each in _rated(self._data)]
            return [own[0], self._known._kind[1]] if not self._of_new_items else [self._known._kind[0], own[1]]
        kinds, chosen = [], (self._kernels.new_users, self._kernels.new_items)
        for side, known, of_new in zip(self._sides, _rated(self._data), chosen, strict=True):
            near = side.near(known) if of_new else np.zeros_like(known)
            kinds.append(np.where(known, _RATED, np.where(near, _NEW, _OTHER)))
        return kinds

    @cached_property
    def _process(self) -> PairProcess:
        assert self._kernels.widths is not None
        names = self._kernels.users, self._kernels.items
        return PairProcess(*map(_Side.kernel, self._sides, names, self._kernels.widths))

    @cached_property
    def _base(self) -> np.ndarray:
        """The scores of all pairs by factors and biases, (n_users, n_items)."""
        m, n = self._data.n_users, self._data.n_items
        return self._factors.scores(np.repeat(np.arange(m), n), np.tile(np.arange(n), m)).reshape(m, n)

    @cached_property
    def _coefficients(self) -> np.ndarray:
        residuals = self._ratings - self._base.clip(*self._limits)[self._pairs]
        noise = [self._kernels.noise]
        return self._process.coefficients(self._base.shape, self._pairs, residuals, noise, self._data.weights)[0]

    @cached_property
    def _pair_scores(self) -> np.ndarray:
        return self._base.clip(*self._limits) + self._process.of(self._coefficients)

    @cached_property
    def completed(self) -> tuple[np.ndarray, np.ndarray]:
        """Ratings, else scores, less the mean, and where there are ratings: of users and items that have some."""
        values, observed = self._pair_scores.clip(*self._limits), np.zeros(self._base.shape, dtype=bool)
        values[self._pairs], observed[self._pairs] = self._ratings, True
        known = np.ix_(*(kind == _RATED for kind in self._kind))
        return values[known] - self._factors.mean, observed[known]

    @cached_property
    def _regressions(self) -> list[tuple[RowRegression, np.ndarray] | None]:
        """Of users and items that follow from others: from whom, and their kernel with these; None without such."""
        if self._known is not None:
            users, items = self._known._regressions
            return [users, None] if self._of_new_items else [None, items]
        found, chosen = [], (self._kernels.new_users, self._kernels.new_items)
        for side, kind, of_new in zip(self._sides, self._kind, chosen, strict=True):
            if of_new is None or not (kind == _NEW).any():
                found.append(None)
                continue
            kernel, known = side.power(of_new[0]), kind == _RATED
            regression = RowRegression.of(kernel[np.ix_(known, known)], of_new[1], intercept=of_new[2])
            found.append((regression, kernel[np.ix_(kind == _NEW, known)]))
        return found

    @cached_property
    def _new_deviations(self) -> dict[tuple[int, int], float]:
        """The deviations of ratings of pairs by the kinds of both: of the errors where known rows are left out."""
        if self._known is not None:
            return self._known._new_deviations
        (values, observed), (users, items) = self.completed, self._regressions
        left_out = {}
        if users is not None:
            left_out[_NEW, _RATED] = users[0].left_out(values)
        if items is not None:
            left_out[_RATED, _NEW] = items[0].left_out(values.T).T
        if users is not None and items is not None:
            predicted = values - left_out[_NEW, _RATED]
            left_out[_NEW, _NEW] = values - predicted + items[0].left_out(predicted.T).T
        return {key: float(np.quantile(abs(each[observed]), _LEVEL)) / _NORMAL for key, each in left_out.items()}

    @cached_property
    def _added(self) -> np.ndarray:
        """What is added to the scores of all pairs, (n_users, n_items)."""
        found, mean, (values, _), (users, items) = (
            self._pair_scores.copy(),
            self._factors.mean,
            self.completed,
            self._regressions,
        )
        of_users, of_items = self._kind
        if users is not None and (of_users == _NEW).any():
            values_of_new = users[0].of_new(users[1], values)
            found[np.ix_(of_users == _NEW, of_items == _RATED)] = values_of_new + mean
            if items is not None:
                found[np.ix_(of_users == _NEW, of_items == _NEW)] = items[0].of_new(items[1], values_of_new.T).T + mean
        if items is not None and (of_items == _NEW).any():
            found[np.ix_(of_users == _RATED, of_items == _NEW)] = items[0].of_new(items[1], values.T).T + mean
        is_other = (of_users == _OTHER)[:, None] | (of_items == _OTHER)
        return np.where(is_other, 0.0, found - self._base)
