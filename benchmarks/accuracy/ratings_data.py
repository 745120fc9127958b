"""The rating data that accuracy is measured on: fixed splits, and validation parts of their training parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from air_recsys.datasets import load_monti, load_movielens_fold
from air_recsys.evaluation.folds import Fold
from air_recsys.splits import random_holdout
from air_recsys.storage.validation import check_choice
from benchmarks.speed.ratings import SPLIT, movielens_split


class RatingSet(NamedTuple):
    """Rating data with fixed splits: title, origin, and a function that reads them from the data folder."""

    title: str
    origin: str
    load: Callable[[Path], list[Fold]]


def chosen_folds(folds: list[Fold], names: list[str]) -> list[Fold]:
    """Return the folds of some names, all for none; raise `ParameterError` where a name is unknown."""
    for name in names:
        check_choice("--fold", name, [fold.name for fold in folds])
    return [fold for fold in folds if not names or fold.name in names]


def validation_fold(fold: Fold, seed: int = 0) -> Fold:
    """Return a fold within the training part: as large a share of it is tested as that fold tests of all ratings.

    The test ratings of `fold` take no part: settings can be chosen here.
    """
    share = fold.test.n_ratings / (fold.test.n_ratings + fold.train.n_ratings)
    split = random_holdout(fold.train, share, random_state=seed)
    return Fold(fold.name, fold.train.select(split.train), fold.train.select(split.test))


def _movielens_folds(root: Path) -> list[Fold]:
    names: tuple[Literal["u1", "u2", "u3", "u4", "u5"], ...] = ("u1", "u2", "u3", "u4", "u5")
    return [Fold(name, *load_movielens_fold(root, name)) for name in names]


_MONTI = "the fixed split of Monti, Bronstein, Bresson 2017, 3000 x 3000"

RATING_SETS = {
    "ml-100k": RatingSet("MovieLens-100K", "the predefined folds u1 .. u5", _movielens_folds),
    "ml-1m": RatingSet("MovieLens-1M", SPLIT.partition(", ")[2], lambda root: [movielens_split(root)]),
    "douban": RatingSet("Douban", _MONTI, lambda root: [Fold("hold-out", *load_monti(root, "douban"))]),
    "flixster": RatingSet("Flixster", _MONTI, lambda root: [Fold("hold-out", *load_monti(root, "flixster"))]),
}
