"""Random splits: of all ratings, in folds, and user by user."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import (
    Split,
    as_random_state,
    check_fraction,
    numbers_held_out,
    rank_within,
    split_off,
)
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import RandomState, check_integer


def random_holdout(interactions: Interactions, test_fraction: float = 0.1, random_state: RandomState = 0) -> Split:
    """Hold out a random share of all ratings.

    Parameters
    ----------
    interactions : Interactions
    test_fraction : float
        Share of the ratings to hold out, in (0, 1); the number of test ratings is rounded up.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Split

    Raises
    ------
    DataError
        If no rating would be left for training.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3, 4], [1, 2, 4]])
    >>> random_holdout(data, test_fraction=1 / 3).test
    array([False, False,  True, False, False,  True])

    Notes
    -----
    The split is that of scikit-learn's ``ShuffleSplit`` and ``train_test_split`` with the same seed.
    """
    from sklearn.model_selection import ShuffleSplit

    fraction = check_fraction("test_fraction", test_fraction)
    n_ratings = interactions.n_ratings
    n_test = int(np.ceil(fraction * n_ratings))
    if n_test == n_ratings:
        raise DataError(
            f"expected enough ratings to leave one for training, found {n_ratings} with "
            f"test_fraction={test_fraction!r}"
        )
    shuffle = ShuffleSplit(1, test_size=n_test, random_state=as_random_state(random_state))
    _, chosen = next(shuffle.split(np.arange(n_ratings)))
    return split_off(np.isin(np.arange(n_ratings), chosen))


def k_fold(
    interactions: Interactions, n_splits: int = 5, random_state: RandomState = 0, n_repeats: int = 1
) -> Iterator[Split]:
    """Divide the ratings at random into `n_splits` folds, each held out once.

    Parameters
    ----------
    interactions : Interactions
    n_splits : int
        Number of folds, at least 2. Their sizes differ by at most one rating.
    random_state : int, RandomState, Generator or None
    n_repeats : int
        Number of such divisions, each time into other folds.

    Returns
    -------
    iterator of Split

    Raises
    ------
    DataError
        If there are fewer ratings than folds.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3], [1, 2]])
    >>> [split.test.tolist() for split in k_fold(data, n_splits=2)]
    [[False, False, True, True], [True, True, False, False]]

    Notes
    -----
    With an int or a RandomState the folds are exactly those of scikit-learn's and of Surprise's ``KFold`` (with
    shuffling), or ``RepeatedKFold``, of the same seed.
    """
    from sklearn.model_selection import RepeatedKFold

    check_integer("n_splits", n_splits, minimum=2)
    check_integer("n_repeats", n_repeats, minimum=1)
    n_ratings = interactions.n_ratings
    if n_ratings < n_splits:
        raise DataError(f"expected at least one rating per fold, found {n_ratings} for n_splits={n_splits}")
    folds = RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=as_random_state(random_state))
    return (split_off(np.isin(np.arange(n_ratings), chosen)) for _, chosen in folds.split(np.arange(n_ratings)))


def user_holdout(interactions: Interactions, test_size: float | int = 0.2, random_state: RandomState = 0) -> Split:
    """Hold out a random share, or a fixed number, of the ratings of every user.

    Parameters
    ----------
    interactions : Interactions
    test_size : float or int
        A float in (0, 1) is the share of each user's ratings, rounded to the nearest number (halves up), but never
        all of them. An int >= 1 is a number per user; users with no more ratings than that keep all of them for
        training, so every user has either `test_size` test ratings or none.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Split
        Every user with ratings has at least one for training.

    Raises
    ------
    DataError
        If no user has enough ratings to hold one out.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3, 4], [1, 2, 4]])
    >>> split = user_holdout(data, test_size=1)
    >>> data.user_index[split.test].tolist()
    [0, 1]
    """
    counts = np.bincount(interactions.user_index, minlength=interactions.n_users)
    n_test = numbers_held_out("test_size", test_size, counts)
    order = as_random_state(random_state).permutation(interactions.n_ratings)
    rank = rank_within(interactions.user_index, order)
    return split_off(rank < n_test[interactions.user_index])


def k_core(interactions: Interactions, k_user: int = 5, k_item: int = 5) -> np.ndarray:
    """Return the largest set of ratings in which every user has `k_user` and every item `k_item` of them.

    Users and items with too few ratings are dropped in turn until none is left to drop; the order does not matter.

    Parameters
    ----------
    interactions : Interactions
    k_user, k_item : int
        Ratings that a user, and an item, must have to stay, at least 1.

    Returns
    -------
    ndarray of bool, shape (n_ratings,)
        All False where the data has no such ratings. `Interactions.select` keeps the dropped users and items as empty
        rows and columns; ``Interactions.from_frame(data.select(mask).to_frame())`` forgets them.

    Examples
    --------
    >>> nan = float("nan")
    >>> data = Interactions.from_dense([[5, 3, nan], [1, 2, nan], [nan, 4, 4]])
    >>> k_core(data, k_user=2, k_item=2)
    array([ True,  True,  True,  True, False, False])

    References
    ----------
    Seidman: Network structure and minimum degree, Social Networks 5(3), 1983, for two kinds of nodes.
    """
    check_integer("k_user", k_user, minimum=1)
    check_integer("k_item", k_item, minimum=1)
    users, items = interactions.user_index, interactions.item_index
    kept = np.ones(interactions.n_ratings, dtype=bool)
    while True:
        user_counts = np.bincount(users[kept], minlength=interactions.n_users)
        item_counts = np.bincount(items[kept], minlength=interactions.n_items)
        enough = kept & (user_counts[users] >= k_user) & (item_counts[items] >= k_item)
        if np.array_equal(enough, kept):
            return kept
        kept = enough
