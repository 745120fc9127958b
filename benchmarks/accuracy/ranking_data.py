"""The interactions that rankings are measured on: published splits, and hold-outs user by user and in time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.implicit_lists import ListName
from air_recsys.datasets import load_implicit_lists, load_monti, load_movielens
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.holdouts import (
    NewUsersFold,
    holdout_in_time,
    holdout_of_last,
    holdout_of_new_users,
    holdout_of_users,
)

_SHARE = 0.2
_USERS_SHARE = 0.1
_LIKED = 4


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
    """Return a fold within the training part, which tests a part of the same kind as the test part of `fold`.

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
    """Return a split by users: train and test part of `fold` are joined, and a tenth of the users is held out.

    See `holdout_of_new_users`.
    """
    joined = sp.csr_array(fold.train.to_csr() + fold.test.to_csr())
    data = Interactions.from_csr(joined, fold.train.user_ids, fold.train.item_ids)
    return holdout_of_new_users(data, _USERS_SHARE, seed)


def _movielens(root: Path) -> Fold:
    return _tested(load_movielens(root, "1m"))


def _movielens_last(root: Path) -> Fold:
    return holdout_of_last(load_movielens(root, "100k"))._replace(name="test")


def _movielens_later(root: Path) -> Fold:
    return holdout_in_time(load_movielens(root, "100k"), _SHARE)._replace(name="test")


def _tested(data: Interactions) -> Fold:
    return holdout_of_users(data, _SHARE, 0)._replace(name="test")


def _douban(root: Path) -> Fold:
    train, test = (each.select(each.ratings >= _LIKED) for each in load_monti(root, "douban"))
    return Fold("test", train, test)


def _flixster(root: Path) -> Fold:
    train, test = (each.select(each.ratings >= _LIKED) for each in load_monti(root, "flixster"))
    return Fold("test", train, test.select(np.isin(test.user_index, train.user_index)))


def _movielens_small(root: Path) -> Fold:
    return _tested(load_movielens(root, "100k"))


def _lastfm(root: Path) -> Fold:
    place = root / "implicit" / "hetrec2011-lastfm-2k" / "user_artists.dat"
    table = pd.read_csv(place, sep="\t").set_axis(["user", "item", "rating"], axis=1)
    return _tested(Interactions.from_frame(table))


_LIGHTGCN = "the split published with NGCF and LightGCN"


def _lightgcn(title: str, name: ListName) -> RankingSet:
    return RankingSet(title, _LIGHTGCN, lambda root: Fold("test", *load_implicit_lists(root, name)))


def _lightgcn_in_order(title: str, name: ListName) -> RankingSet:
    def load(root: Path) -> Fold:
        return Fold("test", *load_implicit_lists(root, name, order=True))

    return RankingSet(f"{title} in order", f"{_LIGHTGCN}; places in its lines are times", load, "latest", name)


RANKING_SETS = {
    "gowalla": _lightgcn("Gowalla", "gowalla"),
    "yelp2018": _lightgcn("Yelp2018", "yelp2018"),
    "gowalla-order": _lightgcn_in_order("Gowalla", "gowalla"),
    "yelp2018-order": _lightgcn_in_order("Yelp2018", "yelp2018"),
    "ml-1m": RankingSet(
        "MovieLens-1M", "all ratings as interactions, a fifth of each user's hidden, seed 0", _movielens
    ),
    "douban": RankingSet("Douban", "ratings of 4 and 5 as likes, the split of Monti et al.", _douban),
    "lastfm": RankingSet(
        "Last.fm", "all listened artists as interactions, a fifth of each user's hidden, seed 0", _lastfm
    ),
    "flixster": RankingSet(
        "Flixster",
        "ratings of 4 and more as likes, the split of Monti et al., of users with likes to train",
        _flixster,
    ),
    "ml-100k": RankingSet(
        "MovieLens-100K", "all ratings as interactions, a fifth of each user's hidden, seed 0", _movielens_small
    ),
    "ml-100k-last": RankingSet(
        "MovieLens-100K by the last item",
        "all ratings as interactions, the last one of each user hidden, of items that others have",
        _movielens_last,
        "last",
    ),
    "ml-100k-time": RankingSet(
        "MovieLens-100K by time",
        "all ratings as interactions, the latest fifth of all hidden, of users and items that occur before",
        _movielens_later,
        "time",
    ),
}
BY_DEFAULT = tuple(name for name, entry in RANKING_SETS.items() if entry.split is None)
"""The names of the sets that need no order of the lines, which a copy can lose."""


def split_of(data: str) -> str:
    """Return the name of the set whose published figures and settings hold for a set."""
    return RANKING_SETS[data].split or data
