"""What a `GraphRanker` hides of its training data in order to choose, and how good its lists are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.splits.base import numbers_held_out, rank_within
from air_recsys.metrics.at_k import recall_at_k
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import top_k
from air_recsys.models.graph_ranker.factors import ItemFactors, user_factors
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    differ,
    entries_beside,
    log_trend,
    ones_of,
    strengths,
    times_columns,
    with_half_life,
    with_kinds,
)
from air_recsys.models.graph_ranker.regression import (
    MOST_EXACT,
    PENALTIES,
    SMALL_PENALTIES,
    NormalisedItems,
    exact_weights,
    filtered,
    item_products,
    normalised_items,
)
from air_recsys.models.graph_ranker.scorers import FactorScorer, lengths_of_single
from air_recsys.models.ranking.calibration import RankCalibration

MOST_SCORES = 50_000_000  # most scores of one scorer
_LENGTH = 20
_BLOCK = 256
ByPenalty = Callable[[float], np.ndarray]  # of a penalty: the items of the users asked, times H
_HIDDEN_SHARE = 0.2
POWERS = {"alike": 0.0, "popular": 0.5, "rare": -0.5}  # of an item's count, by which a hidden entry weighs
N_WINDOWS = 3  # fifths in time that are hidden
_HELD_OUT = 0.1  # share of the rows
_FEWEST = 10  # rows with hidden entries; fewer tell nothing
_NO_KINDS: Mapping[str, Csr] = {}
_NO_WORTHS: Mapping[str, float] = {}
VALIDATIONS = ("auto", "random", "users", "last", "time")


class HiddenPart(NamedTuple):
    """A part of the training data that is hidden, and what is left."""

    name: str
    shown: Csr  # to train on
    hidden: Csr
    times: Csr | None = None  # of what is left
    given: Csr | None = None  # what is left of the rows of `hidden`, where these are not among the rows to train on
    at_random: bool = False  # which does not show how popularity will count: lists are measured in three ways
    kinds: Mapping[str, Csr] = _NO_KINDS  # of the rows of `shown`, see `beside`
    given_kinds: Mapping[str, Csr] = _NO_KINDS  # of the rows of `hidden`
    rows: tuple[np.ndarray, np.ndarray] | None = None  # to train on and of `hidden`; None: all rows are both

    @property
    def powers(self) -> dict[str, float]:
        """The powers of the items' counts that hidden entries weigh by, by the names of the figures."""
        return {f"{self.name}{way}": power for way, power in POWERS.items()} if self.at_random else {self.name: 0.0}

    @property
    def left(self) -> Csr:
        """What is left of the rows of `hidden`."""
        return self.shown if self.given is None else self.given

    @property
    def of_times(self) -> tuple[str, ...]:
        """The settings that read times and can be chosen here."""
        if self.times is None:
            return ()
        return ("item_trend", "user_half_life") if self.name == "last" and not self.kinds else ("item_trend",)

    def beside(self, events: Mapping[str, tuple[Csr, Csr | None]]) -> HiddenPart:
        """The same with events of other kinds, given as values and times of all rows: what is left of them.

        Nothing is left of hidden pairs, as a view would tell of a purchase, and with times nothing that came later
        than what is shown, of a user or of all.
        """
        if self.rows is not None:
            shown, asked = self.rows
            kinds = {name: values[shown] for name, (values, _) in events.items()}
            given = {name: entries_beside(values[asked], self.hidden) for name, (values, _) in events.items()}
        else:
            kinds = {name: entries_beside(self._before(*each), self.hidden) for name, each in events.items()}
            given = kinds
        return self._replace(kinds=kinds, given_kinds=given)

    def _before(self, values: Csr, times: Csr | None) -> Csr:
        """The events that are not later than what is shown."""
        if self.times is None or times is None:
            return values
        last = np.full(values.shape[0], self.times.data.max(), dtype=self.times.dtype)
        if self.name == "last":  # each user's own, where some is hidden
            asked = np.diff(self.hidden.indptr) > 0
            last[asked] = self.times.data.min()
            np.maximum.at(last, _rows(self.times), np.where(asked[_rows(self.times)], self.times.data, last.min()))
        return _kept(values, times.data <= last[_rows(values)])


