"""Strong generalisation: test users are outside of the training data, and a share of their ratings is shown."""

from __future__ import annotations

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.data.splits.base import StrongSplit, as_random_state, check_fraction, rank_within
from air_recsys.exceptions import DataError
from air_recsys.storage.validation import RandomState


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
            f"expected users to train on beside the {np.count_nonzero(hidden)} hidden one(s), found none with "
            "ratings; lower test_user_fraction, or add users"
        )
