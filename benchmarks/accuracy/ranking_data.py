"""The interactions that rankings are measured on: published splits, hold-outs by user and in time, and their kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.implicit_lists import ListName
from air_recsys.datasets import load_implicit_lists, load_monti, load_movielens
from air_recsys.evaluation.folds import (
    Fold,
    NewUsersFold,
    holdout_in_time,
    holdout_of_last,
    holdout_of_new_users,
    holdout_of_users,
)
from air_recsys.evaluation.results.table import ResultTable
from air_recsys.models.graph_ranker.inputs import interaction_pattern
from air_recsys.models.graph_ranker.regression import normalised_items
from benchmarks.accuracy.experiments import experiment

_SHARE = 0.2
_USERS_SHARE = 0.1
_LIKED = 4
_MOST_USERS = 6000  # asked how alike their tested items are
_FEWEST_TESTED, _FEWEST_LEFT = 3, 6  # items of a user that is asked


class RankingSet(NamedTuple):
    """Interactions with a fixed split.

    Title, origin, a function that reads it from the data folder, and which part is tested: a "random" one, the "last"
    item of each user, the latest share of each user's ("latest"), or the latest of all in "time". `split` is another
    set with the same pairs, whose published figures and settings hold here.
    """

    title: str
    origin: str
    load: Callable[[Path], Fold]
    kind: str = "random"
    split: str | None = None

    @property
    def validation(self) -> str:
        """What a `GraphRanker` hides to choose for such a test part."""
        return "last" if self.kind == "latest" else self.kind


def validation_part(fold: Fold, seed: int = 0, kind: str = "random") -> Fold:
    """A fold within the training part, which tests a part of the same kind as the test part of `fold`.

    The test interactions of `fold` take no part: settings can be chosen here.
    """
    makers = {
        "random": lambda: holdout_of_users(fold.train, _SHARE, seed),
        "last": lambda: holdout_of_last(fold.train),
        "latest": lambda: holdout_of_last(fold.train, _SHARE),
        "time": lambda: holdout_in_time(fold.train, _SHARE),
    }
    return makers[kind]()._replace(name="validation")


def new_users_part(fold: Fold, seed: int = 0) -> NewUsersFold:
    """A split by users: train and test part of `fold` are joined, and a tenth of the users is held out.

    See `holdout_of_new_users`.
    """
    joined = sp.csr_array(fold.train.to_csr() + fold.test.to_csr())
    data = Interactions.from_csr(joined, fold.train.user_ids, fold.train.item_ids)
    return holdout_of_new_users(data, _USERS_SHARE, seed)


def _tested(data: Interactions) -> Fold:
    return holdout_of_users(data, _SHARE, 0)._replace(name="test")


def _douban(root: Path) -> Fold:
    train, test = (each.select(each.ratings >= _LIKED) for each in load_monti(root, "douban"))
    return Fold("test", train, test)


def _flixster(root: Path) -> Fold:
    train, test = (each.select(each.ratings >= _LIKED) for each in load_monti(root, "flixster"))
    return Fold("test", train, test.select(np.isin(test.user_index, train.user_index)))


def _lastfm(root: Path) -> Fold:
    place = root / "implicit" / "hetrec2011-lastfm-2k" / "user_artists.dat"
    table = pd.read_csv(place, sep="\t").set_axis(["user", "item", "rating"], axis=1)
    return _tested(Interactions.from_frame(table))


def _published(name: ListName, order: bool, root: Path) -> Fold:
    return Fold("test", *load_implicit_lists(root, name, order=order))


_LOADERS: dict[str, Callable[[Path], Fold]] = {
    "gowalla": partial(_published, "gowalla", False),
    "yelp2018": partial(_published, "yelp2018", False),
    "gowalla-order": partial(_published, "gowalla", True),
    "yelp2018-order": partial(_published, "yelp2018", True),
    "ml-1m": lambda root: _tested(load_movielens(root, "1m")),
    "douban": _douban,
    "lastfm": _lastfm,
    "flixster": _flixster,
    "ml-100k": lambda root: _tested(load_movielens(root, "100k")),
    "ml-100k-last": lambda root: holdout_of_last(load_movielens(root, "100k"))._replace(name="test"),
    "ml-100k-time": lambda root: holdout_in_time(load_movielens(root, "100k"), _SHARE)._replace(name="test"),
}
RANKING_SETS = {
    name: RankingSet(entry["title"], entry["origin"], _LOADERS[name], entry.get("kind", "random"), entry.get("split"))
    for name, entry in experiment("ranking")["set"].items()
}
BY_DEFAULT = tuple(name for name, entry in RANKING_SETS.items() if entry.split is None)
"""The names of the sets that need no order of the lines, which a copy can lose."""


def split_of(data: str) -> str:
    """The name of the set whose published figures and settings hold for a set."""
    return RANKING_SETS[data].split or data


class Likeness(NamedTuple):
    """Mean cosines of items over the users asked."""

    within: float  # of pairs of tested items
    across: float  # of a tested item and one that is left
    n_users: int

    @property
    def ratio(self) -> float:
        """About 1 where what is tested is drawn at random."""
        return self.within / self.across if self.across else np.inf


def bench_ranking_splits(sets: dict[str, Fold], seed: int = 0) -> ResultTable:
    """Compare the likeness of what each split tests with that of a random part of its training data.

    Half of the users, drawn at random, give the cosines of items; the others are asked. A random part hides a fifth of
    the training items of each user.

    Parameters
    ----------
    sets : dict
        Splits, by the keys of `benchmarks.accuracy.ranking_data.RANKING_SETS`.

    Returns
    -------
    ResultTable
        Two rows a split: "within" is the mean cosine of two tested items of a user, "across" that of a tested and an
        untested one, and "ratio" the first over the second.
    """
    protocol = (
        f"cosines of items by the training data of one half of the users, drawn with seed {seed}; up to {_MOST_USERS} "
        f"users of the other half are asked, with {_FEWEST_TESTED} tested items and {_FEWEST_LEFT} others at least; "
        "random: a fifth of each user's training items in place of the test part"
    )
    table = ResultTable("Whether tested items belong together", protocol)
    for name, fold in sets.items():
        for part, tested in {"test": fold, "random": holdout_of_users(fold.train, _SHARE, seed)}.items():
            found = likeness(tested, seed)
            figures = {"within": found.within, "across": found.across, "ratio": found.ratio, "n_users": found.n_users}
            table.rows.append({"set": RANKING_SETS[name].title, "part": part} | figures)
    return table


def likeness(fold: Fold, seed: int = 0) -> Likeness:
    """How alike the tested items of a user are to each other, and to its training items; NaN for no user.

    Examples
    --------
    >>> from air_recsys import Interactions
    >>> same = Interactions.from_csr(sp.csr_array(np.ones((40, 9))))  # all items are alike
    >>> round(likeness(Fold("test", same, same.select(same.item_index < 3))).ratio, 2)
    1.0
    """
    order = np.random.default_rng(seed).permutation(fold.train.n_users)
    half, asked = np.sort(order[: order.size // 2]), order[order.size // 2 :]
    left, tested = interaction_pattern(fold.train), interaction_pattern(fold.test)
    enough = (np.diff(tested.indptr) >= _FEWEST_TESTED) & (np.diff(left.indptr) >= _FEWEST_LEFT)
    users = asked[enough[asked]][:_MOST_USERS]
    if not users.size:
        return Likeness(np.nan, np.nan, 0)
    columns = sp.csc_array(normalised_items(left[half], 0.0, 1.0).rows)  # of length 1
    within, across = np.mean(
        [_cosines(columns, tested[[user]].indices, left[[user]].indices) for user in users], axis=0
    )
    return Likeness(float(within), float(across), users.size)


def _cosines(columns: sp.csc_array, tested: np.ndarray, left: np.ndarray) -> tuple[float, float]:
    """The mean cosine of two tested items, and of a tested one and one that is left."""
    cosines = (columns[:, tested].T @ columns[:, np.concatenate([tested, left])]).toarray()
    pairs = cosines[:, : tested.size][~np.eye(tested.size, dtype=bool)]
    return float(pairs.mean()), float(cosines[:, tested.size :].mean())
