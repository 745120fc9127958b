"""Cold-start splits: whole users, whole items, or both are hidden."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split, as_random_state, split_off
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import RandomState, check_integer


def cold_user_folds(interactions: Interactions, n_splits: int = 5, random_state: RandomState = 0) -> Iterator[Split]:
    """Divide the users at random into folds and hide all ratings of one fold at a time.

    Parameters
    ----------
    interactions : Interactions
    n_splits : int
        Number of folds, at least 2. Users without ratings are in none.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    iterator of Split
        No user has ratings on both sides.

    Raises
    ------
    DataError
        If fewer users than folds have ratings.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]])
    >>> [split.test.tolist() for split in cold_user_folds(data, n_splits=2)]
    [[False, False, True, True], [True, True, False, False]]

    Notes
    -----
    In drug-target prediction this is setting CVS2 (and `cold_item_folds` CVS3) where drugs are the users.
    """
    fold = _fold_numbers(interactions.user_index, "users", n_splits, as_random_state(random_state))
    return (split_off(fold == number) for number in range(n_splits))


def cold_item_folds(interactions: Interactions, n_splits: int = 5, random_state: RandomState = 0) -> Iterator[Split]:
    """Divide the items at random into folds and hide all ratings of one fold at a time.

    It is `cold_user_folds` with the roles of users and items exchanged, parameters and errors included.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]])
    >>> [split.test.tolist() for split in cold_item_folds(data, n_splits=2)]
    [[False, True, False, True], [True, False, True, False]]
    """
    fold = _fold_numbers(interactions.item_index, "items", n_splits, as_random_state(random_state))
    return (split_off(fold == number) for number in range(n_splits))


def cold_both_folds(interactions: Interactions, n_splits: int = 5, random_state: RandomState = 0) -> Iterator[Split]:
    """Hide a fold of the users and a fold of the items at a time, and test where they meet.

    A test rating has a hidden user *and* a hidden item, a training rating a visible user and a visible item. Ratings
    with only one side hidden are in neither mask, so the two do not cover the data.

    Parameters
    ----------
    interactions : Interactions
    n_splits : int
        Number of folds of the users, and of the items, at least 2.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    iterator of Split
        ``n_splits ** 2`` splits, one for each pair of a user fold and an item fold. Each rating is tested once.

    Raises
    ------
    DataError
        If fewer users or items than folds have ratings, or where a pair of folds would leave no training or no
        test ratings, as sparse data in many folds does. It is raised before the first split is made.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]])
    >>> train, test = next(cold_both_folds(data, n_splits=2))
    >>> train.tolist(), test.tolist()
    ([False, True, False, False], [False, False, True, False])
    """
    rng = as_random_state(random_state)
    user_fold = _fold_numbers(interactions.user_index, "users", n_splits, rng)
    item_fold = _fold_numbers(interactions.item_index, "items", n_splits, rng)
    _check_blocks(user_fold, item_fold, n_splits)
    return (
        Split((user_fold != row) & (item_fold != column), (user_fold == row) & (item_fold == column))
        for row, column in itertools.product(range(n_splits), repeat=2)
    )


def _fold_numbers(index: np.ndarray, kind: str, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the number of the fold of each rating's user or item."""
    from sklearn.model_selection import KFold

    check_integer("n_splits", n_splits, minimum=2)
    present, position = np.unique(index, return_inverse=True)
    if present.size < n_splits:
        raise DataError(f"expected at least {n_splits} {kind} with ratings, one per fold, found {present.size}")
    fold = np.empty(present.size, dtype=np.int64)
    for number, (_, hidden) in enumerate(KFold(n_splits, shuffle=True, random_state=rng).split(present)):
        fold[hidden] = number
    return fold[position]


def _check_blocks(user_fold: np.ndarray, item_fold: np.ndarray, n_splits: int) -> None:
    cells = np.bincount(user_fold * n_splits + item_fold, minlength=n_splits**2)
    n_test = cells.reshape(n_splits, n_splits)
    n_train = n_test.sum() - n_test.sum(axis=0) - n_test.sum(axis=1, keepdims=True) + n_test
    broken = np.count_nonzero((n_test == 0) | (n_train == 0))
    if broken:
        raise DataError(
            f"expected training and test ratings in each of the {n_splits**2} blocks of user and item folds, "
            f"found {broken} block(s) without; choose a smaller n_splits than {n_splits}"
        )
