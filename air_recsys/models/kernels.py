r"""Given similarities of users and of items as kernels of what scores leave: a part of the scores of a posterior.

Let S be the given similarities of a side, made positive semidefinite with a diagonal of ones, and d the distances of
its learned factors. The kernel of a side is "identity" I, "half" :math:`(I + S) / 2`, or "factors" :math:`S
\circ \exp(-d^2 / \operatorname{median} d^2)`. Scores limited to the range of the ratings leave residuals of the
process of `air_recsys.nn.kronecker.PairProcess`; kernels and noise are those with the lowest error on hidden ratings
of a training without these, and nothing is added where none of them helps there.

Users (items) without ratings have neither factors nor residuals of their own. They follow from the matrix of those
that have, completed by these scores, as `air_recsys.nn.kronecker.RowRegression` over a power of S or its profiles.
Power, noise and intercept have the lowest error where a row that has ratings is left out; profiles need a lead of two
standard errors. One that is similar to no such row keeps its score by the posterior. Described rows that came after
the training follow from the trained ones likewise, and their own ratings correct that, see
`air_recsys.nn.kronecker.RowErrors`; answers of trained rows stay.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from air_recsys.data.features import Features
from air_recsys.data.interactions import Interactions
from air_recsys.graphs.agreement import N_EDGES
from air_recsys.models.carried import CarriedResiduals, agreements
from air_recsys.models.learned import KERNELS, Factors, Kernels, NewRows
from air_recsys.nn.kronecker import (
    PairProcess,
    RowErrors,
    RowRegression,
    mended,
    profiles,
    squared_distances,
    with_unit_diagonal,
)
from air_recsys.nn.residuals import RowProcesses

_PAIRS = ("identity", "factors"), ("factors", "identity"), ("half", "factors"), ("factors", "half")
_NOISES = [4.0**power for power in range(-3, 4)]
_POWERS, _NEW_NOISES = (1, 2, 4), [2.0**power for power in range(-4, 6)]
_MOST_WORK = 4e9  # products of a step of the equations
_SURE = 2.0  # standard errors of a gain
_FEWEST = 3  # rows with ratings that say something of others
_RATED, _NEW, _OTHER = 0, 1, 2
_FEW = 0.1  # of the ratings of the median row, below which rows follow from others; see benchmarks/reports/accuracy.md
_LEVEL, _NORMAL = 0.9, 1.6449  # of the errors that deviations hold
Pairs = tuple[np.ndarray, np.ndarray]
Range = tuple[float, float]


def takes_kernels(data: Interactions) -> bool:
    """Whether both sides have given similarities, of few enough rows."""
    m, n = data.n_users, data.n_items
    return all(each is not None for each in _given(data)) and m * n * (m + n) <= _MOST_WORK


def _given(data: Interactions) -> tuple[np.ndarray | None, np.ndarray | None]:
    users, items = (None if side is None else side.similarity for side in (data.user_features, data.item_features))
    return users, items


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
    low, high = shown.rating_scale or shown.rating_range
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
    kernels, known = kernels._replace(widths=(sides[0].width, sides[1].width)), _counts(data)
    has_new = [
        np.count_nonzero(each) >= _FEWEST and (side.takes_later or (side.near(each) & ~each).any())
        for side, each in zip(sides, map(_well, known, sides), strict=True)
    ]
    if not any(has_new):
        return kernels
    values, observed = KernelResiduals(kernels, data, factors, ratings, limits).completed
    return kernels._replace(
        new_users=_of_new_rows(sides[0], known[0] > 0, values, observed) if has_new[0] else None,
        new_items=_of_new_rows(sides[1], known[1] > 0, values.T, observed.T) if has_new[1] else None,
    )


def _of_new_rows(side: _Side, known: np.ndarray, values: np.ndarray, observed: np.ndarray) -> NewRows:
    """How rows follow from others, by leaving out each of the rows with ratings; by profiles if that surely helps."""
    best: list[tuple[NewRows, np.ndarray]] = []
    for by_profiles in (False, True):
        errors: dict[NewRows, np.ndarray] = {}
        for power in _POWERS:
            among = side.power(power)[np.ix_(known, known)]
            regression = RowRegression.of(among, 1.0, intercept=False, by_profiles=by_profiles)
            for noise, intercept in itertools.product(_NEW_NOISES, (False, True)):
                left_out = replace(regression, noise=noise, intercept=intercept).left_out(values)
                errors[NewRows(power, noise, intercept, by_profiles)] = (np.square(left_out) * observed).sum(axis=1)
        best.append(min(errors.items(), key=lambda each: float(each[1].sum())))
    gains = best[0][1] - best[1][1]
    return best[int(gains.mean() > _SURE * gains.std() / np.sqrt(gains.size))][0]


def _counts(data: Interactions) -> tuple[np.ndarray, np.ndarray]:
    """The number of ratings of each user and of each item."""
    return np.bincount(data.user_index, minlength=data.n_users), np.bincount(data.item_index, minlength=data.n_items)


def _well(counts: np.ndarray, side: _Side) -> np.ndarray:
    """Which rows have ratings enough, by those of the training, to follow from factors and teach others."""
    first = counts[: side.n_first]
    return counts >= max(1.0, _FEW * float(np.median(first[first > 0]))) if first.any() else counts > 0


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
    users, items = data.user_features, data.item_features
    return _Side(users, factors.user_factors), _Side(items, factors.item_factors)


class _Side:
    """The given similarities and the learned factors of a side; new rows alone are similar to no others."""

    def __init__(self, features: Features | None, factors: np.ndarray) -> None:
        similarity = None if features is None else features.similarity
        self._given = None if similarity is None else with_unit_diagonal(similarity)
        self._factors, self.takes_later = factors, features is not None and features.described is not None
        self.n_first = len(factors) - (0 if features is None else features.n_later)  # rows of the training

    def _mend(self, kernel: np.ndarray) -> tuple[np.ndarray, float]:
        """A kernel made positive semidefinite where it is of rows of the training, which later ones leave as it is."""
        first, whole = slice(self.n_first), kernel.copy()
        whole[first, first], negative = mended(kernel[first, first])
        return whole, negative

    @cached_property
    def _mended(self) -> tuple[np.ndarray, float]:
        assert self._given is not None
        return self._mend(self._given)

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
        return self._mend(alike * np.exp(-squared_distances(self._factors) / width))[0]

    def power(self, power: int) -> np.ndarray:
        """The kernel of rows without ratings."""
        assert self._given is not None
        return self._mended[0] if power == 1 else self._mend(self._given**power)[0]

    def near(self, known: np.ndarray) -> np.ndarray:
        """Which rows are similar to one of the known rows of the training, (n,)."""
        if self._given is None:
            return np.zeros(known.size, dtype=bool)
        return np.any(self._given[:, : self.n_first][:, known[: self.n_first]] > 0, axis=1)


class _NewRows(NamedTuple):
    """Rows of a side that follow from others, over the rows of the other side that have ratings."""

    regression: RowRegression
    near: np.ndarray  # (k, n_sources), the kernel with those that they follow from
    sources: np.ndarray  # (n_sources, n), the values of these
    errors: RowErrors
    places: Pairs  # of their own ratings
    own: np.ndarray  # these, less what the others say
    weights: np.ndarray
    values: np.ndarray  # (k, n), expected
    deviations: np.ndarray  # (k, n), of new ratings

    @classmethod
    def of(
        cls,
        regression: RowRegression,
        near: np.ndarray,
        sources: np.ndarray,
        errors: RowErrors,
        places: Pairs,
        ratings: np.ndarray,
        weights: np.ndarray,
        signs: np.ndarray,
    ) -> Self:
        """What is expected of them, by others and by their own ratings and limits."""
        values = regression.of_new(near, sources)
        own, deviations = ratings - values[places], np.empty_like(values)
        for row in range(len(values)):
            chosen = places[0] == row
            columns = places[1][chosen]
            own[chosen], weights[chosen] = errors.of_limits(columns, own[chosen], weights[chosen], signs[chosen])
            added, deviations[row] = errors.given(columns, own[chosen], weights[chosen])
            values[row] += added
        return cls(regression, near, sources, errors, places, own, weights, values, deviations)

    def shares(self, row: int, column: int) -> np.ndarray:
        """What the own rating at each column adds to the value of a row at one, (n,)."""
        chosen, found = self.places[0] == row, np.zeros(self.values.shape[1])
        columns = self.places[1][chosen]
        found[columns] = self.errors.shares(columns, self.own[chosen], self.weights[chosen], column)
        return found


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
        self._all_ratings, self._known = ratings, known
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
        kind, new = self._kind[0][user], self._new[0]
        if self._of_new_items or kind == _OTHER or self._kind[1][item]:
            return np.zeros(rated.size)
        if kind == _NEW:
            assert new is not None
            found = np.zeros(self._data.n_items)
            found[self._kind[1] == _RATED] = new.shares(self._place(0, _NEW)[user], self._place(1, _RATED)[item])
            return found[rated]
        near = rated == item if self._process.columns is None else self._process.columns[rated, item]
        return self._coefficients[user, rated] * near

    def by_users(self, user: int, item: int) -> tuple[np.ndarray, np.ndarray]:
        """What other users add to the score of an item that has ratings, and how similar they are, (n,) each."""
        whole, kind = self._known or self, self._kind[0][user]
        found, alike = np.zeros((2, whole._base.shape[0]))
        if self._of_new_items or kind == _OTHER or self._kind[1][item]:
            return found, alike
        if kind == _NEW:
            new, row, sources = self._new[0], self._place(0, _NEW)[user], whole._kind[0] == _RATED
            assert new is not None
            column = new.sources[:, self._place(1, _RATED)[item]]
            found[sources], alike[sources] = new.regression.shares(new.near[row], column), new.near[row]
        elif self._known is None and self._process.rows is not None:
            alike = self._process.rows[user] * (np.arange(found.size) != user)
            columns, own = self._process.columns, self._coefficients[:, item]
            found = alike * (own if columns is None else self._coefficients @ columns[item])
        return found, alike

    def deviations(self, posterior: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """The deviations of new ratings of pairs of indices, from those of the posterior, (n,)."""
        found = posterior * self._kernels.reach
        of_users, of_items = self._kind[0][users], self._kind[1][items]
        both = (of_users == _NEW) & (of_items == _NEW)
        for side, (new, own, other) in enumerate(
            zip(self._new, (of_users, of_items), (of_items, of_users), strict=True)
        ):
            chosen = (own == _NEW) & (other == _RATED)
            if new is not None and chosen.any():
                rows, columns = (each[chosen] for each in (users, items)[:: 1 - 2 * side])
                rows, columns = self._place(side, _NEW)[rows], self._place(1 - side, _RATED)[columns]
                known = new.deviations.mean(axis=1)[rows] if self._of_known(side) else new.deviations[rows, columns]
                found[chosen] = known
        found[both] = self._new_deviation if both.any() else 0.0
        return np.where((of_users == _OTHER) | (of_items == _OTHER), posterior, found)

    @cached_property
    def _sides(self) -> tuple[_Side, _Side]:
        return _sides(self._data, self._factors)

    @cached_property
    def _kind(self) -> list[np.ndarray]:
        """Whether each user, and each item, has ratings enough, follows from others, or from the posterior alone."""
        if self._known is None:
            return [self._kind_of(0), self._kind_of(1)]
        return [self._known._kind[side] if self._of_known(side) else self._kind_of(side) for side in (0, 1)]

    def _kind_of(self, side: int) -> np.ndarray:
        """Rows of the training follow from others where they have few ratings, and those that came later always."""
        counts, near, own = _counts(self._data)[side], np.zeros(self._base.shape[side], dtype=bool), self._sides[side]
        if (self._kernels.new_users, self._kernels.new_items)[side] is not None:
            well = _well(counts, own)
            near = own.near(well) if self._known is None else np.any(self._across(side) > 0, axis=1)
            near[: own.n_first] &= ~well[: own.n_first]
        return np.where(near, _NEW, np.where(counts > 0, _RATED, _OTHER))

    def _of_known(self, side: int) -> bool:
        """Whether the rows of a side are those of the model that new ones were folded into."""
        return self._known is not None and side != int(self._of_new_items)

    def _across(self, side: int) -> np.ndarray:
        """The similarities of new rows alone to those of the model that teach others, (k, n_sources)."""
        assert self._known is not None
        new, trained = ((each.user_features, each.item_features)[side] for each in (self._data, self._known._data))
        kept = self._known._kind[side] == _RATED
        if new is None or trained is None or new.described is None or trained.described is None:
            return np.zeros((self._base.shape[side], np.count_nonzero(kept)))
        across = trained.described.across(new.described).astype(np.float32)  # as they are kept of known rows
        return across[:, kept].astype(np.float64)

    def _place(self, side: int, kind: int) -> np.ndarray:
        """The number of each row among those of a kind."""
        return np.cumsum(self._kind[side] == kind) - 1

    @cached_property
    def _kept(self) -> np.ndarray:
        """Which ratings the process of pairs is of: those of rows that do not follow from others."""
        users, items = self._data.user_index, self._data.item_index
        return (self._kind[0][users] == _RATED) & (self._kind[1][items] == _RATED)

    @cached_property
    def _pairs(self) -> Pairs:
        return self._data.user_index[self._kept], self._data.item_index[self._kept]

    @property
    def _ratings(self) -> np.ndarray:
        return self._all_ratings[self._kept]

    @cached_property
    def _process(self) -> PairProcess:
        assert self._kernels.widths is not None
        sides = zip(self._sides, (self._kernels.users, self._kernels.items), self._kernels.widths, strict=True)
        return PairProcess(
            *(
                self._known._process[number] if self._known and self._of_known(number) else side.kernel(name, width)
                for number, (side, name, width) in enumerate(sides)
            )
        )

    @cached_property
    def _base(self) -> np.ndarray:
        """The scores of all pairs by factors and biases, (n_users, n_items)."""
        m, n = self._data.n_users, self._data.n_items
        return self._factors.scores(np.repeat(np.arange(m), n), np.tile(np.arange(n), m)).reshape(m, n)

    @cached_property
    def _coefficients(self) -> np.ndarray:
        residuals = self._ratings - self._base.clip(*self._limits)[self._pairs]
        noise, weights = [self._kernels.noise], self._data.weights
        weights = None if weights is None else weights[self._kept]
        return self._process.coefficients(self._base.shape, self._pairs, residuals, noise, weights)[0]

    @cached_property
    def _pair_scores(self) -> np.ndarray:
        return self._base.clip(*self._limits) + self._process.of(self._coefficients)

    @cached_property
    def completed(self) -> tuple[np.ndarray, np.ndarray]:
        """Ratings, else scores, less the mean, and where there are ratings: of users and items that have some."""
        values = self._pair_scores.clip(*self._limits)
        values[self._pairs] = self._ratings
        known = np.ix_(*(kind == _RATED for kind in self._kind))
        return values[known] - self._factors.mean, self._places_of(self._kept)

    def _places_of(self, chosen: np.ndarray) -> np.ndarray:
        """Which pairs of users and items that have ratings have one of the chosen, as `completed`."""
        found = np.zeros(self._base.shape, dtype=bool)
        found[self._data.user_index[chosen], self._data.item_index[chosen]] = True
        return found[np.ix_(*(kind == _RATED for kind in self._kind))]

    def _values(self, side: int) -> tuple[np.ndarray, np.ndarray]:
        """`completed` with the rows of a side as its rows."""
        values, observed = self.completed
        return (values, observed) if side == 0 else (values.T, observed.T)

    @cached_property
    def _among(self) -> list[np.ndarray]:
        """The kernel of the users, and of the items, that others follow from."""
        chosen = self._kernels.new_users, self._kernels.new_items
        return [
            side.power(1 if of_new is None else of_new.power)[np.ix_(kind == _RATED, kind == _RATED)]
            for side, of_new, kind in zip(self._sides, chosen, self._kind, strict=True)
        ]

    @cached_property
    def _others(self) -> list[tuple[RowRegression, RowErrors] | None]:
        """How users, and items, follow from others, and by how much they are off; None where none do."""
        if self._known is not None:
            return self._known._others
        found: list[tuple[RowRegression, RowErrors] | None] = []
        kernels, chosen = (
            (self._process.columns, self._process.rows),
            (self._kernels.new_users, self._kernels.new_items),
        )
        for number, (kernel, of_new) in enumerate(zip(kernels, chosen, strict=True)):
            if of_new is None:
                found.append(None)
                continue
            (values, observed), kept = self._values(number), [kind == _RATED for kind in self._kind]
            how = {"intercept": of_new.intercept, "by_profiles": of_new.profiles}
            regression = RowRegression.of(self._among[number], of_new.noise, **how)
            columns = None if kernel is None else kernel[np.ix_(kept[1 - number], kept[1 - number])]
            measured = self._places_of(self._data.measured)
            left, measured = regression.left_out(values), measured.T if number else measured
            found.append((regression, RowErrors.of(left, observed, measured, columns)))
        return found

    @cached_property
    def _new(self) -> list[_NewRows | None]:
        """The users, and the items, that follow from others."""
        return [self._new_of(side) if (self._kind[side] == _NEW).any() else None for side in (0, 1)]

    def _new_of(self, side: int) -> _NewRows | None:
        if self._known is not None and self._of_known(side):
            return self._known._new[side]
        whole, others = self._known or self, self._others[side]
        of_new = (self._kernels.new_users, self._kernels.new_items)[side]
        assert of_new is not None
        is_new, kept = self._kind[side] == _NEW, self._kind[side] == _RATED
        if self._known is None:
            near = self._sides[side].power(of_new.power)[np.ix_(is_new, kept)]
        else:
            near = self._across(side)[is_new] ** of_new.power
        near = profiles(whole._among[side], near) if of_new.profiles else near
        rows, columns = (self._data.user_index, self._data.item_index)[:: 1 - 2 * side]
        own = is_new[rows] & (self._kind[1 - side][columns] == _RATED)
        places = self._place(side, _NEW)[rows[own]], self._place(1 - side, _RATED)[columns[own]]
        weights, signs = (
            np.full(own.size, default) if given is None else given
            for default, given in ((1.0, self._data.weights), (0.0, self._data.relations))
        )
        ratings = np.where(signs == 0, self._all_ratings, self._data.ratings) - self._factors.mean
        assert others is not None
        of_own = places, ratings[own], weights[own], signs[own]
        return _NewRows.of(others[0], near, whole._values(side)[0], others[1], *of_own)

    @cached_property
    def _new_deviation(self) -> float:
        """The deviation of ratings of pairs of which both follow from others, where known rows are left out."""
        if self._known is not None:
            return self._known._new_deviation
        (values, _), (users, items), measured = self.completed, self._others, self._places_of(self._data.measured)
        assert users is not None
        assert items is not None
        predicted = values - users[0].left_out(values)
        left_out = values - predicted + items[0].left_out(predicted.T).T
        return float(np.quantile(abs(left_out[measured]), _LEVEL)) / _NORMAL if measured.any() else 1.0

    @cached_property
    def _added(self) -> np.ndarray:
        """What is added to the scores of all pairs, (n_users, n_items)."""
        found, mean = self._pair_scores.copy(), self._factors.mean
        is_new, is_rated = ([kind == each for kind in self._kind] for each in (_NEW, _RATED))
        for side, new in enumerate(self._new):
            if new is not None:
                expected = new.values
                if self._of_known(side):
                    expected = new.regression.of_new(new.near, self._values(side)[0])
                by_user = expected if side == 0 else expected.T
                places = (is_new[0], is_rated[1]) if side == 0 else (is_rated[0], is_new[1])
                found[np.ix_(*places)] = by_user + mean
        users, items = self._new
        if users is not None and items is not None:
            if items.own.size and not users.own.size:
                both = users.regression.of_new(users.near, items.values.T)
            else:
                both = items.regression.of_new(items.near, users.values.T).T
            found[np.ix_(is_new[0], is_new[1])] = both + mean
        is_other = (self._kind[0] == _OTHER)[:, None] | (self._kind[1] == _OTHER)
        return np.where(is_other, 0.0, found - self._base)
