"""What a `GraphRanker` hides of its training data in order to choose, and how good its lists are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from air_recsys.data.splits.base import numbers_held_out, rank_within
from air_recsys.metrics.at_k import Gains, recall_at_k
from air_recsys.metrics.checks import Csr
from air_recsys.models.graph_ranker.factors import ItemFactors, user_factors
from air_recsys.models.graph_ranker.inputs import (
    RankerSettings,
    differ,
    entries_beside,
    log_trend,
    ones_of,
    rows_of,
    strengths,
    times_columns,
    with_half_life,
    with_kinds,
)
from air_recsys.models.graph_ranker.regression import (
    MOST_EXACT,
    PENALTIES,
    SMALL_PENALTIES,
    exact_weights,
    filtered,
    item_degrees,
    item_products,
    normalised_items,
    times_dense,
    with_degrees,
)
from air_recsys.models.graph_ranker.scorers import FactorScorer, lengths_of_single
from air_recsys.models.ranking.calibration import RankCalibration
from air_recsys.models.ranking.top_items import hide
from air_recsys.storage.arrays import in_numpy, largest_of_rows
from air_recsys.storage.threads import in_workers

MOST_SCORES = 50_000_000  # most scores of one scorer
_LENGTH = 20
_BLOCK = 64  # users whose scores are held at a time
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
            np.maximum.at(last, rows_of(self.times), np.where(asked[rows_of(self.times)], self.times.data, last.min()))
        return _kept(values, times.data <= last[rows_of(values)])


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
    hide = _fifth_of_rows(pattern, np.lexsort((_draws(pattern, seed), rows_of(pattern))))
    return _kept(pattern, ~hide), _kept(pattern, hide)


def latest_of_rows(pattern: Csr, times: Csr, seed: int) -> HiddenPart:
    """The latest fifth of every row as the hidden part, of columns that occur in what is left."""
    order = np.lexsort((_draws(pattern, seed), -times.data, rows_of(pattern)))
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
    shown, rows = _kept(pattern, show), rows_of(pattern)
    in_column = np.bincount(shown.indices, minlength=pattern.shape[1]) > 0
    known = (np.diff(shown.indptr) > 0)[rows] & in_column[pattern.indices]
    return HiddenPart(name, shown, _kept(pattern, hide & known), _kept(times, show))


def _fifth_of_rows(pattern: Csr, order: np.ndarray) -> np.ndarray:
    """A mask of the first fifth of each row, rounded and never all of it, by an order that sorts by rows."""
    rows = rows_of(pattern)
    return rank_within(rows, order) < numbers_held_out("share", _HIDDEN_SHARE, np.diff(pattern.indptr))[rows]


def _draws(pattern: Csr, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(pattern.nnz)


def _kept(matrix: Csr, mask: np.ndarray) -> Csr:
    return sp.csr_array((matrix.data[mask], (rows_of(matrix)[mask], matrix.indices[mask])), shape=matrix.shape)


class HeldOut:
    """The terms of a `GraphRanker` trained on one part of the data, and its lists measured on another.

    At most `n_users` users with hidden items, of whom there are some, are asked for lists; they are drawn with the
    seed. Their scores are made by blocks of users, each in a thread.
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
        self._blocks = [slice(start, start + _BLOCK) for start in range(0, size, _BLOCK)]
        self._left = part.left[self.users]  # by their values
        self._hidden, self._seen = (ones_of(each, shown.shape[1]) for each in (hidden[self.users], self._left))
        self.kinds, self._left_kinds = part.kinds, {name: each[self.users] for name, each in part.given_kinds.items()}
        if self.kinds:  # no list holds what has other events: hidden pairs have none
            self._seen = with_kinds(self._seen, self._left_kinds, dict.fromkeys(self.kinds, 1.0), 0.0)
        counts = np.maximum(np.bincount(shown.indices, minlength=shown.shape[1]), 1.0)
        gains = gains_of(hidden[self.users], shown)
        self._gains = {name: Gains(times_columns(gains, counts**p), self._k) for name, p in part.powers.items()}
        self._times = None if part.times is None else part.times[self.users]
        self._trend = np.zeros(shown.shape[1]) if part.times is None else log_trend(part.times)
        self._few = shown.shape[1] <= MOST_EXACT
        self.penalties = (*SMALL_PENALTIES, *PENALTIES) if self._few else PENALTIES
        self._alike = lru_cache(1)(self._products_alike)
        self._scores = lru_cache(1)(self._scores_of_factors)
        self._products: dict[_Product, np.ndarray] = {}  # the last ones, and the best one
        self._best: _Product | None = None
        self._values, self._used = shown, None
        self.use_strength(0.0)

    def use_strength(self, strength: float) -> None:
        """Let values count so from now on."""
        if self._used != (strength, self.worths):
            self._products.clear()
            self._alike.cache_clear()
            self._used = strength, self.worths
            both = (self._values, self.kinds), (self._left, self._left_kinds)
            self.shown, self._given = (
                with_kinds(strengths(own, strength), others, self.worths, strength)
                if others
                else strengths(own, strength)
                for own, others in both
            )

    def keep(self, settings: RankerSettings) -> None:
        """Let the products of settings stay: others are compared with them."""
        self._best = _Product.of(settings)

    def hold_regression(self, settings: RankerSettings) -> None:
        """Let only exponents of the targets change from now on; what is freed is several times the scores."""
        self.keep(settings)
        own = self._product(settings)
        self._products = {_Product.of(settings): own}
        self._alike.cache_clear()

    def _product(self, settings: RankerSettings) -> np.ndarray:
        """The items of the users asked, times H; beside the best settings those of all penalties are made at once."""
        self.use_strength(settings.strength)
        asked = _Product.of(settings)
        if asked not in self._products:
            best, penalties = self._best, [asked.penalty]
            self._products = {key: each for key, each in self._products.items() if key == best}
            if not self._few and best is not None and best.at(asked.penalty) == asked:
                penalties = [each for each in self.penalties if each != best.penalty]
            for penalty, found in zip(penalties, self._regressed(asked, penalties), strict=True):
                self._products[asked.at(penalty)] = found
        return self._products[asked]

    def _regressed(self, asked: _Product, penalties: Sequence[float]) -> Sequence[np.ndarray]:
        """The items of the users asked times H for each penalty, (n_users asked, n_items)."""
        own = self._own(asked.half_life)
        if not self._few:
            normalised = normalised_items(self.shown, asked.exponent, asked.share)
            return filtered(normalised, times_columns(own, normalised.degrees**-asked.source), penalties)
        degrees = item_degrees(self.shown, asked.exponent, asked.share)
        products = with_degrees(*self._alike(asked.exponent), degrees)
        own = times_columns(own, degrees**-asked.source)
        return [times_dense(own, exact_weights(products, penalty), self._blocks) for penalty in penalties]

    def _products_alike(self, exponent: float) -> tuple[np.ndarray, np.ndarray]:
        """The products of the items for a share of 1, (n_items, n_items), and their degrees."""
        normalised = normalised_items(self.shown, exponent, 1.0)
        return item_products(normalised), normalised.degrees

    def _own(self, half_life: float) -> Csr:
        return with_half_life(self._given, self._times, half_life)

    def use_factors(self, factors: ItemFactors) -> None:
        """Score with these factors from now on."""
        self.factors = factors
        self._scores.cache_clear()

    def _scores_of_factors(self, temperature: float, half_life: float, trend: float) -> np.ndarray:
        """The scores of the factors, of length 1, (n_users asked, n_items)."""
        own = user_factors(self._own(half_life), self.factors.sources)
        scorer = FactorScorer.of(own, self.factors, temperature, trend * self._trend)
        found = np.empty((self.users.size, self.shown.shape[1]), np.float32)

        def score(block: slice) -> None:
            scores = scorer.block(np.arange(self.users.size)[block], found[block])
            found[block] = scores.values / scores.lengths.astype(np.float32)

        in_workers(score, self._blocks)
        return found

    def scores(self, settings: RankerSettings) -> np.ndarray:
        """The scores by the settings, (n_users asked, n_items), float32."""
        score = self._scorer(settings)
        return np.concatenate(in_workers(score, self._blocks))

    def _scorer(self, settings: RankerSettings) -> Callable[[slice], np.ndarray]:
        """What scores a block of the users asked, (b, n_items)."""
        product, of_factors, scales = None, None, np.empty(0)
        if settings.regression_weight:
            product = self._product(settings)
            degrees = item_degrees(self.shown, settings.regression_exponent, settings.regression_share)
            gains = np.exp(settings.item_trend * self._trend)
            scales = (degrees**-settings.regression_target * gains).astype(np.float32)
        if settings.factor_weight:
            of_factors = self._scores(settings.factor_temperature, settings.user_half_life, settings.item_trend)

        def score(block: slice) -> np.ndarray:
            if product is None:
                assert of_factors is not None
                return of_factors[block] * settings.factor_weight
            scores = product[block] * scales
            scores *= (settings.regression_weight / lengths_of_single(scores)).astype(np.float32)
            if of_factors is not None:
                scores += of_factors[block] * np.float32(settings.factor_weight)
            return scores

        return score

    def lists(self, settings: RankerSettings) -> np.ndarray:
        """The lists of the users asked, items shown left out, (n_users asked, k)."""
        score = self._scorer(settings)

        def ranked(block: slice) -> np.ndarray:
            scores = hide(score(block), self._seen, block.start)
            return in_numpy(largest_of_rows(scores, self._k)[1])

        return np.concatenate(in_workers(ranked, self._blocks))

    def measure(self, settings: RankerSettings) -> dict[str, tuple[float, float]]:
        """NDCG, by `gains_of` and each of the powers of the part, and recall of lists of 20 by the settings."""
        return self.measured(self.lists(settings))

    def measured(self, lists: np.ndarray) -> dict[str, tuple[float, float]]:
        """What `measure` returns, of lists of the users asked."""
        recall = recall_at_k(lists, self._hidden, self._k)
        return {name: (float(gains.ndcg(lists).mean()), recall) for name, gains in self._gains.items()}

    def calibration(self, settings: RankerSettings) -> RankCalibration:
        """The probabilities that the scores by the settings tell of the hidden items."""
        return RankCalibration.of(self.scores(settings), self._seen, self._hidden, at_random=self._times is None)


class _Product(NamedTuple):
    """What the items of users times H depend on."""

    exponent: float
    share: float
    source: float
    half_life: float
    strength: float
    penalty: float

    @classmethod
    def of(cls, settings: RankerSettings) -> _Product:
        regression = settings.regression_exponent, settings.regression_share, settings.regression_source
        return cls(*regression, settings.user_half_life, settings.strength, settings.regression_penalty)

    def at(self, penalty: float) -> _Product:
        return self._replace(penalty=penalty)


def gains_of(hidden: Csr, shown: Csr) -> Csr:
    r"""What each hidden entry is worth in a list, :math:`\log(1 + v / m)` of a value with m the median of those shown.

    1 each where those shown are equal, or mostly 0, or all hidden ones are 0.
    """
    gains, middle = ones_of(hidden, hidden.shape[1]), float(np.median(shown.data)) if differ(shown) else 0.0
    if middle and hidden.data.any():
        gains.data = np.log1p(hidden.data.astype(np.float64) / middle)
    return gains
