"""Training and test parts of a comparison: given ones, random ones, the latest, folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from air_recsys.data.ids import IdIndex, as_id_array, encode_ids, text_beside
from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import check_fraction
from air_recsys.evaluation.folds import (
    Fold,
    cross_validation_folds,
    holdout_folds,
    holdout_in_time,
    holdout_of_last,
    holdout_of_users,
)
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import Split
from air_recsys.storage.validation import check_integer

SPLITS = ("random", "time", "last")
AnySplit = str | int | Split | Sequence[Split] | None


class Parts(NamedTuple):
    """Folds, and in words how they were made."""

    folds: list[Fold]
    told: str


def is_likes(data: Interactions) -> bool:
    """Whether all ratings are alike, so that only lists can be compared."""
    return data.n_ratings > 0 and bool(np.ptp(data.ratings) == 0)


def make_parts(data: Interactions, split: AnySplit, test_fraction: float | None, seed: int) -> Parts:
    """Divide ratings or likes.

    Parameters
    ----------
    split : {"random", "time", "last"}, int, Split, sequence of Split, or None
        Random is a share of all ratings, and of likes a share of each user's. None is "random"; an int is a number of
        random folds.
    test_fraction : float, optional
        The share that is held out, of "random", "time" and "last". By default 0.1, of likes 0.2, and of "last" a
        single one of each user.
    """
    split = "random" if split is None else split
    if split not in SPLITS and test_fraction is not None:
        raise ParameterError(f"test_fraction is read by the splits {', '.join(SPLITS)}, found it beside {split!r}")
    likes = is_likes(data)
    share = check_fraction("test_fraction", (0.2 if likes else 0.1) if test_fraction is None else test_fraction)
    if split == "last" and test_fraction is None:
        return Parts([holdout_of_last(data)], "the last of each user held out, of items that others have")
    if isinstance(split, str):
        return _by_name(data, split, share, likes, seed)
    if isinstance(split, Split):
        split = [split]
    if isinstance(split, Sequence):
        names = [f"fold {number}" for number in range(1, len(split) + 1)] if len(split) > 1 else ["given"]
        return Parts([_part(data, name, each) for name, each in zip(names, split, strict=True)], "given splits")
    n_folds = check_integer("split", split, minimum=2)
    return Parts(cross_validation_folds(data, n_folds, seed), f"{n_folds} random folds")


def _by_name(data: Interactions, split: str, share: float, likes: bool, seed: int) -> Parts:
    if split == "time":
        fold = holdout_in_time(data, share)
        return Parts([fold], f"the latest {share:.0%} held out, of users and items that occur before")
    if split == "last":
        held_out = f"the latest {share:.0%} of each user held out, of items that others have"
        return Parts([holdout_of_last(data, share)], held_out)
    if split != "random":
        raise ParameterError(f"split must be one of {', '.join(SPLITS)}, a number of folds or masks, found {split!r}")
    if likes:
        return Parts([holdout_of_users(data, share, seed)], f"{share:.0%} of each user's held out at random")
    return Parts(holdout_folds(data, share, seed), f"{share:.0%} held out at random")


def _part(data: Interactions, name: str, split: Any) -> Fold:
    if not isinstance(split, Split):
        raise ParameterError(f"expected splits of air_recsys.splits, found {type(split).__name__}")
    return _apart(name, data.select(split.train), data.select(split.test))


def _apart(name: str, train: Interactions, test: Interactions) -> Fold:
    """A fold, or `DataError` where pairs are in both of its parts."""
    shared = np.flatnonzero(np.isin(test.pair_index, train.pair_index))
    if shared.size:
        user, item = test.user_ids.item(test.user_index[shared[0]]), test.item_ids.item(test.item_index[shared[0]])
        expected = "expected test ratings that are not among the training ratings"
        raise DataError(f"{expected}, found {shared.size} in both, the first of user {user!r} and item {item!r}")
    return Fold(name, train, test.measured_alone())


def given_parts(train: Interactions, test: Interactions) -> Parts:
    """Given training and test ratings as one fold over the ids of both.

    Ids of one part that are integers count as text where those of the other are text.
    """
    users, items = (_of_both(*sides) for sides in ((train.users, test.users), (train.items, test.items)))
    if train.user_features is not None or train.item_features is not None:
        if users is not train.users or items is not train.items:
            raise DataError("expected test ratings of users and items of the training ratings, which have features")
        whole = train
    else:
        whole = _over(train, users, items)
    return Parts([_apart("given", whole, _over(test, users, items))], "given test ratings")


def n_items_of(train: Interactions, test: Interactions | None) -> int:
    """The number of items of the parts that are made of ratings, or of training and test ratings.

    Examples
    --------
    >>> train, test = (Interactions.from_dense([[5.0]], item_ids=[item]) for item in "xy")
    >>> n_items_of(train, None), n_items_of(train, test)
    (1, 2)
    """
    return train.n_items if test is None else len(_of_both(train.items, test.items))


def _of_both(one: IdIndex, other: IdIndex) -> IdIndex:
    ids, others = text_beside(one.ids, other.ids), text_beside(other.ids, one.ids)
    if ids is one.ids and np.isin(others, ids).all():
        return one
    return IdIndex(encode_ids(as_id_array([*ids.tolist(), *others.tolist()]), one.kind)[1], one.kind)


def _over(data: Interactions, users: IdIndex, items: IdIndex) -> Interactions:
    """The same ratings over other ids."""
    same = Interactions(
        users.lookup(text_beside(data.user_ids, users.ids))[data.user_index],
        items.lookup(text_beside(data.item_ids, items.ids))[data.item_index],
        data.ratings,
        users.ids,
        items.ids,
        timestamps=data.timestamps,
        weights=data.weights,
        relations=data.relations,
        allow_negative=True,
        empty=True,
    )
    same.kinds = data.kinds and data.kinds.each(lambda each: _over(each, users, items))
    return same
