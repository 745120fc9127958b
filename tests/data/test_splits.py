"""Splits of all kinds, against scikit-learn and Surprise, and by their laws: who is hidden, and what is last."""

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, RepeatedKFold, train_test_split

from air_recsys import Interactions
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import (
    global_time,
    interaction_folds,
    k_core,
    k_fold,
    leave_last,
    predefined,
    random_holdout,
    strong_generalisation,
    user_holdout,
)

fast = settings(max_examples=60)
seeds = st.integers(0, 2**32 - 1)
fractions = st.floats(0.05, 0.95)
degrees = st.integers(1, 3)
SPLITTERS = {
    "holdout": lambda data, seed: [random_holdout(data, 0.3, seed)],
    "folds": lambda data, seed: k_fold(data, 3, seed),
    "repeated": lambda data, seed: k_fold(data, 3, seed, 2),
    "share": lambda data, seed: [user_holdout(data, 0.3, seed)],
    "number": lambda data, seed: [user_holdout(data, 1, seed)],
    "cold": lambda data, seed: interaction_folds(data, "cvs4", 2, seed),
    "strong": lambda data, seed: [strong_generalisation(data, 0.5, 0.5, seed)],
}


@st.composite
def interactions(draw, min_ratings=1, timestamps=False):
    """Up to 6 x 6 users and items, some of them without ratings, pairs in any order."""
    cells = draw(st.lists(st.integers(0, 35), unique=True, min_size=min_ratings, max_size=30))
    users, items = np.divmod(np.array(cells), 6)
    times = draw(st.lists(st.integers(0, 5), min_size=len(cells), max_size=len(cells))) if timestamps else None
    return Interactions(users, items, np.ones(len(cells)), range(6), range(6), timestamps=times)


def grid(n_users, n_items):
    """All pairs rated."""
    return Interactions.from_dense(np.ones((n_users, n_items)))


def check_parts(data, parts, cover=True):
    """Masks over the ratings, disjoint, none empty, and together everything where `cover`."""
    for part in parts:
        assert part.dtype == bool
        assert part.shape == (data.n_ratings,)
        assert part.any()
    counts = np.sum(parts, axis=0)
    assert counts.max() == 1
    assert not cover or counts.min() == 1


def counts_per_user(data, mask):
    return np.bincount(data.user_index[mask], minlength=data.n_users)


# -------------------------------------------------------------------- oracles


@fast
@given(interactions(min_ratings=2), fractions, seeds)
def test_holdout_is_scikit_learns_train_test_split(data, fraction, seed):
    assume(math.ceil(fraction * data.n_ratings) < data.n_ratings)
    found = random_holdout(data, fraction, seed)
    check_parts(data, found)
    expected = train_test_split(np.arange(data.n_ratings), test_size=fraction, random_state=seed)
    assert [np.flatnonzero(part).tolist() for part in found] == [sorted(part) for part in expected]


@fast
@given(interactions(min_ratings=5), st.integers(2, 5), st.integers(1, 3), seeds)
def test_folds_are_those_of_scikit_learn(data, n_splits, n_repeats, seed):
    once = k_fold(data, n_splits, np.random.RandomState(seed)), KFold(n_splits, shuffle=True, random_state=seed)
    again = RepeatedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    for found, folds in (once, (k_fold(data, n_splits, seed, n_repeats), again)):
        for split, expected in zip(found, folds.split(np.arange(data.n_ratings)), strict=True):
            assert [np.flatnonzero(part).tolist() for part in split] == [part.tolist() for part in expected]


def test_folds_and_sizes_are_those_of_surprise():
    surprise = pytest.importorskip("surprise")
    data = grid(5, 7)
    numbered = data.to_frame().assign(rating=np.arange(data.n_ratings, dtype=float))
    dataset = surprise.Dataset.load_from_df(numbered, surprise.Reader(rating_scale=(0, data.n_ratings)))
    tested = [
        sorted(int(rating) for *_, rating in testset)
        for _, testset in surprise.model_selection.RepeatedKFold(3, 2, random_state=1).split(dataset)
    ]
    assert [np.flatnonzero(split.test).tolist() for split in k_fold(data, 3, 1, 2)] == tested
    for fraction in (0.1, 0.25, 0.33):
        (trainset, testset), *_ = surprise.model_selection.ShuffleSplit(1, fraction, random_state=0).split(dataset)
        train, test = random_holdout(data, fraction)
        assert (train.sum(), test.sum()) == (trainset.n_ratings, len(testset))
    _, testset = next(surprise.model_selection.LeaveOneOut(1, random_state=0, min_n_ratings=1).split(dataset))
    expected = np.bincount([user for user, *_ in testset], minlength=5)
    np.testing.assert_array_equal(counts_per_user(data, user_holdout(data, test_size=1).test), expected)


