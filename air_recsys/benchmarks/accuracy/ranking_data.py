"""The interactions that rankings are measured on: published splits, and hold-outs user by user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from air_recsys.datasets import load_implicit_lists, load_movielens
from air_recsys.evaluation.folds import Fold
from air_recsys.splits import user_holdout

_SHARE = 0.2


class RankingSet(NamedTuple):
    """Interactions with a fixed split: title, origin, and a function that reads it from the data folder."""

    title: str
    origin: str
    load: Callable[[Path], Fold]


def validation_part(fold: Fold, seed: int = 0) -> Fold:
    """Return a fold within the training part: a fifth of each user's interactions is tested, at random.

    The test interactions of `fold` take no part: settings can be chosen here.
    """
    split = user_holdout(fold.train, _SHARE, seed)
    return Fold("validation", fold.train.select(split.train), fold.train.select(split.test))


def _movielens(root: Path) -> Fold:
    data = load_movielens(root, "1m")
    split = user_holdout(data, _SHARE, 0)
    return Fold("test", data.select(split.train), data.select(split.test))


_LIGHTGCN = "the split published with NGCF and LightGCN"

RANKING_SETS = {
    "gowalla": RankingSet("Gowalla", _LIGHTGCN, lambda root: Fold("test", *load_implicit_lists(root, "gowalla"))),
    "yelp2018": RankingSet("Yelp2018", _LIGHTGCN, lambda root: Fold("test", *load_implicit_lists(root, "yelp2018"))),
    "ml-1m": RankingSet(
        "MovieLens-1M", "all ratings as interactions, a fifth of each user's hidden, seed 0", _movielens
    ),
}
