"""Lists of items by positions, of models of this library, of what is popular, of any model; and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.resampling import UserResamples, interval_of
from air_recsys.metrics import coverage, gini, intra_list_diversity, miscalibration, novelty, popularity_lift
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import GraphRanker, Recommender

_PAIRS = 500_000  # scored at a time

_GROUPS = ("few items", "some items", "many items")


class Recommending:
    """The lists of a model of this library, by positions; those of new users of a `GraphRanker` alone."""

    def __init__(self, model: Recommender) -> None:
        self.model = model

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The lists of `recommend`, by positions; -1 where it has no item left."""
        data = self.model.interactions_
        table = self.model.recommend(data.user_ids[users], n)
        place = np.full(data.n_users, -1)
        place[users] = np.arange(users.size)
        return self._positions(table, place[data.users.lookup(table["user"].to_numpy())], (users.size, n))

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """The lists of users folded in with these items, (b, n_items)."""
        assert isinstance(self.model, GraphRanker)
        table = self.model.fold_in(rows).recommend(range(rows.shape[0]), n)
        return self._positions(table, table["user"].to_numpy(), (rows.shape[0], n))

    def _positions(self, table: pd.DataFrame, places: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        items = np.full(shape, -1, dtype=np.int64)
        items[places, table["rank"].to_numpy() - 1] = self.model.interactions_.items.lookup(table["item"].to_numpy())
        return items


class Popularity:
    """The most interacted items that a user does not have."""

    def fit(self, interactions: Interactions) -> Self:
        """Count."""
        self._seen = interactions.to_csr()
        self._counts = np.bincount(interactions.item_index, minlength=interactions.n_items).astype(np.float64)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """The best n unseen items, by positions."""
        return self._lists(self._seen, users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Those of new users with these items, (b, n_items)."""
        return self._lists(rows, np.arange(rows.shape[0]), n)

    def _lists(self, seen: Csr, users: np.ndarray, n: int) -> np.ndarray:
        return lists_of_scores(lambda some: np.tile(self._counts, (some.size, 1)), seen, users, n)


def lists_of(model: Any, shown: Interactions, users: np.ndarray, k: int) -> np.ndarray:
    """The best unseen items of some users, (n_users, at most k): by the model's own lists, or by its scores."""
    if isinstance(model, Recommender):
        return Recommending(model).lists(users, k)
    if hasattr(model, "lists"):
        return np.asarray(model.lists(users, k))
    step = max(1, _PAIRS // shown.n_items)
    seen = shown.to_csr()

    def scores(some: np.ndarray) -> np.ndarray:
        user_ids, item_ids = np.repeat(shown.user_ids[some], shown.n_items), np.tile(shown.item_ids, some.size)
        return np.asarray(model.predict(user_ids, item_ids)).reshape(some.size, shown.n_items)

    blocks = [users[start : start + step] for start in range(0, users.size, step)]
    return np.concatenate([lists_of_scores(scores, seen, block, k) for block in blocks])


def lists_of_new_users(model: Any, rows: Csr, k: int) -> np.ndarray:
    """The best items of new users with these items, (b, n_items), as `lists_of` makes those of users."""
    lister = Recommending(model) if isinstance(model, Recommender) else model
    return np.asarray(lister.lists_of_new(rows, k))


def measure_figures(by_user: Mapping[str, np.ndarray], resamples: UserResamples, k: int) -> dict[str, float]:
    """The mean of each measure over the users and its 95 % interval.

    For ``ndcg_at_k`` the names are ``ndcg@k``, ``ndcg low`` and ``ndcg high``.
    """
    figures: dict[str, float] = {}
    for name, values in by_user.items():
        measure = name.removesuffix("_at_k")
        mean, low, high = interval_of(float(values.mean()), resamples.mean(values))
        figures |= {f"{measure}@{k}": mean, f"{measure} low": low, f"{measure} high": high}
    return figures


def paired_p_value(own: np.ndarray, first: np.ndarray) -> float:
    """The p-value of a paired t-test over the users; NaN where nothing differs, and for a single user."""
    from scipy.stats import ttest_rel

    if own.size < 2 or (own == first).all():
        return np.nan
    tested: Any = ttest_rel(own, first)
    return float(tested.pvalue)


def holm(p_values: Any) -> np.ndarray:
    r"""P-values corrected for their number by Holm's method; NaN stands for no test.

    Of m tests in ascending order the i-th, from 1, gets :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_j)`. Among all
    tests of equal systems, one is then below 0.05 with a probability of at most 0.05.

    References
    ----------
    Holm: A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 1979.
    """
    corrected = np.array(p_values, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(corrected))
    order = tested[np.argsort(corrected[tested], kind="stable")]
    steps = corrected[order] * np.arange(order.size, 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return corrected


def catalogue_figures(lists: np.ndarray, users: np.ndarray, train: Interactions, shown: Csr) -> dict[str, float]:
    """What lists do to the catalogue.

    `shown` has a 1 for each item that a user is known by: those of the training, and those given of new users.
    """
    counts = np.bincount(train.item_index, minlength=train.n_items)
    whole = train.to_csr()
    of_all = np.full((shown.shape[0], lists.shape[1]), -1)
    of_all[users] = lists
    return {
        "coverage": coverage(lists, train.n_items),
        "gini": gini(lists, train.n_items),
        "novelty": novelty(lists, whole),
        "popularity lift": popularity_lift(of_all, shown),
        "miscalibration": miscalibration(lists, shown[users], popularity_groups(counts)),
    }


def diversity_figure(lists: np.ndarray, train: Interactions) -> dict[str, float]:
    """How different the items of a list are, NaN where no list has two; memory grows with lists x users."""
    several = ((lists >= 0).sum(axis=1) > 1).any()
    return {"diversity": intra_list_diversity(lists, train.to_csr()) if several else np.nan}


def popularity_groups(counts: np.ndarray) -> np.ndarray:
    """1 for the group of each item, (n_items, 3): head, middle and tail have a third of all interactions each."""
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    group = np.empty(counts.size, dtype=np.int64)
    group[order] = np.minimum(3 * before // max(counts.sum(), 1), 2)
    return np.eye(3)[group]


def thirds_of_users(sizes: np.ndarray) -> dict[str, np.ndarray]:
    """Which users belong to each third by their numbers of items; ties by position."""
    place = np.empty(sizes.size, dtype=np.int64)
    place[np.argsort(sizes, kind="stable")] = 3 * np.arange(sizes.size) // max(sizes.size, 1)
    masks = {name: place == number for number, name in enumerate(_GROUPS)}
    return {name: mask for name, mask in masks.items() if mask.any()}