# -------------------------------------------------------------------- laws


@fast
@given(interactions(), fractions | st.integers(1, 3), seeds)
def test_a_number_per_user_is_that_or_none_and_a_share_is_rounded_and_leaves_one(data, size, seed):
    counts = counts_per_user(data, np.ones(data.n_ratings, dtype=bool))
    if isinstance(size, int):
        expected = np.where(counts > size, size, 0)
    else:
        expected = np.minimum(np.floor(size * counts + 0.5), counts - 1) * (counts > 0)
    if not expected.any():
        with pytest.raises(DataError):
            user_holdout(data, size, seed)
        return
    split = user_holdout(data, size, seed)
    check_parts(data, split)
    np.testing.assert_array_equal(counts_per_user(data, split.test), expected)


def test_every_rating_of_a_user_is_held_out_equally_often():
    data = grid(2, 4)
    times = sum(user_holdout(data, 1, seed).test.astype(int) for seed in range(800))
    assert times.sum() == 1600
    assert np.abs(times - 200).max() < 5 * math.sqrt(150)  # five standard deviations of a binomial count


def test_blocks_of_a_full_matrix_are_all_pairs_of_folds():
    data = grid(6, 9)
    blocks = list(interaction_folds(data, "cvs4"))
    assert {(int(train.sum()), int(test.sum())) for train, test in blocks} == {(4 * 6, 2 * 3)}
    hidden = [(frozenset(data.user_index[test]), frozenset(data.item_index[test])) for _, test in blocks]
    users, items = {user for user, _ in hidden}, {item for _, item in hidden}
    assert set(hidden) == set(itertools.product(users, items))
    for (train, test), (own_users, own_items) in zip(blocks, hidden, strict=True):
        one_side = np.isin(data.user_index, list(own_users)) != np.isin(data.item_index, list(own_items))
        np.testing.assert_array_equal(~train & ~test, one_side)


@fast
@given(interactions(min_ratings=2), fractions, fractions, seeds)
def test_hidden_users_are_shown_in_part_and_tested_on_the_rest(data, user_fraction, fold_in_fraction, seed):
    try:
        split = strong_generalisation(data, user_fraction, fold_in_fraction, seed)
    except DataError:
        return
    check_parts(data, split)
    counts = np.bincount(data.user_index, minlength=data.n_users)
    hidden = np.unique(data.user_index[split.test])
    assert not set(hidden) & set(data.user_index[split.train])
    assert set(hidden) == set(data.user_index[split.fold_in])
    assert hidden.size == math.ceil(user_fraction * np.count_nonzero(counts >= 2))
    shown = np.clip(np.floor(fold_in_fraction * counts + 0.5), 1, counts - 1)
    np.testing.assert_array_equal(counts_per_user(data, split.fold_in)[hidden], shown[hidden])


@pytest.mark.parametrize("name", SPLITTERS)
def test_a_seed_decides_a_generator_moves_on_and_global_state_stays(name):
    data, before = grid(6, 6), np.random.get_state()[1].copy()  # noqa: NPY002

    def tests(seed):
        return [split.test.tolist() for split in SPLITTERS[name](data, seed)]

    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        assert tests(make()) == tests(make())
    assert tests(3) != tests(4)
    rng = np.random.default_rng(0)
    assert tests(rng) != tests(rng)
    assert tests(None)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


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
    assume(n_test < data.n_ratings and np.ptp(data.timestamps) > 0)
    split = global_time(data, fraction)
    check_parts(data, split)
    assert set(np.flatnonzero(split.test)) == {position for _, position in sorted(moments(data))[-n_test:]}


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


# -------------------------------------------------------------------- bad input

TIMED = Interactions([0, 1], [0, 0], [1, 1], "ab", "x", timestamps=[1, 2])


