"""The rating data that accuracy is measured on: fixed splits, splits with little known, and what is known beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.monti import MontiGraphs
from air_recsys.datasets import (
    load_monti,
    load_monti_graphs,
    load_movielens,
    load_movielens_fold,
    load_movielens_items,
    load_movielens_users,
)
from air_recsys.evaluation.folds import Fold, holdout_folds
from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import check_choice, check_real
from benchmarks.accuracy.experiments import experiment

_VARIANTS: dict[str, Literal["100k", "1m"]] = {"ml-100k": "100k", "ml-1m": "1m"}
_HIDDEN = 0.1  # of the items, or users


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
        check_choice("--fold", name, [fold.name for fold in folds])
    return [fold for fold in folds if not names or fold.name in names]


def validation_fold(fold: Fold, seed: int = 0) -> Fold:
    """A fold within the training part: as large a share of it is tested as that fold tests of all ratings.

    The test ratings of `fold` take no part: settings can be chosen here.
    """
    share = fold.test.n_ratings / (fold.test.n_ratings + fold.train.n_ratings)
    return holdout_folds(fold.train, share, seed)[0]._replace(name=fold.name)


def regime_folds(
    name: str, root: Path, kept: Sequence[float], cold: Sequence[str], *, validation: bool = False, seed: int = 0
) -> list[Fold]:
    """A fold for each share of all ratings that is kept, and for each side of which a tenth is hidden whole.

    Parameters
    ----------
    name : str
        "ml-100k" or "ml-1m".
    root : Path
    kept : sequence of float
        Shares of the ratings that are shown, at random; all others are asked for.
    cold : sequence of str
        "user", "item".
    validation : bool
        Divide the training part of each once more, so that settings can be chosen there.

    Raises
    ------
    ParameterError
        For a set without features, and a share that is not between 0 and 1.
    """
    data = load_movielens(root, _variant(name))
    folds = [_few(data, check_real("--keep", share, minimum=0.0, maximum=1.0), seed) for share in kept]
    folds += [_cold(data, side, seed) for side in cold]
    if not validation:
        return folds
    inner = [validation_fold(fold, seed) for fold in folds[: len(kept)]]
    return inner + [_cold(fold.train, side, seed) for fold, side in zip(folds[len(kept) :], cold, strict=True)]


def known_tables(name: str, root: Path) -> dict[str, pd.DataFrame]:
    """What MovieLens tells of users (age, gender, occupation) and of films (year, genres)."""
    variant = _variant(name)
    return {
        "user": load_movielens_users(root, variant),
        "item": load_movielens_items(root, variant).drop(columns="title"),
    }


def known_graphs(name: str, root: Path) -> MontiGraphs:
    """The graphs that come with Flixster and Douban, in the order of the ids."""
    if name not in ("flixster", "douban"):
        raise ParameterError(f"expected a set that comes with graphs, flixster or douban, found {name!r}")
    return load_monti_graphs(root, name)


def check_times(folds: Mapping[str, Sequence[Fold]]) -> None:
    """Raise `ParameterError` where the ratings of a set have no timestamps."""
    for name, parts in folds.items():
        if any(part.timestamps is None for fold in parts for part in (fold.train, fold.test)):
            raise ParameterError(f"--times needs ratings with timestamps, found none in {name!r} or these folds of it")


def _variant(name: str) -> Literal["100k", "1m"]:
    if name not in _VARIANTS:
        raise ParameterError(f"expected a set that tells of users and items, {' or '.join(_VARIANTS)}, found {name!r}")
    return _VARIANTS[name]


def _few(data: Interactions, share: float, seed: int) -> Fold:
    order = np.random.default_rng([seed, round(1000 * share)]).permutation(data.n_ratings)
    shown = np.zeros(data.n_ratings, dtype=bool)
    shown[order[: round(share * data.n_ratings)]] = True
    return Fold(f"{share:.0%} kept", data.select(shown), data.select(~shown))


def _cold(data: Interactions, side: str, seed: int) -> Fold:
    """Hide a tenth of the rated users, or items; the shown ratings know nothing of them, not even their ids."""
    index = data.user_index if side == "user" else data.item_index
    rated = np.unique(index)
    hidden = np.random.default_rng([seed, side == "item"]).choice(rated, round(_HIDDEN * rated.size), replace=False)
    asked = np.isin(index, hidden)
    shown = Interactions.from_frame(data.select(~asked).to_frame().drop(columns="timestamp", errors="ignore"))
    return Fold(f"cold {side}s", shown, data.select(asked))
