"""Splits in time: the last ratings of each user, or of everyone."""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import Split, check_fraction, numbers_held_out, rank_within, split_off
from air_recsys.exceptions import DataError


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
    n_test = int(np.ceil(fraction * order.size))
    return split_off(np.isin(np.arange(order.size), order[order.size - n_test :]))


def _order_in_time(interactions: Interactions) -> np.ndarray:
    if interactions.timestamps is None:
        raise DataError(
            "expected ratings with timestamps, found none; pass timestamp= to Interactions.from_frame (in the shell "
            "--timestamp-column) or timestamps= to Interactions"
        )
    return np.argsort(interactions.timestamps, kind="stable")
