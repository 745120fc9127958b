"""Types, seeds and checks that all splits share."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.storage.validation import RandomState, check_integer


class Split(NamedTuple):
    """Two disjoint masks over the ratings of an `Interactions`, for `Interactions.select`.

    Attributes
    ----------
    train, test : ndarray of bool, shape (n_ratings,)
        Both hold ratings. Together they cover all ratings unless the split says otherwise.
    """

    train: np.ndarray
    test: np.ndarray


class StrongSplit(NamedTuple):
    """Three disjoint masks over the ratings: one for the visible users, two for the hidden users.

    Attributes
    ----------
    train : ndarray of bool, shape (n_ratings,)
        All ratings of the users that the model is trained on.
    fold_in : ndarray of bool, shape (n_ratings,)
        The ratings of the hidden users that are given to the trained model.
    test : ndarray of bool, shape (n_ratings,)
        The ratings of the hidden users to predict.
    """

    train: np.ndarray
    fold_in: np.ndarray
    test: np.ndarray


def as_random_state(random_state: RandomState) -> np.random.RandomState:
    """Return the RandomState of a seed, a RandomState, a Generator or None; global state stays untouched.

    scikit-learn and Surprise shuffle with a RandomState, so an int seed here gives their folds. A Generator shares
    its stream of bits, so a draw from the result advances the Generator.
    """
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    if random_state is None:
        return np.random.RandomState()
    seed = check_integer("random_state", random_state)
    if seed >= 2**32:
        raise ParameterError(f"random_state must be an integer < 2**32, found {seed}")
    return np.random.RandomState(seed)


def check_fraction(name: str, value: Any) -> float:
    """Return `value` as a float, or raise `ParameterError` unless it lies strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 1:
        raise ParameterError(f"{name} must be a number > 0 and < 1, found {value!r}")
    return float(value)


def numbers_held_out(name: str, size: Any, counts: np.ndarray) -> np.ndarray:
    """Return how many ratings of each user are held out, (n_users,).

    An int is that number, of users with more; a float the share, rounded to the nearest number, but never all.
    """
    if isinstance(size, numbers.Integral):
        number = check_integer(name, size, minimum=1)
        return np.where(counts > number, number, 0)
    shares = np.floor(check_fraction(name, size) * counts + 0.5).astype(np.int64)
    return np.minimum(shares, np.maximum(counts - 1, 0))


def split_off(test: np.ndarray) -> Split:
    """Return the split with this test mask and all other ratings for training."""
    n_test = np.count_nonzero(test)
    if n_test in (0, test.size):
        raise DataError(
            f"expected ratings on both sides of the split, found {test.size - n_test} for training and {n_test} "
            "for testing"
        )
    return Split(~test, test)


def rank_within(groups: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return each rating's place 0, 1, ... among the ratings of its group, taken in `order`."""
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = pd.Series(order).groupby(groups[order]).cumcount()
    return rank


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
