"""The splits that trainings are timed on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.datasets import load_movielens
from air_recsys.evaluation.folds import Fold, holdout_folds

MOVIELENS = "MovieLens-1M, a random tenth held out: RandomState(1234) over the ratings ordered by item, then user"


def movielens_split(root: Path) -> Fold:
    """MovieLens-1M without the tenth on which the figures of other models were measured, and this tenth."""
    data = load_movielens(root, "1m")
    order = np.lexsort((data.user_index, data.item_index))
    test = np.empty(data.n_ratings, dtype=bool)
    test[order] = np.random.RandomState(1234).rand(data.n_ratings) < 0.1
    return Fold("hold-out", data.select(~test), data.select(test))


def planted_split(n_users: int, n_items: int, n_ratings: int, seed: int) -> Fold:
    """Planted ratings, and a random tenth of them held out."""
    data = make_planted_ratings(n_users, n_items, n_ratings, random_state=seed).interactions
    return holdout_folds(data, 0.1, seed)[0]


def split_of(root: Path | None, planted: list[int], seed: int) -> tuple[Fold, str]:
    """The split of a case and where it comes from: planted of so many users, items and ratings, or MovieLens-1M."""
    if planted:
        n_users, n_items, n_ratings = planted
        title = f"{n_ratings} planted ratings of {n_users} users and {n_items} items, a random tenth held out"
        return planted_split(n_users, n_items, n_ratings, seed), title
    assert root is not None
    return movielens_split(root), MOVIELENS
