"""Splits in time, splits that somebody else has drawn, and the k-core."""

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit
from split_laws import check_parts, counts_per_user, fast, fractions, grid, interactions

from air_recsys import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import global_time, k_core, leave_last, predefined, predefined_folds, random_holdout

TIMED = Interactions([0, 1], [0, 0], [1, 1], "ab", "x", timestamps=[1, 2])
degrees = st.integers(1, 3)


# -------------------------------------------------------------------- time


def moments(data):
    """The time of each rating, ties told apart by its position."""
    return list(zip(data.timestamps.tolist(), range(data.n_ratings), strict=True))


@fast
@given(interactions(timestamps=True), fractions | st.integers(1, 3))
def test_leave_last_takes_the_latest_of_each_user(data, size):
    counts, expected = np.bincount(data.user_index, minlength=data.n_users), set()
    for user, count in enumerate(counts):
        own = sorted(moment for moment, owner in zip(moments(data), data.user_index, strict=True) if owner == user)
        share = min(math.floor(size * count + 0.5), count - 1)
        wanted = (size if count > size else 0) if isinstance(size, int) else max(share, 0)
        expected |= {position for _, position in own[len(own) - wanted :]}
    if not expected:
        with pytest.raises(DataError):
            leave_last(data, size)
        return
    split = leave_last(data, size)
    check_parts(data, split)
    assert set(np.flatnonzero(split.test)) == expected


@fast
@given(interactions(min_ratings=2, timestamps=True), fractions)
def test_global_time_takes_the_latest_of_all(data, fraction):
    n_test = math.ceil(fraction * data.n_ratings)
    assume(n_test < data.n_ratings)
    split = global_time(data, fraction)
    check_parts(data, split)
    assert set(np.flatnonzero(split.test)) == {position for _, position in sorted(moments(data))[-n_test:]}


def test_dates_are_times_too():
    table = pd.DataFrame(
        {"user": "a", "item": [1, 2, 3], "rating": 1, "time": pd.to_datetime(["2022", "2020", "2021"])}
    )
    data = Interactions.from_frame(table, timestamp="time")
    assert leave_last(data).test.tolist() == [True, False, False]
    assert global_time(data, 0.5).test.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (lambda: leave_last(grid(2, 2)), DataError, "ratings with timestamps, found none; pass timestamp="),
        (lambda: global_time(grid(2, 2)), DataError, "ratings with timestamps, found none; pass timestamp="),
        (lambda: leave_last(TIMED), DataError, "both sides of the split, found 2 for training and 0 for testing"),
        (lambda: global_time(TIMED, 0.9), DataError, "both sides of the split, found 0 for training and 2"),
        (lambda: leave_last(TIMED, 0), ParameterError, "n must be an integer >= 1, found 0"),
        (lambda: leave_last(TIMED, 1.5), ParameterError, r"n must be a number > 0 and < 1, found 1\.5"),
        (lambda: global_time(TIMED, 1), ParameterError, "test_fraction must be a number > 0 and < 1, found 1"),
        (lambda: k_core(grid(2, 2), k_user=0), ParameterError, "k_user must be an integer >= 1, found 0"),
        (lambda: k_core(grid(2, 2), k_item=1.5), ParameterError, r"k_item must be an integer >= 1, found 1\.5"),
    ],
)
def test_what_does_not_fit_is_named(split, error, message):
    with pytest.raises(error, match=message):
        split()


# -------------------------------------------------------------------- splits of others


@fast
@given(interactions(min_ratings=3), st.randoms())
def test_the_pairs_of_a_split_give_it_back(data, random):
    expected = random_holdout(data, 0.3)
    pairs = data.select(expected.test).to_frame().sample(frac=1, random_state=random.randrange(100))
    found = predefined(data, pairs["user"], pairs["item"])
    np.testing.assert_array_equal(found.test, expected.test)
    check_parts(data, found)


