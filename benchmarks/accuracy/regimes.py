"""Rating data in which little is known: few ratings, whole items and whole users hidden; and what is known beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.data.sets.monti import MontiGraphs
from air_recsys.datasets import load_monti_graphs, load_movielens, load_movielens_items, load_movielens_users
from air_recsys.evaluation.folds import Fold
from air_recsys.exceptions import ParameterError
from air_recsys.storage.validation import check_real
from benchmarks.accuracy.ratings_data import validation_fold

_VARIANTS: dict[str, Literal["100k", "1m"]] = {"ml-100k": "100k", "ml-1m": "1m"}
_HIDDEN = 0.1  # of the items, or users


def regime_folds(
    name: str, root: Path, kept: Sequence[float], cold: Sequence[str], *, validation: bool = False, seed: int = 0
) -> list[Fold]:
    """Return a fold for each share of all ratings that is kept, and for each side of which a tenth is hidden whole.

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
    """Return what MovieLens tells of users (age, gender, occupation) and of films (year, genres)."""
    variant = _variant(name)
    return {
        "user": load_movielens_users(root, variant),
        "item": load_movielens_items(root, variant).drop(columns="title"),
    }


def known_graphs(name: str, root: Path) -> MontiGraphs:
    """Return the graphs that come with Flixster and Douban, in the order of the ids."""
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
