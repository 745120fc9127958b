"""How good the lists of a `GraphRanker` are on a hidden part of its training data."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from air_recsys.metrics.at_k import ndcg_at_k, recall_at_k
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import top_k
from air_recsys.models.graph_ranker import smoothings
from air_recsys.models.graph_ranker.factors import ItemFactors, over_factors, user_factors
from air_recsys.models.graph_ranker.regression import (
    MOST_EXACT,
    PENALTIES,
    SMALL_PENALTIES,
    EvenedItems,
    evened_items,
    exact_weights,
    filtered,
    item_products,
)
from air_recsys.models.graph_ranker.smoothings import RankerSettings
from air_recsys.models.graph_ranker.times.hidden_parts import HiddenPart
from air_recsys.models.graph_ranker.times.recency import log_trend, of_later_items

_MAX_ENTRIES = 50_000_000  # most scores of one smoothing
_LENGTH = 20
_BLOCK = 256
Smoothed = Callable[[float], np.ndarray]  # of a penalty: the items of the users asked, smoothed


class HeldOut:
    """The terms of a `GraphRanker` trained on one part of the data, and its lists measured on another.

    Parameters
    ----------
    part : HiddenPart
        Some user has hidden items.
    seed : int
    n_users : int
        How many users with hidden items are asked for lists, at most; drawn with `seed`.

    Attributes
    ----------
    factors : ItemFactors
        Those that `use_factors` was last given.
    """

    factors: ItemFactors

    def __init__(self, part: HiddenPart, seed: int, n_users: int) -> None:
        shown, hidden = part.shown, part.hidden
        self.shown, self.name, self.of_times = shown, part.name, part.of_times
        self._k = min(_LENGTH, shown.shape[1])
        tested = np.flatnonzero(np.diff(hidden.indptr))
        size = max(1, min(n_users, tested.size, _MAX_ENTRIES // shown.shape[1]))
        self.users = np.sort(np.random.default_rng(seed).choice(tested, size, replace=False))
        self._hidden, self._seen = hidden[self.users], part.left[self.users]
        self._times = None if part.times is None else part.times[self.users]
        self._trend = np.zeros(shown.shape[1]) if part.times is None else log_trend(part.times)
        few = shown.shape[1] <= MOST_EXACT
        self.penalties = (*SMALL_PENALTIES, *PENALTIES) if few else PENALTIES
        self._evened = lru_cache(1)(partial(evened_items, shown))
        self._products = lru_cache(1)(lambda exponent, share: item_products(self._evened(exponent, share)))
        self._weights = lru_cache(1)(lambda *key: exact_weights(self._products(*key[:2]), key[2]))
        self._regression = lru_cache(1)(self._regression_of)
        self._scores = lru_cache(1)(self._scores_of_factors)

    def regression_scores(self, settings: RankerSettings) -> np.ndarray:
        """Return the scores of the regression alone, (n_users asked, n_items), as those of the others."""
        evened, smoothed = self._regression(
            settings.regression_exponent,
            settings.regression_share,
            settings.regression_source,
            settings.user_half_life,
        )
        gains = np.exp(settings.item_trend * self._trend)
        target = (evened.degrees**-settings.regression_target * gains).astype(np.float32)
        product = smoothed(settings.regression_penalty)
        return self._by_blocks(lambda block: smoothings.of_length_one(product[block] * target))

    def _regression_of(
        self, exponent: float, share: float, source: float, half_life: float
    ) -> tuple[EvenedItems, Smoothed]:
        evened = self._evened(exponent, share)
        own = smoothings.divided(self._own(half_life), evened.degrees, source)
        if own.shape[1] <= MOST_EXACT:
            return evened, lambda penalty: own @ self._weights(exponent, share, penalty)
        blocks = filtered(evened, own, PENALTIES)
        return evened, lambda penalty: blocks[PENALTIES.index(penalty)]

    def _own(self, half_life: float) -> Csr:
        return of_later_items(self._seen, self._times, half_life)

    def forget_regression(self) -> None:
        """Free what the regression holds, several times the scores."""
        for kept in (self._evened, self._products, self._weights, self._regression):
            kept.cache_clear()

    def use_factors(self, factors: ItemFactors) -> None:
        """Score with these factors from now on."""
        self.factors = factors
        self._scores.cache_clear()

    def factor_scores(self, settings: RankerSettings) -> np.ndarray:
        """Return the scores of the factors alone."""
        return self._scores(settings.factor_temperature, settings.user_half_life, settings.item_trend)

    def _scores_of_factors(self, temperature: float, half_life: float, trend: float) -> np.ndarray:
        own, gains = user_factors(self._own(half_life), self.factors.sources), trend * self._trend
        over = over_factors(own, self.factors.targets, temperature, gains)
        users = np.arange(self.users.size)
        return self._by_blocks(lambda block: over.scores(users[block]))

    def _by_blocks(self, scores: Callable[[slice], np.ndarray]) -> np.ndarray:
        starts = range(0, self.users.size, _BLOCK)
        return np.concatenate([scores(slice(start, start + _BLOCK)).astype(np.float32) for start in starts])

    def measure(self, scores: np.ndarray) -> tuple[float, float]:
        """Return NDCG and recall of the lists of 20 that scores make."""
        lists = np.concatenate([self.lists(scores, start) for start in range(0, len(scores), _BLOCK)])
        return ndcg_at_k(lists, self._hidden, self._k), recall_at_k(lists, self._hidden, self._k)

    def lists(self, scores: np.ndarray, start: int) -> np.ndarray:
        """Return the lists of a block of the users asked, items shown left out."""
        block = scores[start : start + _BLOCK].copy()
        block[self._seen[start : start + _BLOCK].nonzero()] = -np.inf
        return top_k(block, self._k)
