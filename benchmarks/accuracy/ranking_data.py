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
from benchmarks.accuracy.experiments import experiment

_SHARE = 0.2
_USERS_SHARE = 0.1
_LIKED = 4


class RankingSet(NamedTuple):
    """Interactions with a fixed split.

    Title, origin, a function that reads it from the data folder, and which part is tested: a "random" one, the "last"
    item of each user, the latest share of each user's ("latest"), or the latest of all in "time". `split` is another
    set with the same pairs, whose published figures and settings hold here. Of `counts` the values of interactions
    are kept, and the split is drawn with the seed of a run. Models of sequences read so many of the latest
    items; none are trained on sets without that number.
    """

    title: str
    origin: str
    load: Callable[[Path], Fold]
    kind: str = "random"
    split: str | None = None
    counts: bool = False
    latest: int | None = None

    def fold(self, root: Path, seed: int) -> Fold:
        """The split of the files of a folder."""
        loaded = self.load(root)
        if self.counts:
            return holdout_of_users(joined(loaded), _SHARE, seed)._replace(name="test")
        return loaded._replace(train=alike(loaded.train), test=alike(loaded.test))

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
    return holdout_of_new_users(joined(fold), _USERS_SHARE, seed)


def joined(fold: Fold) -> Interactions:
    """Train and test part of a fold."""
    whole = sp.csr_array(fold.train.to_csr() + fold.test.to_csr())
    return Interactions.from_csr(whole, fold.train.user_ids, fold.train.item_ids)


def alike(data: Interactions) -> Interactions:
    """The same pairs and times, without values."""
    pairs, ones = (data.user_index, data.item_index), np.ones(data.n_ratings)
    return Interactions(*pairs, ones, data.users, data.items, timestamps=data.timestamps, duplicates=None)


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


def _games(root: Path) -> Fold:
    place = root / "implicit" / "amazon-games" / "Video.txt"
    table = pd.read_csv(place, sep=" ", names=["user", "item"]).drop_duplicates()
    table["timestamp"] = np.arange(len(table))
    return holdout_of_last(Interactions.from_frame(table, rating=None, timestamp="timestamp"))._replace(name="test")


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
    "lastfm-plays": _lastfm,
    "flixster": _flixster,
    "ml-100k": lambda root: _tested(load_movielens(root, "100k")),
    "ml-100k-last": lambda root: holdout_of_last(load_movielens(root, "100k"))._replace(name="test"),
    "games-last": _games,
    "ml-100k-time": lambda root: holdout_in_time(load_movielens(root, "100k"), _SHARE)._replace(name="test"),
}
RANKING_SETS = {
    name: RankingSet(
        *(entry["title"], entry["origin"], _LOADERS[name], entry.get("kind", "random"), entry.get("split")),
        counts="counts" in entry,
        latest=entry.get("latest"),
    )
    for name, entry in experiment("ranking")["set"].items()
}


def split_of(data: str) -> str:
    """The name of the set whose published figures and settings hold for a set."""
    return RANKING_SETS[data].split or data
