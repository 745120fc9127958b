"""Splits in time: order, ties, and counts."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from split_laws import check_parts, counts_per_user, fast, fractions, grid, interactions

from air_recsys import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import global_time, leave_last


def moments(data):
    """The time of each rating, ties told apart by its position."""
    return list(zip(data.timestamps.tolist(), range(data.n_ratings), strict=True))


@fast
@given(interactions(timestamps=True), st.integers(1, 3))
def test_leave_last_takes_the_latest_of_each_user(data, n):
    counts = np.bincount(data.user_index, minlength=data.n_users)
    expected = set()
    for user in range(data.n_users):
        own = sorted(moment for moment, owner in zip(moments(data), data.user_index, strict=True) if owner == user)
        expected |= {position for _, position in own[-n:]} if len(own) > n else set()
    if not expected:
        with pytest.raises(DataError):
            leave_last(data, n)
        return
    split = leave_last(data, n)
    check_parts(data, split)
    assert set(np.flatnonzero(split.test)) == expected
    np.testing.assert_array_equal(counts_per_user(data, split.test), np.where(counts > n, n, 0))


@fast
@given(interactions(timestamps=True), fractions)
def test_leave_last_takes_the_latest_share_of_each_user(data, fraction):
    counts = np.bincount(data.user_index, minlength=data.n_users)
    expected = np.minimum(np.floor(fraction * counts + 0.5), np.maximum(counts - 1, 0))
    if not expected.any():
        with pytest.raises(DataError):
            leave_last(data, fraction)
        return
    split = leave_last(data, fraction)
    check_parts(data, split)
    np.testing.assert_array_equal(counts_per_user(data, split.test), expected)
    for user in range(data.n_users):
        own = [
            (moment, held)
            for moment, held, who in zip(moments(data), split.test, data.user_index, strict=True)
            if who == user
        ]
        held_out = [moment for moment, held in own if held]
        assert not held_out or min(held_out) > max(moment for moment, held in own if not held)


@fast
@given(interactions(min_ratings=2, timestamps=True), fractions)
def test_global_time_takes_the_latest_of_all(data, fraction):
    n_test = math.ceil(fraction * data.n_ratings)
    assume(n_test < data.n_ratings)
    split = global_time(data, fraction)
    check_parts(data, split)
    assert set(np.flatnonzero(split.test)) == {position for _, position in sorted(moments(data))[-n_test:]}
    assert data.timestamps[split.train].max() <= data.timestamps[split.test].min()


def test_dates_are_times_too():
    table = pd.DataFrame(
        {"user": "a", "item": [1, 2, 3], "rating": 1, "time": pd.to_datetime(["2022", "2020", "2021"])}
    )
    data = Interactions.from_frame(table, timestamp="time")
    assert leave_last(data).test.tolist() == [True, False, False]
    assert global_time(data, 0.5).test.tolist() == [True, False, True]


def test_what_is_missing_is_named():
    for split in (leave_last, global_time):
        with pytest.raises(DataError, match="expected ratings with timestamps, found none; pass timestamp="):
            split(grid(2, 2))
    timed = Interactions([0, 1], [0, 0], [1, 1], "ab", "x", timestamps=[1, 2])
    with pytest.raises(DataError, match="both sides of the split, found 2 for training and 0 for testing"):
        leave_last(timed)
    with pytest.raises(DataError, match="both sides of the split, found 0 for training and 2 for testing"):
        global_time(timed, 0.9)
    with pytest.raises(ParameterError, match="n must be an integer >= 1, found 0"):
        leave_last(timed, 0)
    with pytest.raises(ParameterError, match=r"n must be a number > 0 and < 1, found 1\.5"):
        leave_last(timed, 1.5)
    with pytest.raises(ParameterError, match="test_fraction must be a number > 0 and < 1, found 1"):
        global_time(timed, 1)


@pytest.mark.data
def test_movielens_in_time(data_root):
    table = pd.read_csv(data_root / "ml-100k" / "u.data", sep="\t", names=["user", "item", "rating", "time"])
    data = Interactions.from_frame(table, timestamp="time")
    assert (counts_per_user(data, leave_last(data, 5).test) == 5).all()  # every user has at least 20 ratings
    assert global_time(data, 0.1).test.sum() == 10_000
