"""Lists of items of several models on the same fold: many measures, intervals, and tests of the differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from tqdm import tqdm

from air_recsys.evaluation.folds import Fold
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.interactions import Interactions
from air_recsys.metrics import (
    coverage,
    gini,
    intra_list_diversity,
    miscalibration,
    novelty,
    popularity_lift,
    user_measures,
)
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import GraphRanker, Recommender
from air_recsys.results import ResultTable
from air_recsys.splits import Split, global_time, leave_last, user_holdout

LIST_PEERS = {"als": "implicit ALS", "bpr": "implicit BPR"}
"""Names on the command line of models of implicit, run with implicit's defaults."""
_RESAMPLES = 1000
_GROUPS = ("few items", "some items", "many items")


class Lister(Protocol):
    """A model that makes lists of items for users, all by their positions in the training data."""

    def fit(self, interactions: Interactions) -> Any:
        """Train."""
        ...

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items, shape (b, n) or fewer columns; -1 where none is left."""
        ...


class NewUsersLister(Lister, Protocol):
    """A `Lister` that makes lists for users whom it was not trained on, too."""

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Return the best n unseen items of users with these items, (b, n_items) and 1 each, as `lists` does."""
        ...


class Recommending:
    """The lists of a model of this library, by positions; those of new users of a `GraphRanker` alone.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [1, 1, 1], [np.nan, 1, 1]])
    >>> Recommending(GraphRanker(settings={})).fit(data).lists(np.array([0, 1]), 2).tolist()
    [[2, -1], [-1, -1]]
    """

    def __init__(self, model: Recommender) -> None:
        self.model = model

    def fit(self, interactions: Interactions) -> Self:
        """Train the model."""
        self.model.fit(interactions)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the lists of `recommend`, by positions; -1 where it has no item left."""
        data = self.model.interactions_
        table = self.model.recommend(data.user_ids[users], n)
        place = np.full(data.n_users, -1)
        place[users] = np.arange(users.size)
        return self._positions(table, place[data.users.lookup(table["user"].to_numpy())], (users.size, n))

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Return the lists of users folded in with these items, (b, n_items)."""
        assert isinstance(self.model, GraphRanker)
        table = self.model.fold_in(rows).recommend(n)
        return self._positions(table, table["user"].to_numpy(), (rows.shape[0], n))

    def _positions(self, table: pd.DataFrame, places: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        items = np.full(shape, -1, dtype=np.int64)
        items[places, table["rank"].to_numpy() - 1] = self.model.interactions_.items.lookup(table["item"].to_numpy())
        return items


class Popularity:
    """The most interacted items that a user does not have.

    Examples
    --------
    >>> data = Interactions.from_dense([[1, 1, np.nan], [np.nan, 1, 1]])
    >>> Popularity().fit(data).lists(np.array([0, 1]), 1).tolist()
    [[2], [0]]
    """

    def fit(self, interactions: Interactions) -> Self:
        """Count."""
        self._seen = interactions.to_csr()
        self._counts = np.bincount(interactions.item_index, minlength=interactions.n_items).astype(np.float64)
        return self

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items, by positions."""
        return self._lists(self._seen, users, n)

    def lists_of_new(self, rows: Csr, n: int) -> np.ndarray:
        """Return those of new users with these items, (b, n_items)."""
        return self._lists(rows, np.arange(rows.shape[0]), n)

    def _lists(self, seen: Csr, users: np.ndarray, n: int) -> np.ndarray:
        return lists_of_scores(lambda some: np.tile(self._counts, (some.size, 1)), seen, users, n)


def listers(
    peers: Iterable[str], seed: int, changes: Mapping[str, Any] | None = None
) -> dict[str, Callable[[], Lister]]:
    """Return name and factory of `GraphRanker`, of what is popular, and of the peers asked for.

    Parameters
    ----------
    peers : iterable of str
        Keys of `LIST_PEERS` (need the extra ``implicit``).
    seed : int
        Of all of them.
    changes : mapping, optional
        Parameters of `GraphRanker`.

    Raises
    ------
    ParameterError
        For a peer that is not of `LIST_PEERS`.
    """
    parameters: dict[str, Any] = {"random_state": seed, **(changes or {})}
    entrants: dict[str, Callable[[], Lister]] = {
        "GraphRanker": lambda: Recommending(GraphRanker(**parameters)),
        "most popular": Popularity,
    }
    for peer in peers:
        if peer not in LIST_PEERS:
            raise ParameterError(f"peers must be of {list(LIST_PEERS)}, found {peer!r}")
        from air_recsys.adapters.implicit_lists_peer import ImplicitLists

        entrants[LIST_PEERS[peer]] = partial(ImplicitLists, peer, random_state=seed)
    return entrants


def holdout_of_users(data: Interactions, test_fraction: float, seed: int) -> Fold:
    """Return a fold that tests a random share of each user's interactions."""
    split = user_holdout(data, test_fraction, seed)
    return Fold("hold-out", data.select(split.train), data.select(split.test))


def holdout_of_last(data: Interactions) -> Fold:
    """Return a fold that tests the last interaction of each user who has more than one.

    Raises
    ------
    DataError
        Without timestamps.
    """
    return _known_alone("last", data, leave_last(data))


def holdout_in_time(data: Interactions, test_fraction: float) -> Fold:
    """Return a fold that tests the latest share of all interactions, of users and items that occur before.

    Raises
    ------
    DataError
        Without timestamps, and where no tested user or item occurs before.
    """
    return _known_alone("time", data, global_time(data, test_fraction))


def _known_alone(name: str, data: Interactions, split: Split) -> Fold:
    """Return a fold without test interactions of users or items that the training part lacks."""
    known = split.test.copy()
    for index, size in ((data.user_index, data.n_users), (data.item_index, data.n_items)):
        known &= np.bincount(index[split.train], minlength=size)[index] > 0
    if not known.any():
        raise DataError(
            f"expected later interactions of users and items that occur before, found none among {split.test.sum()}"
        )
    return Fold(name, data.select(split.train), data.select(known))


class Answers(NamedTuple):
    """The lists of a system, and how long it took."""

    lists: np.ndarray
    fit_seconds: float
    list_seconds: float


def evaluate_lists(
    fold: Fold,
    systems: Mapping[str, Callable[[], Lister]],
    *,
    k: int = 10,
    seed: int = 0,
    progress: bool = True,
    protocol: str = "",
) -> tuple[ResultTable, ResultTable]:
    """Train every system on a fold and measure its lists of k items for all users with test items.

    Parameters
    ----------
    fold : Fold
        Over the same users and items. All test interactions are relevant, whatever their values.
    systems : mapping of str to callable
        As from `listers`; the first is the one that the others are tested against.
    k : int
        At most the number of items.
    seed : int
        Of the bootstrap.
    progress : bool
    protocol : str
        Where the fold came from.

    Returns
    -------
    ResultTable
        One row per system: NDCG with its 95 % interval (percentile bootstrap over users), the p-value of a paired
        t-test of NDCG against the first system, the other measures of `air_recsys.metrics`, and seconds.
    ResultTable
        NDCG of the users with few, some and many training items, a third of the users each.

    Raises
    ------
    ParameterError
        For a k out of range.
    """
    if not 1 <= k <= fold.train.n_items:
        raise ParameterError(f"k must be in 1..{fold.train.n_items}, the number of items, found {k}")
    users = np.unique(fold.test.user_index)
    relevant, seen = (sp.csr_array(each.to_csr())[users] for each in (fold.test, fold.train))
    known = sp.csr_array(relevant, copy=True)
    known.data[:] = 1  # a value of 0 is an interaction too
    means = ResultTable(f"Lists of {k} items for {users.size} users", protocol)
    groups = ResultTable(f"NDCG@{k} by the number of training items of a user", "")
    bands = _bands(np.diff(seen.indptr))
    first: np.ndarray | None = None
    for name, make in tqdm(systems.items(), disable=not progress, unit="fit", desc="evaluate"):
        answers = _answers(make(), fold, users, k)
        by_user = user_measures(answers.lists, known, k)
        ndcg, others = by_user["ndcg_at_k"], {name: by_user[name] for name in by_user if name != "ndcg_at_k"}
        first = ndcg if first is None else first
        means.rows.append(
            {"system": name, f"ndcg@{k}": ndcg.mean()}
            | _ndcg_row(ndcg, first, seed)
            | {measure.replace("_at_k", f"@{k}"): values.mean() for measure, values in others.items()}
            | _catalogue_row(answers.lists, fold.train, seen)
            | {"fit_seconds": answers.fit_seconds, "list_seconds": answers.list_seconds}
        )
        groups.rows.append({"system": name} | {band: ndcg[mask].mean() for band, mask in bands.items()})
    sizes = ", ".join(f"{band}: {_range(np.diff(seen.indptr)[mask])}" for band, mask in bands.items())
    groups.notes.append(sizes)
    return means, groups


def _answers(model: Lister, fold: Fold, users: np.ndarray, k: int) -> Answers:
    start = time.perf_counter()
    model.fit(fold.train)
    trained = time.perf_counter()
    lists = model.lists(users, k)
    short = k - lists.shape[1]
    lists = np.pad(lists, ((0, 0), (0, short)), constant_values=-1) if short else lists
    return Answers(lists, trained - start, time.perf_counter() - trained)


def _ndcg_row(ndcg: np.ndarray, first: np.ndarray, seed: int) -> dict[str, float]:
    """Return the interval of the mean over the users, and the p-value of its difference from the first system's."""
    from scipy.stats import bootstrap, ttest_rel

    row = {"low": ndcg.mean(), "high": ndcg.mean(), "p": np.nan}
    if ndcg.size > 1 and np.ptp(ndcg) > 0:
        rng = np.random.default_rng(seed)
        found = bootstrap((ndcg,), np.mean, n_resamples=_RESAMPLES, batch=100, method="percentile", rng=rng)
        row |= {"low": found.confidence_interval.low, "high": found.confidence_interval.high}
    if ndcg.size > 1 and (ndcg != first).any():
        row["p"] = float(ttest_rel(ndcg, first).pvalue)
    return {"ndcg low": float(row["low"]), "ndcg high": float(row["high"]), "p": float(row["p"])}


def _catalogue_row(lists: np.ndarray, train: Interactions, seen: Any) -> dict[str, float]:
    counts = np.bincount(train.item_index, minlength=train.n_items)
    whole = train.to_csr()
    return {
        "coverage": coverage(lists, train.n_items),
        "gini": gini(lists, train.n_items),
        "novelty": novelty(lists, whole),
        "diversity": intra_list_diversity(lists, whole) if ((lists >= 0).sum(axis=1) > 1).any() else np.nan,
        "popularity lift": popularity_lift(lists, seen),
        "miscalibration": miscalibration(lists, seen, popularity_groups(counts)),
    }


def popularity_groups(counts: np.ndarray) -> np.ndarray:
    """Return 1 for the group of each item, (n_items, 3): head, middle and tail have a third of all interactions each.

    Examples
    --------
    >>> popularity_groups(np.array([1, 4, 3, 4])).argmax(axis=1).tolist()
    [2, 0, 2, 1]
    """
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    group = np.empty(counts.size, dtype=np.int64)
    group[order] = np.minimum(3 * before // max(counts.sum(), 1), 2)
    return np.eye(3)[group]


def _bands(sizes: np.ndarray) -> dict[str, np.ndarray]:
    """Return which users belong to each third by their numbers of training items; ties by position."""
    place = np.empty(sizes.size, dtype=np.int64)
    place[np.argsort(sizes, kind="stable")] = 3 * np.arange(sizes.size) // max(sizes.size, 1)
    masks = {name: place == number for number, name in enumerate(_GROUPS)}
    return {name: mask for name, mask in masks.items() if mask.any()}


def _range(sizes: np.ndarray) -> str:
    return f"{sizes.min()}..{sizes.max()}"
