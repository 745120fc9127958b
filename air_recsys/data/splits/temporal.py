"""Splits in time: the last ratings of each user, or of everyone."""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import (
    Split,
    StrongSplit,
    as_random_state,
    check_fraction,
    numbers_held_out,
    rank_within,
    split_off,
)
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import RandomState


def leave_last(interactions: Interactions, n: int | float = 1) -> Split:
    """Hold out the last `n` ratings of each user, or the latest share of them.

    Parameters
    ----------
    interactions : Interactions
        With timestamps.
    n : int or float
        An int >= 1 is the number of test ratings per user; users with no more ratings than that keep all of them for
        training. A float in (0, 1) is the share of each user's ratings, rounded to the nearest number (halves up),
        but never all of them. Of ratings given at the same time, the one that stands later counts as later.

    Returns
    -------
    Split
        No test rating of a user is older than a training rating of the same user.

    Raises
    ------
    DataError
        Without timestamps, or if no user has enough ratings to hold one out.

    Examples
    --------
    >>> data = Interactions([0, 0, 0], [0, 1, 2], [5, 3, 4], ["ann"], ["x", "y", "z"], timestamps=[30, 10, 20])
    >>> leave_last(data).test
    array([ True, False, False])
    >>> leave_last(data, 0.5).test
    array([ True, False,  True])
    """
    users = interactions.user_index
    counts = np.bincount(users)
    first = counts - numbers_held_out("n", n, counts)
    rank = rank_within(users, _order_in_time(interactions))
    return split_off(rank >= first[users])


def global_time(interactions: Interactions, test_fraction: float = 0.1) -> Split:
    """Hold out the latest share of all ratings.

    Parameters
    ----------
    interactions : Interactions
        With timestamps.
    test_fraction : float
        Share of the ratings to hold out, in (0, 1); the number of test ratings is rounded up. Of ratings given at
        the same time, the one that stands later counts as later.

    Returns
    -------
    Split
        No test rating is older than a training rating.

    Raises
    ------
    DataError
        Without timestamps, or where no rating would be left for training.

    Examples
    --------
    >>> data = Interactions([0, 0, 0], [0, 1, 2], [5, 3, 4], ["ann"], ["x", "y", "z"], timestamps=[30, 10, 20])
    >>> global_time(data, test_fraction=0.5).test
    array([ True, False,  True])
    """
    fraction = check_fraction("test_fraction", test_fraction)
    order = _order_in_time(interactions)
    times = np.asarray(interactions.timestamps)
    if times.min() == times.max():
        raise DataError("expected ratings with different timestamps, found the same time for all")
    n_test = int(np.ceil(fraction * order.size))
    return split_off(np.isin(np.arange(order.size), order[order.size - n_test :]))


def _order_in_time(interactions: Interactions) -> np.ndarray:
    if interactions.timestamps is None:
        raise DataError(
            "expected ratings with timestamps, found none; pass timestamp= to Interactions.from_frame (in the shell "
            "--timestamp-column) or timestamps= to Interactions"
        )
    return np.argsort(interactions.timestamps, kind="stable")


def strong_generalisation(
    interactions: Interactions,
    test_user_fraction: float = 0.1,
    fold_in_fraction: float = 0.8,
    random_state: RandomState = 0,
) -> StrongSplit:
    """Hide a random share of the users, and divide their ratings into those to show and those to predict.

    Parameters
    ----------
    interactions : Interactions
    test_user_fraction : float
        Share of the users with at least two ratings to hide, in (0, 1); their number is rounded up. Users with one
        rating always stay in training.
    fold_in_fraction : float
        Share of each hidden user's ratings to show, in (0, 1), rounded to the nearest number (halves up); at least
        one is shown and at least one is left to predict.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    StrongSplit
        Its three masks are disjoint and cover all ratings.

    Raises
    ------
    DataError
        If no user has two ratings, or where no rating would be left for training.

    Examples
    --------
    >>> data = Interactions.from_dense([[5, 3, 4], [1, 2, 4], [2, 2, 1]])
    >>> train, fold_in, test = strong_generalisation(data, test_user_fraction=0.3)
    >>> int(train.sum()), int(fold_in.sum()), int(test.sum())
    (6, 2, 1)

    References
    ----------
    Liang, Krishnan, Hoffman, Jebara: Variational autoencoders for collaborative filtering, WWW 2018, section 4.2.
    """
    hidden_share = check_fraction("test_user_fraction", test_user_fraction)
    shown_share = check_fraction("fold_in_fraction", fold_in_fraction)
    rng = as_random_state(random_state)
    users = interactions.user_index
    counts = np.bincount(users, minlength=interactions.n_users)

    candidates = np.flatnonzero(counts >= 2)
    hidden = np.zeros(interactions.n_users, dtype=bool)
    hidden[rng.permutation(candidates)[: int(np.ceil(hidden_share * candidates.size))]] = True
    _check_hidden(hidden, counts)

    n_shown = np.clip(np.floor(shown_share * counts + 0.5), 1, counts - 1)
    shown = rank_within(users, rng.permutation(interactions.n_ratings)) < n_shown[users]
    return StrongSplit(~hidden[users], hidden[users] & shown, hidden[users] & ~shown)


def _check_hidden(hidden: np.ndarray, counts: np.ndarray) -> None:
    if not hidden.any():
        raise DataError("expected users with at least two ratings, found none")
    if not counts[~hidden].any():
        raise DataError(
            f"expected users to train on besides the {np.count_nonzero(hidden)} hidden one(s), found none with "
            "ratings; lower test_user_fraction, or add users"
        )
