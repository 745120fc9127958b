"""Given splits: a list of test pairs, or a column of fold numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split, split_off
from air_recsys.exceptions import DataError


def predefined(interactions: Interactions, test_users: Any, test_items: Any) -> Split:
    """Hold out the listed pairs of a user and an item.

    Parameters
    ----------
    interactions : Interactions
        All ratings, those of the test pairs included.
    test_users, test_items : array_like of ids, shape (n_test,)
        The pairs, in any order.

    Returns
    -------
    Split

    Raises
    ------
    DataError
        For lists of different lengths, a pair that has no rating, or pairs that leave no training ratings.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]], user_ids=["ann", "bob"], item_ids=["x", "y"])
    >>> predefined(data, ["bob"], ["x"]).test
    array([False, False,  True, False])
    """
    users, items = interactions.users.lookup(test_users), interactions.items.lookup(test_items)
    if users.size != items.size:
        raise DataError(f"expected one item for each test user, found {users.size} users and {items.size} items")
    rated = interactions.pair_index
    wanted = users * interactions.n_items + items
    absent = np.flatnonzero((users < 0) | (items < 0) | ~np.isin(wanted, rated))
    if absent.size:
        raise DataError(
            f"expected test pairs that have a rating, found {absent.size} without, the first at position {absent[0]}"
        )
    return split_off(np.isin(rated, wanted))


def predefined_folds(interactions: Interactions, test_fold: Any) -> Iterator[Split]:
    """Hold out one given fold at a time.

    Parameters
    ----------
    interactions : Interactions
    test_fold : array_like of int, shape (n_ratings,)
        The fold of each rating, in the order of the ratings; -1 for ratings that are always for training.

    Returns
    -------
    iterator of Split
        One split per fold, in ascending order of the numbers.

    Raises
    ------
    DataError
        For anything but one integer >= -1 per rating, or where one fold holds all ratings or there is none.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]])
    >>> [split.test.tolist() for split in predefined_folds(data, [0, 0, 7, -1])]
    [[True, True, False, False], [False, False, True, False]]
    """
    fold = np.asarray(test_fold)
    if fold.shape != (interactions.n_ratings,) or fold.dtype.kind not in "iu":
        raise DataError(
            f"expected one integer fold for each of {interactions.n_ratings} ratings, found {fold.dtype} {fold.shape}"
        )
    if fold.min() < -1 or fold.max() < 0 or (fold == fold[0]).all():
        raise DataError(
            "expected fold numbers >= 0, or -1 for always training, and more than one of them, found "
            f"{np.unique(fold)[:5].tolist()}"
        )
    return (split_off(fold == number) for number in np.unique(fold[fold >= 0]))