def test_pairs_use_the_callers_ids():
    data = Interactions.from_dense(np.ones((2, 2)), ["ann", ("bob", 1)], [30, 10])
    assert predefined(data, ["ann", ("bob", 1)], [10, 30]).test.tolist() == [False, True, True, False]
    assert predefined(data, "ann", 10).test.tolist() == [False, True, False, False]


@fast
@given(interactions(min_ratings=3), st.data())
def test_given_folds_are_those_of_scikit_learn(data, draw):
    numbers = st.lists(st.integers(-1, 3), min_size=data.n_ratings, max_size=data.n_ratings)
    fold = np.array(draw.draw(numbers.filter(lambda chosen: max(chosen) >= 0 and len(set(chosen)) > 1)))
    for split, expected in zip(predefined_folds(data, fold), PredefinedSplit(fold).split(), strict=True):
        check_parts(data, split)
        assert [np.flatnonzero(part).tolist() for part in split] == [part.tolist() for part in expected]


NUMBERS = "expected fold numbers >= 0, or -1 for always training, and more than one of them, found"


@pytest.mark.parametrize(
    ("given_split", "message"),
    [
        (([0, 1], [0]), "expected one item for each test user, found 2 users and 1 items"),
        (([9, 0], [0, 9]), "expected test pairs that have a rating, found 2 without, the first at position 0"),
        (([1], [1]), "expected test pairs that have a rating, found 1 without, the first at position 0"),
        (([], []), "expected ratings on both sides of the split, found 3 for training and 0 for testing"),
        (([0, 0, 1], [0, 1, 0]), "expected ratings on both sides of the split, found 0 for training and 3"),
        (([0, 1],), "expected one integer fold for each of 3 ratings, found int64 (2,)"),
        (([0.0, 1, 0],), "expected one integer fold for each of 3 ratings, found float64 (3,)"),
        (([0, 1, -2],), NUMBERS),
        (([-1] * 3,), f"{NUMBERS} [-1]"),
        (([2] * 3,), f"{NUMBERS} [2]"),
    ],
)
def test_pairs_and_folds_that_do_not_fit_are_named_at_once(given_split, message):
    data = Interactions.from_dense([[1, 2], [3, np.nan]])
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        (predefined if len(given_split) == 2 else predefined_folds)(data, *given_split)


# -------------------------------------------------------------------- the k-core


def is_core(users, items, k_user, k_item):
    return all(
        np.unique(index, return_counts=True)[1].min(initial=k) >= k for index, k in ((users, k_user), (items, k_item))
    )


@settings(max_examples=30)
@given(st.lists(st.integers(0, 8), unique=True, min_size=1, max_size=8), degrees, degrees)
def test_the_core_is_the_union_of_all_sets_of_ratings_with_its_property(cells, k_user, k_item):
    users, items = np.divmod(np.array(cells), 3)
    data = Interactions(users, items, np.ones(len(cells)), range(3), range(3))
    mask = k_core(data, k_user, k_item)
    assert is_core(users[mask], items[mask], k_user, k_item)
    subsets = (np.array(subset) for subset in itertools.product([False, True], repeat=len(cells)))
    union = np.zeros(len(cells), dtype=bool)
    for subset in subsets:
        if is_core(users[subset], items[subset], k_user, k_item):
            union |= subset
    np.testing.assert_array_equal(mask, union)


def test_a_chain_unravels_completely():
    users, items = np.repeat(np.arange(5), 2)[1:], np.repeat(np.arange(5), 2)[:-1]
    chain = Interactions(users, items, np.ones(9), range(5), range(5))
    assert not k_core(chain, 2, 2).any()


# -------------------------------------------------------------------- published splits


@pytest.mark.data
def test_movielens_u1_and_movielens_in_time(data_root):
    data = load_movielens(data_root)
    test = pd.read_csv(data_root / "ml-100k" / "u1.test", sep="\t", names=["user", "item", "rating", "time"])
    split = predefined(data, test["user"], test["item"])
    assert (split.train.sum(), split.test.sum()) == (80_000, 20_000)
    assert (counts_per_user(data, leave_last(data, 5).test) == 5).all()  # every user has at least 20 ratings
    assert global_time(data, 0.1).test.sum() == 10_000