def hidden_parts(pattern: Csr, times: Csr | None, validation: str, seed: int) -> list[HiddenPart]:
    """The hidden parts that settings are compared on.

    A random part shows the quality of lists if the future is like the past. Most often popularity changes, and no part
    of the past shows in which direction: therefore its `powers`. `GraphRanker` says what each kind hides.
    """
    parts: list[HiddenPart] = []
    if validation == "users":
        parts = [_rows_held_out(pattern, seed)]
    elif validation == "last" and times is not None:
        parts = [latest_of_rows(pattern, times, seed)]
    elif validation != "random" and times is not None:
        parts = [latest_of_all(pattern, times, seed, number) for number in range(N_WINDOWS)]
    told = [part for part in parts if np.count_nonzero(np.diff(part.hidden.indptr)) >= _FEWEST]
    return told or [HiddenPart("", *hide_fifth(pattern, seed), at_random=True)]


def _rows_held_out(pattern: Csr, seed: int) -> HiddenPart:
    order = np.random.default_rng(seed).permutation(pattern.shape[0])
    size = round(_HELD_OUT * pattern.shape[0])
    held_out, others = np.sort(order[:size]), np.sort(order[size:])
    shown, hidden = hide_fifth(pattern, seed)
    rows = others, held_out
    return HiddenPart("users_", pattern[others], hidden[held_out], given=shown[held_out], at_random=True, rows=rows)


def hide_fifth(pattern: Csr, seed: int) -> tuple[Csr, Csr]:
    """What is left and a hidden fifth of every row, rounded, drawn at random, but never all of it."""
    hide = _fifth_of_rows(pattern, np.lexsort((_draws(pattern, seed), _rows(pattern))))
    return _kept(pattern, ~hide), _kept(pattern, hide)


def latest_of_rows(pattern: Csr, times: Csr, seed: int) -> HiddenPart:
    """The latest fifth of every row as the hidden part, of columns that occur in what is left."""
    order = np.lexsort((_draws(pattern, seed), -times.data, _rows(pattern)))
    hide = _fifth_of_rows(pattern, order)
    return _known_alone("last", pattern, times, ~hide, hide)


def latest_of_all(pattern: Csr, times: Csr, seed: int, number: int = 0) -> HiddenPart:
    """A fifth of all as the hidden part, of rows and columns that occur in what is left: all that is earlier.

    `number` 0 is the latest fifth, 1 the one before it, and so on. What is later takes no part.
    """
    size, from_last = int(np.ceil(_HIDDEN_SHARE * pattern.nnz)), np.empty(pattern.nnz, dtype=np.int64)
    from_last[np.lexsort((_draws(pattern, seed), -times.data))] = np.arange(pattern.nnz)
    fifth = from_last // size
    return _known_alone(f"time_{number + 1}", pattern, times, fifth > number, fifth == number)


def _known_alone(name: str, pattern: Csr, times: Csr, show: np.ndarray, hide: np.ndarray) -> HiddenPart:
    shown, rows = _kept(pattern, show), _rows(pattern)
    in_column = np.bincount(shown.indices, minlength=pattern.shape[1]) > 0
    known = (np.diff(shown.indptr) > 0)[rows] & in_column[pattern.indices]
    return HiddenPart(name, shown, _kept(pattern, hide & known), _kept(times, show))


def _fifth_of_rows(pattern: Csr, order: np.ndarray) -> np.ndarray:
    """A mask of the first fifth of each row, rounded and never all of it, by an order that sorts by rows."""
    rows = _rows(pattern)
    return rank_within(rows, order) < numbers_held_out("share", _HIDDEN_SHARE, np.diff(pattern.indptr))[rows]


