"""Parts that lists are measured on: what is trained on, given and tested, and what is left out."""

import numpy as np
import pytest

from air_recsys import Interactions
from air_recsys.data.splits.base import StrongSplit
from air_recsys.evaluation.folds import (
    NewUsersFold,
    given_rows,
    holdout_in_time,
    holdout_of_last,
    holdout_of_new_users,
    users_asked,
)
from air_recsys.exceptions import DataError, ParameterError


def in_time(*more: tuple[int, int, int]) -> Interactions:
    """User, item and time of a few interactions; those of users 0 and 1, and item 3 and user 2, which come last."""
    rows = [(0, 0, 1), (1, 0, 2), (1, 2, 3), (0, 1, 4), (1, 3, 5), (2, 0, 6), *more]
    users, items, times = zip(*rows, strict=True)
    return Interactions(users, items, np.ones(len(rows)), list("abc"), list("wxyz"), timestamps=times)


def pairs_of(data: Interactions) -> set[tuple[int, int]]:
    return set(zip(data.user_index.tolist(), data.item_index.tolist(), strict=True))


def test_the_last_of_each_user_is_tested_where_others_had_the_item():
    with pytest.raises(DataError, match="found none among 2"):  # nobody else has items 1 and 3
        holdout_of_last(in_time())
    fold = holdout_of_last(in_time((2, 1, 0)))
    assert pairs_of(fold.test) == {(0, 1), (2, 0)}
    assert pairs_of(fold.train) == {(0, 0), (1, 0), (1, 2), (2, 1)}
    assert (fold.train.n_users, fold.train.n_items) == (3, 4)


def test_the_latest_share_is_tested_of_those_who_occur_before():
    with pytest.raises(DataError, match="found none among 3"):
        holdout_in_time(in_time(), 0.5)
    fold = holdout_in_time(in_time((0, 2, 7)), 0.5)
    assert pairs_of(fold.test) == {(0, 2)}
    assert pairs_of(fold.train) == {(0, 0), (1, 0), (1, 2)}


def test_several_last_ones_of_each_user_are_tested():
    data = in_time((0, 2, 7), (2, 1, 0))
    fold = holdout_of_last(data, 2)
    assert pairs_of(fold.test) == {(0, 1)}  # items 2 and 3 are among the last of all who have them
    assert pairs_of(fold.train) == {(0, 0), (1, 0), (2, 0), (2, 1)}  # user 2 has no more than two


def test_the_latest_share_of_each_user_is_tested():
    fold = holdout_of_last(in_time((0, 2, 7), (2, 1, 0)), 0.4)
    assert pairs_of(fold.test) == {(0, 2), (2, 0)}  # item 3 is the latest of all who have it
    assert pairs_of(fold.train) == {(0, 0), (0, 1), (1, 0), (1, 2), (2, 1)}


def test_users_with_too_few_to_hold_out_and_missing_times_are_told():
    with pytest.raises(DataError, match=r"users with more than 3 interaction\(s\), found 3 of one user at most"):
        holdout_of_last(in_time(), 3)
    with pytest.raises(DataError, match="expected ratings with timestamps, found none"):
        holdout_of_last(Interactions.from_dense([[1, 1]]), 3)


def test_new_users_are_given_four_fifths_of_their_items_and_trained_on_by_nobody():
    data = Interactions.from_dense(np.ones((20, 10)))
    fold = holdout_of_new_users(data, 0.1, 0)
    hidden = users_asked(fold)
    assert hidden.size == 2
    assert fold.train.n_ratings == 180
    assert not np.isin(hidden, fold.train.user_index).any()
    assert pairs_of(fold.given).isdisjoint(pairs_of(fold.test))
    assert np.bincount(fold.given.user_index)[hidden].tolist() == [8, 8]
    np.testing.assert_array_equal(given_rows(fold).toarray(), fold.given.to_csr().toarray()[hidden])
    assert (fold.given.n_users, fold.test.n_items) == (20, 10)


def test_items_that_no_training_user_has_are_neither_given_nor_tested():
    """Every user has an item that nobody else has, beside five that all have."""
    data = Interactions.from_dense(np.where(np.hstack([np.ones((30, 5)), np.eye(30)]) > 0, 1.0, np.nan))
    for seed in range(5):
        fold = holdout_of_new_users(data, 0.2, seed)
        assert max(fold.given.item_index.max(), fold.test.item_index.max()) < 5
        assert set(fold.given.user_index) == set(fold.test.user_index)


def test_new_users_whose_items_nobody_has_cannot_be_tested():
    alone = Interactions.from_dense(np.where(np.kron(np.eye(5), np.ones((1, 2))) > 0, 1.0, np.nan))
    with pytest.raises(DataError, match="at least two items that other users have, found none among 1"):
        holdout_of_new_users(alone, 0.1, 0)
    with pytest.raises(DataError, match="found none with ratings; lower test_user_fraction, or add users"):
        holdout_of_new_users(Interactions.from_dense([[1, 1, 1]]), 0.1, 0)
    with pytest.raises(ParameterError, match="must be a number > 0 and < 1, found 1"):
        holdout_of_new_users(alone, 1, 0)


def test_the_parts_of_new_users_are_those_of_the_masks():
    data = Interactions.from_dense([[1, 1], [1, 1]])
    train, given, test = np.array([1, 1, 0, 0]) > 0, np.array([0, 0, 1, 0]) > 0, np.array([0, 0, 0, 1]) > 0
    fold = NewUsersFold.of(data, StrongSplit(train, given, test))
    assert [pairs_of(part) for part in fold] == [{(0, 0), (0, 1)}, {(1, 0)}, {(1, 1)}]
