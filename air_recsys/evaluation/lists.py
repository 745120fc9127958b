"""Lists of items of several models on the same fold: many measures, intervals, and tests of the differences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
from tqdm import tqdm

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.holdouts import NewUsersFold, given_rows, shown_rows, users_asked
from air_recsys.evaluation.list_figures import (
    catalogue_figures,
    diversity_figure,
    holm,
    measure_figures,
    paired_p_value,
    thirds_of_users,
)
from air_recsys.evaluation.resampling import UserResamples
from air_recsys.evaluation.results import ResultTable
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import user_measures
from air_recsys.metrics.checks import Csr
from air_recsys.metrics.ranking import lists_of_scores
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.graph_ranker.inputs import interaction_pattern

LIST_PEERS = {"als": "implicit ALS", "bpr": "implicit BPR"}
"""Names on the command line of models of implicit, run with implicit's defaults."""
_TRAINED_ALONE = ("bpr",)


class Lister(Protocol):
    """A model that makes lists of items for users, all by their positions in the training data."""

    def fit(self, interactions: Interactions) -> Any:
        """Train."""
        ...

    def lists(self, users: np.ndarray, n: int) -> np.ndarray:
        """Return the best n unseen items, shape (b, n) or fewer columns; -1 where none is left."""
        ...


@runtime_checkable
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
    peers: Iterable[str], seed: int, changes: Mapping[str, Any] | None = None, *, new_users: bool = False
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
    new_users : bool
        Whether lists of users are asked for whom the systems were not trained on.

    Raises
    ------
    ParameterError
        For a peer that is not of `LIST_PEERS`, and for one that makes no lists for new users where they are asked for.
    """
    parameters: dict[str, Any] = {"random_state": seed, **(changes or {})}
    entrants: dict[str, Callable[[], Lister]] = {
        "GraphRanker": lambda: Recommending(GraphRanker(**parameters)),
        "most popular": Popularity,
    }
    for peer in peers:
        if peer not in LIST_PEERS:
            raise ParameterError(f"peers must be of {list(LIST_PEERS)}, found {peer!r}")
        if new_users and peer in _TRAINED_ALONE:
            raise ParameterError(f"{LIST_PEERS[peer]} makes lists only for users of its training: leave out {peer}")
        from air_recsys.adapters.implicit_lists_peer import ImplicitLists

        entrants[LIST_PEERS[peer]] = partial(ImplicitLists, peer, random_state=seed)
    return entrants


class Answers(NamedTuple):
    """The lists of a system, and how long it took."""

    lists: np.ndarray
    fit_seconds: float
    list_seconds: float


def evaluate_lists(
    fold: Fold | NewUsersFold,
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
    fold : Fold or NewUsersFold
        Over the same users and items, as from `air_recsys.evaluation.holdouts`. All test interactions are relevant,
        whatever their values.
    systems : mapping of str to callable
        As from `listers`; the first is the one that the others are tested against. For a `NewUsersFold` they make
        `NewUsersLister`.
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
        One row per system: all measures of `air_recsys.metrics`, and seconds; those of lists of new users include
        their fold-in. What is a mean over the users (NDCG, precision, recall, MAP, MRR, hit rate) has a 95 % interval
        (percentile bootstrap over the users) in columns such as "recall low" and "recall high"; the text shows that
        of NDCG alone. "p" is the p-value of a paired t-test of NDCG against the first system. "p holm" is the same
        corrected for the number of systems by the method of Holm: read it where several systems are compared.
    ResultTable
        NDCG of the users with few, some and many training items, or items given, a third of the users each.

    Raises
    ------
    ParameterError
        For a k out of range, and for a system that makes no lists for the new users of a fold.
    """
    if not 1 <= k <= fold.train.n_items:
        raise ParameterError(f"k must be in 1..{fold.train.n_items}, the number of items, found {k}")
    if isinstance(fold, NewUsersFold):
        _check_new_users(systems)
    users, rows = users_asked(fold), given_rows(fold)
    relevant, shown = interaction_pattern(fold.test)[users], shown_rows(fold)
    sizes, resamples = np.diff(rows.indptr), UserResamples(users, seed=seed)
    bands = thirds_of_users(sizes)
    means = ResultTable(f"Lists of {k} items for {users.size} users", protocol)
    known_by = "training items" if isinstance(fold, Fold) else "items given"
    groups = ResultTable(f"NDCG@{k} by the number of {known_by} of a user", "")
    first: np.ndarray | None = None
    for name, make in tqdm(systems.items(), disable=not progress, unit="fit", desc="evaluate"):
        answers = _answers(make(), fold, users, rows, k)
        by_user = user_measures(answers.lists, relevant, k)
        ndcg = by_user.pop("ndcg_at_k")
        first = ndcg if first is None else first
        means.rows.append(
            {"system": name}
            | measure_figures({"ndcg_at_k": ndcg}, resamples, k)
            | {"p": paired_p_value(ndcg, first), "p holm": np.nan}
            | measure_figures(by_user, resamples, k)
            | catalogue_figures(answers.lists, users, fold.train, shown)
            | diversity_figure(answers.lists, fold.train)
            | {"fit_seconds": answers.fit_seconds, "list_seconds": answers.list_seconds}
        )
        means.aside = [f"{each.removesuffix('_at_k')} {end}" for each in by_user for end in ("low", "high")]
        groups.rows.append({"system": name} | {band: ndcg[mask].mean() for band, mask in bands.items()})
    for row, corrected in zip(means.rows, holm([row["p"] for row in means.rows]).tolist(), strict=True):
        row["p holm"] = corrected
    groups.notes.append(", ".join(f"{band}: {_range(sizes[mask])}" for band, mask in bands.items()))
    return means, groups


def _check_new_users(systems: Mapping[str, Callable[[], Lister]]) -> None:
    known_alone = [name for name, make in systems.items() if not isinstance(make(), NewUsersLister)]
    if known_alone:
        raise ParameterError(
            f"expected systems with lists_of_new, for users held out of the training, found {', '.join(known_alone)}"
        )


def _answers(model: Lister, fold: Fold | NewUsersFold, users: np.ndarray, rows: Csr, k: int) -> Answers:
    start = time.perf_counter()
    model.fit(fold.train)
    trained = time.perf_counter()
    if isinstance(fold, NewUsersFold):
        assert isinstance(model, NewUsersLister)
        lists = model.lists_of_new(rows, k)
    else:
        lists = model.lists(users, k)
    short = k - lists.shape[1]
    lists = np.pad(lists, ((0, 0), (0, short)), constant_values=-1) if short else lists
    return Answers(lists, trained - start, time.perf_counter() - trained)


def _range(sizes: np.ndarray) -> str:
    return f"{sizes.min()}..{sizes.max()}"