def _draws(pattern: Csr, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(pattern.nnz)


def _rows(pattern: Csr) -> np.ndarray:
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


def _kept(matrix: Csr, mask: np.ndarray) -> Csr:
    return sp.csr_array((matrix.data[mask], (_rows(matrix)[mask], matrix.indices[mask])), shape=matrix.shape)


class HeldOut:
    """The terms of a `GraphRanker` trained on one part of the data, and its lists measured on another.

    At most `n_users` users with hidden items, of whom there are some, are asked for lists; they are drawn with the
    seed.
    """

    factors: ItemFactors  # those that `use_factors` was last given
    worths: Mapping[str, float] = _NO_WORTHS  # of events of other kinds, at which all that follows is trained

    def __init__(self, part: HiddenPart, seed: int, n_users: int) -> None:
        shown, hidden = part.shown, part.hidden
        self.of_times = part.of_times
        self.have_values = any(map(differ, (shown, *part.kinds.values())))
        self._k = min(_LENGTH, shown.shape[1])
        tested = np.flatnonzero(np.diff(hidden.indptr))
        size = max(1, min(n_users, tested.size, MOST_SCORES // shown.shape[1]))
        self.users = np.sort(np.random.default_rng(seed).choice(tested, size, replace=False))
        self._left = part.left[self.users]  # by their values
        self._hidden, self._seen = (ones_of(each, shown.shape[1]) for each in (hidden[self.users], self._left))
        self.kinds, self._left_kinds = part.kinds, {name: each[self.users] for name, each in part.given_kinds.items()}
        if self.kinds:  # no list holds what has other events: hidden pairs have none
            self._seen = with_kinds(self._seen, self._left_kinds, dict.fromkeys(self.kinds, 1.0), 0.0)
        counts = np.maximum(np.bincount(shown.indices, minlength=shown.shape[1]), 1.0)
        gains = gains_of(hidden[self.users], shown)
        self._gains = {name: times_columns(gains, counts**power) for name, power in part.powers.items()}
        self._times = None if part.times is None else part.times[self.users]
        self._trend = np.zeros(shown.shape[1]) if part.times is None else log_trend(part.times)
        few = shown.shape[1] <= MOST_EXACT
        self.penalties = (*SMALL_PENALTIES, *PENALTIES) if few else PENALTIES
        self._normalised = lru_cache(1)(lambda *key: normalised_items(self.shown, *key))
        self._products = lru_cache(1)(lambda exponent, share: item_products(self._normalised(exponent, share)))
        self._weights = lru_cache(1)(lambda *key: exact_weights(self._products(*key[:2]), key[2]))
        self._regression = lru_cache(1)(self._regression_of)
        self._scores = lru_cache(1)(self._scores_of_factors)
        self._held: tuple[np.ndarray, np.ndarray] | None = None
        self._values, self._used = shown, None
        self.use_strength(0.0)

    def use_strength(self, strength: float) -> None:
        """Let values count so from now on."""
        if self._used != (strength, self.worths):
            self._forget_regression()
            self._used = strength, self.worths
            both = (self._values, self.kinds), (self._left, self._left_kinds)
            self.shown, self._given = (
                with_kinds(strengths(own, strength), others, self.worths, strength)
                if others
                else strengths(own, strength)
                for own, others in both
            )

    def regression_scores(self, settings: RankerSettings) -> np.ndarray:
        """The scores of the regression alone, (n_users asked, n_items), as those of the others."""
        degrees, product = self._held or self._product(settings)
        gains = np.exp(settings.item_trend * self._trend)
        scores = product * (degrees**-settings.regression_target * gains).astype(np.float32)
        scores /= lengths_of_single(scores).astype(np.float32)
        return scores

    def _product(self, settings: RankerSettings) -> tuple[np.ndarray, np.ndarray]:
        """The degrees of the items, (n_items,), and the items of the users asked, times H."""
        self.use_strength(settings.strength)
        normalised, filtered_at = self._regression(
            settings.regression_exponent,
            settings.regression_share,
            settings.regression_source,
            settings.user_half_life,
        )
        return normalised.degrees, filtered_at(settings.regression_penalty)

    def hold_regression(self, settings: RankerSettings) -> None:
        """Let only exponents of the targets change from now on; what is freed is several times the scores."""
        degrees, product = self._product(settings)
        self._held = degrees, product.copy()
        self._forget_regression()

    def _regression_of(
        self, exponent: float, share: float, source: float, half_life: float
    ) -> tuple[NormalisedItems, ByPenalty]:
        self._regression.cache_clear()  # which frees what was kept before there is more
        normalised = self._normalised(exponent, share)
        own = times_columns(self._own(half_life), normalised.degrees**-source)
        if own.shape[1] <= MOST_EXACT:
            return normalised, lru_cache(1)(lambda penalty: own @ self._weights(exponent, share, penalty))
        blocks = filtered(normalised, own, PENALTIES)
        return normalised, lambda penalty: blocks[PENALTIES.index(penalty)]

    def _own(self, half_life: float) -> Csr:
        return with_half_life(self._given, self._times, half_life)

    def _forget_regression(self) -> None:
        for kept in (self._normalised, self._products, self._weights, self._regression):
            kept.cache_clear()

    def use_factors(self, factors: ItemFactors) -> None:
        """Score with these factors from now on."""
        self.factors = factors
        self._scores.cache_clear()

    def factor_scores(self, settings: RankerSettings) -> np.ndarray:
        """The scores of the factors alone."""
        return self._scores(settings.factor_temperature, settings.user_half_life, settings.item_trend)

    def _scores_of_factors(self, temperature: float, half_life: float, trend: float) -> np.ndarray:
        own = user_factors(self._own(half_life), self.factors.sources)
        scorer = FactorScorer.of(own, self.factors, temperature, trend * self._trend)
        users = np.arange(self.users.size)
        return self._by_blocks(lambda block: scorer.scores(users[block]))

    def _by_blocks(self, scores: Callable[[slice], np.ndarray]) -> np.ndarray:
        starts = range(0, self.users.size, _BLOCK)
        return np.concatenate([scores(slice(start, start + _BLOCK)).astype(np.float32) for start in starts])

    def measure(self, scores: np.ndarray) -> dict[str, tuple[float, float]]:
        """NDCG, by `gains_of` and each of the powers of the part, and recall of the lists of 20 that scores make."""
        lists = np.concatenate([self.lists(scores, start) for start in range(0, len(scores), _BLOCK)])
        recall = recall_at_k(lists, self._hidden, self._k)
        return {name: (float(graded_ndcg(lists, gains).mean()), recall) for name, gains in self._gains.items()}

    def calibration(self, scores: np.ndarray) -> RankCalibration:
        """The probabilities that these scores tell of the hidden items."""
        return RankCalibration.of(scores, self._seen, self._hidden, at_random=self._times is None)

    def lists(self, scores: np.ndarray, start: int) -> np.ndarray:
        """The lists of a block of the users asked, items shown left out."""
        block = scores[start : start + _BLOCK].copy()
        block[self._seen[start : start + _BLOCK].nonzero()] = -np.inf
        return top_k(block, self._k)


def gains_of(hidden: Csr, shown: Csr) -> Csr:
    r"""What each hidden entry is worth in a list, :math:`\log(1 + v / m)` of a value with m the median of those shown.

    1 each where those shown are equal, or mostly 0, or all hidden ones are 0.
    """
    gains, middle = ones_of(hidden, hidden.shape[1]), float(np.median(shown.data)) if differ(shown) else 0.0
    if middle and hidden.data.any():
        gains.data = np.log1p(hidden.data.astype(np.float64) / middle)
    return gains


def graded_ndcg(lists: np.ndarray, gains: Csr) -> np.ndarray:
    """The NDCG of lists of positions, (b, k), by the gains of the relevant items, (b, n_items), of users with some.

    It is that of `user_measures` where all gains are 1.

    Examples
    --------
    >>> graded_ndcg(np.array([[0, 2]]), sp.csr_array([[1.0, 3.0, 3.0]])).round(4).tolist()
    [0.5912]
    """
    gains = gains.sorted_indices()
    k, counts = lists.shape[1], np.diff(gains.indptr)
    rows = np.repeat(np.arange(counts.size), counts)
    order = np.lexsort((-gains.data, rows))
    places = np.arange(rows.size) - gains.indptr[rows]  # of the best list
    best = np.zeros((counts.size, k))
    best[rows[places < k], places[places < k]] = gains.data[order][places < k]
    keys = np.append(rows * gains.shape[1] + gains.indices, np.iinfo(np.int64).max)  # ascending
    asked = np.where(lists < 0, -1, np.arange(counts.size)[:, None] * gains.shape[1] + lists)
    found = np.searchsorted(keys, asked)  # (b, k)
    own = np.where(keys[found] == asked, np.append(gains.data, 0.0)[found], 0.0)
    discount = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(best * discount, axis=1)[:, -1]
    reached = np.cumsum(own * discount, axis=1)[:, -1]
    return reached[ideal > 0] / ideal[ideal > 0]
