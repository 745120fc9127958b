"""Training and test parts: random ones, folds, items of each user, later ones, or users held out whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import StrongSplit
from air_recsys.exceptions import DataError
from air_recsys.models.graph_ranker.inputs import interaction_pattern
from air_recsys.splits import (
    Split,
    global_time,
    k_fold,
    leave_last,
    random_holdout,
    strong_generalisation,
    user_holdout,
)

GIVEN = 0.8
"""The share of the items of a user held out whole that is given; the rest is tested."""


class Fold(NamedTuple):
    """A training and a test part over the same users and items."""

    name: str
    train: Interactions
    test: Interactions

    @classmethod
    def of(cls, name: str, data: Interactions, split: Split) -> Self:
        """The parts of a split; limits are not tested."""
        return cls(name, data.select(split.train), data.select(split.test).measured_alone())


def holdout_folds(data: Interactions, test_fraction: float, seed: int) -> list[Fold]:
    """One fold with a random test part."""
    split = random_holdout(data, test_fraction, random_state=seed)
    return [Fold.of("hold-out", data, split)]


def cross_validation_folds(data: Interactions, n_splits: int, seed: int) -> list[Fold]:
    """So many random folds."""
    splits = k_fold(data, n_splits, random_state=seed)
    return [Fold.of(f"fold {number}", data, split) for number, split in enumerate(splits, start=1)]


class NewUsersFold(NamedTuple):
    """Users held out whole: a model is trained without them, is given a part of their items and asked for the rest.

    All three parts have the same users and items.
    """

    train: Interactions
    given: Interactions
    test: Interactions

    @classmethod
    def of(cls, data: Interactions, split: StrongSplit) -> Self:
        """The parts of a split."""
        return cls(*(data.select(mask) for mask in split))

    @property
    def name(self) -> str:
        """Its name in tables."""
        return "new users"


def holdout_of_users(data: Interactions, test_fraction: float, seed: int) -> Fold:
    """A fold that tests a random share of each user's interactions."""
    split = user_holdout(data, test_fraction, seed)
    return Fold.of("hold-out", data, split)


def holdout_of_last(data: Interactions, n: int | float = 1) -> Fold:
    """A fold that tests the last n interactions of each user, or that share of them, of items that others have."""
    most = np.bincount(data.user_index).max(initial=0)
    if data.timestamps is not None and most <= n:
        raise DataError(f"expected users with more than {n} interaction(s), found {most} of one user at most")
    return _known_alone("last", data, leave_last(data, n))


def holdout_in_time(data: Interactions, test_fraction: float) -> Fold:
    """A fold that tests the latest share of all interactions, of users and items that occur before."""
    return _known_alone("time", data, global_time(data, test_fraction))


def holdout_of_new_users(data: Interactions, test_fraction: float, seed: int) -> NewUsersFold:
    """A fold that tests a random share of the users, who take no part in the training.

    The protocol is that of Mult-VAE and EASE: four fifths of the items of each of them are given, at random, and the
    rest is tested. Items that no training user has are left out of both, and so are users of whom one part is empty
    then. Users with a single interaction are trained on.

    References
    ----------
    Liang, Krishnan, Hoffman, Jebara: Variational autoencoders for collaborative filtering, WWW 2018, section 4.2.
    Steck: Embarrassingly shallow autoencoders for sparse data, WWW 2019, section 4.
    """
    split = strong_generalisation(data, test_fraction, GIVEN, seed)
    known = _has(data.item_index, split.train, data.n_items)
    given = split.fold_in & known
    test = split.test & known & _has(data.user_index, given, data.n_users)
    given &= _has(data.user_index, test, data.n_users)
    if not test.any():
        n_hidden = np.unique(data.user_index[split.test]).size
        raise DataError(
            f"expected hidden users with at least two items that other users have, found none among {n_hidden}"
        )
    return NewUsersFold.of(data, StrongSplit(split.train, given, test))


def users_asked(fold: Fold | NewUsersFold) -> np.ndarray:
    """The positions of the users with test items, ascending."""
    return np.unique(fold.test.user_index)


def given_rows(fold: Fold | NewUsersFold) -> sp.csr_array:
    """What users with test items are known by: 1 for every item given, (b, n_items)."""
    return interaction_pattern(fold.train if isinstance(fold, Fold) else fold.given)[users_asked(fold)]


def shown_rows(fold: Fold | NewUsersFold) -> sp.csr_array:
    """1 for each item that a user is known by, (n_users, n_items)."""
    trained = interaction_pattern(fold.train)
    return trained if isinstance(fold, Fold) else sp.csr_array(trained + interaction_pattern(fold.given))


def told_of_unknown(folds: Sequence[Fold | NewUsersFold], what: str = "ratings") -> str:
    """How many test ratings have a user or an item that the training part lacks, and of limits; "" without any."""
    of_users, of_items = (
        np.concatenate([~np.isin(getattr(fold.test, name), getattr(fold.train, name)) for fold in folds])
        for name in ("user_index", "item_index")
    )
    sides = f"a user ({of_users.sum():,}) or an item ({of_items.sum():,}) that is not in the training part"
    n_all = (of_users | of_items).sum()
    told = [f"{n_all:,} test {what} have {sides}, and are answered by means or what is popular"] if n_all else []
    if any(fold.train.relations is not None for fold in folds):
        told.append("limits are for systems that know them to learn from; the others, and the test, have none")
    return "; ".join(told)


def _known_alone(name: str, data: Interactions, split: Split) -> Fold:
    """A fold without test interactions of users or items that the training part lacks."""
    known = split.test & _has(data.user_index, split.train, data.n_users)
    known &= _has(data.item_index, split.train, data.n_items)
    if not known.any():
        raise DataError(
            f"expected later interactions of users and items that occur before, found none among {split.test.sum()}"
        )
    return Fold.of(name, data, Split(split.train, known))


def _has(index: np.ndarray, part: np.ndarray, size: int) -> np.ndarray:
    """Whether a part has the user or the item of each interaction, (n_ratings,)."""
    return np.bincount(index[part], minlength=size)[index] > 0