@pytest.mark.parametrize(
    ("given_split", "message"),
    [
        (([0, 1], [0]), "expected one item for each test user, found 2 users and 1 items"),
        (([9, 0], [0, 9]), "expected test pairs that have a rating, found 2 without, the first at position 0"),
        (([1], [1]), "expected test pairs that have a rating, found 1 without, the first at position 0"),
        (([], []), "expected ratings on both sides of the split, found 3 for training and 0 for testing"),
        (([0, 0, 1], [0, 1, 0]), "expected ratings on both sides of the split, found 0 for training and 3"),
    ],
)
def test_pairs_that_do_not_fit_are_named_at_once(given_split, message):
    data = Interactions.from_dense([[1, 2], [3, np.nan]])
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        predefined(data, *given_split)


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, -0.1, 1.5, float("nan"), "0.1", True, None])
def test_fractions_lie_between_zero_and_one(fraction):
    message = f"test_fraction must be a number > 0 and < 1, found {fraction!r}"
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        random_holdout(grid(2, 2), fraction)
    if isinstance(fraction, float) or fraction in ("0.1", None):
        with pytest.raises(ParameterError, match=r"^test_size must be an? (integer|number) >=? .* found"):
            user_holdout(grid(2, 2), fraction)


@pytest.mark.parametrize(
    ("split", "error", "message"),
    [
        (lambda: k_fold(grid(2, 2), n_splits=1), ParameterError, "n_splits must be an integer >= 2, found 1"),
        (lambda: k_fold(grid(2, 2), n_repeats=0), ParameterError, "n_repeats must be an integer >= 1"),
        (lambda: k_fold(grid(2, 2), 5), DataError, "at least one rating per fold, found 4 for n_splits=5"),
        (
            lambda: k_fold(grid(2, 3), random_state=-1),
            ParameterError,
            "random_state must be an integer >= 0, found -1",
        ),
        (lambda: random_holdout(grid(2, 3), random_state=2**32), ParameterError, r"< 2\*\*32, found 4294967296"),
        (
            lambda: random_holdout(grid(1, 2), 0.9),
            DataError,
            r"for training, found 2 with test_fraction=0\.9",
        ),
        (lambda: user_holdout(grid(2, 2), 2), DataError, "both sides of the split, found 4 for training and 0"),
        (lambda: strong_generalisation(grid(3, 1)), DataError, "users with at least two ratings, found none"),
        (lambda: strong_generalisation(grid(2, 3), 0.9), DataError, r"besides the 2 hidden one\(s\), found none"),
        (
            lambda: strong_generalisation(grid(3, 3), 1),
            ParameterError,
            "test_user_fraction must be a number > 0",
        ),
        (lambda: strong_generalisation(grid(3, 3), 0.5, 0), ParameterError, "fold_in_fraction must be a number > 0"),
        (lambda: leave_last(grid(2, 2)), DataError, "ratings with timestamps, found none; pass timestamp="),
        (lambda: leave_last(TIMED), DataError, "both sides of the split, found 2 for training and 0 for testing"),
        (lambda: global_time(TIMED, 0.9), DataError, "both sides of the split, found 0 for training and 2"),
        (lambda: leave_last(TIMED, 0), ParameterError, "n must be an integer >= 1, found 0"),
        (lambda: leave_last(TIMED, 1.5), ParameterError, r"n must be a number > 0 and < 1, found 1\.5"),
        (lambda: k_core(grid(2, 2), k_user=0), ParameterError, "k_user must be an integer >= 1, found 0"),
    ],
)
def test_what_does_not_fit_is_named_before_the_first_split(split, error, message):
    with pytest.raises(error, match=message):
        split()


@pytest.mark.data
def test_movielens_u1_and_movielens_in_time(data_root):
    data = load_movielens(data_root)
    test = pd.read_csv(data_root / "ml-100k" / "u1.test", sep="\t", names=["user", "item", "rating", "time"])
    split = predefined(data, test["user"], test["item"])
    assert (split.train.sum(), split.test.sum()) == (80_000, 20_000)
    assert (counts_per_user(data, leave_last(data, 5).test) == 5).all()  # every user has at least 20 ratings
    assert global_time(data, 0.1).test.sum() == 10_000
