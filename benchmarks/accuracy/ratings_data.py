"""The rating data that accuracy is measured on: fixed splits, and what is known beside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.datasets import (
    load_monti,
    load_movielens,
    load_movielens_fold,
    load_movielens_items,
    load_movielens_users,
)
from air_recsys.evaluation.folds import Fold, holdout_folds
from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import check_choice
from benchmarks.accuracy.experiments import experiment

VARIANTS: dict[str, Literal["100k", "1m"]] = {"ml-100k": "100k", "ml-1m": "1m"}


class RatingSet(NamedTuple):
    """Rating data with fixed splits: title, origin, and a function that reads them from the data folder."""

    title: str
    origin: str
    load: Callable[[Path], list[Fold]]


def movielens_split(root: Path) -> Fold:
    """MovieLens-1M without the tenth on which the figures of other models were measured, see `SPLIT`."""
    data = load_movielens(root, "1m")
    order = np.lexsort((data.user_index, data.item_index))
    test = np.empty(data.n_ratings, dtype=bool)
    test[order] = np.random.RandomState(1234).rand(data.n_ratings) < 0.1
    return Fold("hold-out", data.select(~test), data.select(test))


def _movielens_folds(root: Path) -> list[Fold]:
    names: tuple[Literal["u1", "u2", "u3", "u4", "u5"], ...] = ("u1", "u2", "u3", "u4", "u5")
    return [Fold(name, *load_movielens_fold(root, name)) for name in names]


_LOADERS: dict[str, Callable[[Path], list[Fold]]] = {
    "ml-100k": _movielens_folds,
    "ml-1m": lambda root: [movielens_split(root)],
    "douban": lambda root: [Fold("hold-out", *load_monti(root, "douban"))],
    "flixster": lambda root: [Fold("hold-out", *load_monti(root, "flixster"))],
}
RATING_SETS = {
    name: RatingSet(entry["title"], entry["origin"], _LOADERS[name])
    for name, entry in experiment("ratings")["set"].items()
}
SPLIT = f"MovieLens-1M, {RATING_SETS['ml-1m'].origin}"


def chosen_folds(folds: list[Fold], names: list[str]) -> list[Fold]:
    """The folds of some names, all for none; raises `ParameterError` where a name is unknown."""
    for name in names:
        check_choice("folds", name, [fold.name for fold in folds])
    return [fold for fold in folds if not names or fold.name in names]


def validation_fold(fold: Fold, seed: int = 0) -> Fold:
    """A fold within the training part: as large a share of it is tested as that fold tests of all ratings.

    The test ratings of `fold` take no part: settings can be chosen here.
    """
    share = fold.test.n_ratings / (fold.test.n_ratings + fold.train.n_ratings)
    return holdout_folds(fold.train, share, seed)[0]._replace(name=fold.name)


def known_tables(name: str, root: Path) -> dict[str, pd.DataFrame]:
    """What MovieLens tells of users (age, gender, occupation) and of films (year, genres)."""
    if name not in VARIANTS:
        expected = f"a set that tells of users and items, {' or '.join(VARIANTS)}"
        raise ParameterError(f"features: expected {expected}, found {name!r}")
    variant = VARIANTS[name]
    return {
        "user": load_movielens_users(root, variant),
        "item": load_movielens_items(root, variant).drop(columns="title"),
    }


def check_times(name: str, folds: list[Fold]) -> None:
    """Raise `ParameterError` where the ratings of a set have no timestamps."""
    if any(part.timestamps is None for fold in folds for part in (fold.train, fold.test)):
        raise ParameterError(f"times: expected ratings with timestamps, found none in {name!r} or these folds of it")
