"""Random splits against scikit-learn and Surprise, and their laws."""

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.model_selection import KFold, RepeatedKFold, train_test_split
from split_laws import check_parts, counts_per_user, fast, fractions, grid, interactions, seeds

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import k_fold, random_holdout, repeated_k_fold, user_holdout

SPLITTERS = [
    lambda data, seed: [random_holdout(data, 0.3, seed)],
    lambda data, seed: list(k_fold(data, 3, seed)),
    lambda data, seed: list(repeated_k_fold(data, 3, 2, seed)),
    lambda data, seed: [user_holdout(data, 0.3, seed)],
    lambda data, seed: [user_holdout(data, 1, seed)],
]


def surprise_ratings(data):
    """The data as a Surprise dataset whose ratings are numbered by their position."""
    surprise = pytest.importorskip("surprise")
    table = data.to_frame().assign(rating=np.arange(data.n_ratings, dtype=float))
    return surprise, surprise.Dataset.load_from_df(table, surprise.Reader(rating_scale=(0, data.n_ratings)))


def test_positions(testset):
    return sorted(int(rating) for _, _, rating in testset)


test_positions.__test__ = False


# -------------------------------------------------------------------- oracles


@fast
@given(interactions(min_ratings=2), fractions, seeds)
def test_holdout_is_scikit_learns_train_test_split(data, fraction, seed):
    assume(math.ceil(fraction * data.n_ratings) < data.n_ratings)
    train, test = random_holdout(data, fraction, seed)
    check_parts(data, [train, test])
    expected = train_test_split(np.arange(data.n_ratings), test_size=fraction, random_state=seed)
    assert np.flatnonzero(train).tolist() == sorted(expected[0])
    assert np.flatnonzero(test).tolist() == sorted(expected[1])


@fast
@given(interactions(min_ratings=5), st.integers(2, 5), seeds)
def test_folds_are_those_of_scikit_learn(data, n_splits, seed):
    for random_state in (seed, np.random.RandomState(seed)):
        expected = KFold(n_splits, shuffle=True, random_state=seed).split(np.arange(data.n_ratings))
        for split, (train, test) in zip(k_fold(data, n_splits, random_state), expected, strict=True):
            assert np.flatnonzero(split.train).tolist() == train.tolist()
            assert np.flatnonzero(split.test).tolist() == test.tolist()


def test_repeated_folds_are_those_of_scikit_learn():
    data = grid(5, 5)
    expected = RepeatedKFold(n_splits=3, n_repeats=4, random_state=8).split(np.arange(25))
    found = repeated_k_fold(data, 3, 4, random_state=8)
    for split, (_, test) in zip(found, expected, strict=True):
        assert np.flatnonzero(split.test).tolist() == test.tolist()


@pytest.mark.parametrize("seed", [0, 7])
def test_folds_are_those_of_surprise(seed):
    data = grid(5, 5)
    surprise, dataset = surprise_ratings(data)
    folds = surprise.model_selection.KFold(4, random_state=seed).split(dataset)
    for split, (_, testset) in zip(k_fold(data, 4, seed), folds, strict=True):
        assert np.flatnonzero(split.test).tolist() == test_positions(testset)


def test_repeated_folds_are_those_of_surprise():
    data = grid(5, 5)
    surprise, dataset = surprise_ratings(data)
    folds = surprise.model_selection.RepeatedKFold(3, 2, random_state=1).split(dataset)
    for split, (_, testset) in zip(repeated_k_fold(data, 3, 2, 1), folds, strict=True):
        assert np.flatnonzero(split.test).tolist() == test_positions(testset)


@pytest.mark.parametrize("fraction", [0.1, 0.25, 0.33])
def test_holdout_sizes_are_those_of_surprise(fraction):
    data = grid(5, 7)
    surprise, dataset = surprise_ratings(data)
    (trainset, testset), *_ = surprise.model_selection.ShuffleSplit(1, fraction, random_state=0).split(dataset)
    train, test = random_holdout(data, fraction)
    assert (train.sum(), test.sum()) == (trainset.n_ratings, len(testset))


def test_user_holdout_of_one_has_the_counts_of_surprises_leave_one_out():
    data = grid(4, 5)
    surprise, dataset = surprise_ratings(data)
    _, testset = next(surprise.model_selection.LeaveOneOut(1, random_state=0, min_n_ratings=1).split(dataset))
    found = counts_per_user(data, user_holdout(data, test_size=1).test)
    expected = np.bincount([user for user, _, _ in testset], minlength=4)
    np.testing.assert_array_equal(found, expected)


# -------------------------------------------------------------------- laws


@fast
@given(interactions(min_ratings=6), st.integers(2, 6), seeds)
def test_folds_partition_the_ratings_evenly(data, n_splits, seed):
    splits = list(k_fold(data, n_splits, seed))
    for split in splits:
        check_parts(data, split)
    check_parts(data, [split.test for split in splits])
    sizes = [split.test.sum() for split in splits]
    assert max(sizes) - min(sizes) <= 1


def test_each_repetition_tests_every_rating_once_in_other_folds():
    data = grid(5, 5)
    splits = list(repeated_k_fold(data, n_splits=5, n_repeats=3))
    runs = [splits[start : start + 5] for start in (0, 5, 10)]
    for run in runs:
        check_parts(data, [split.test for split in run])
    assert len({split.test.tobytes() for split in splits}) == 15


@fast
@given(interactions(), fractions, seeds)
def test_a_share_per_user_is_rounded_and_leaves_one(data, fraction, seed):
    counts = counts_per_user(data, np.ones(data.n_ratings, dtype=bool))
    expected = np.minimum(np.floor(fraction * counts + 0.5), counts - 1) * (counts > 0)
    if not expected.any():
        with pytest.raises(DataError):
            user_holdout(data, fraction, seed)
        return
    split = user_holdout(data, fraction, seed)
    check_parts(data, split)
    np.testing.assert_array_equal(counts_per_user(data, split.test), expected)


@fast
@given(interactions(), st.integers(1, 3), seeds)
def test_a_number_per_user_is_that_number_or_none(data, number, seed):
    counts = counts_per_user(data, np.ones(data.n_ratings, dtype=bool))
    expected = np.where(counts > number, number, 0)
    if not expected.any():
        with pytest.raises(DataError):
            user_holdout(data, number, seed)
        return
    split = user_holdout(data, number, seed)
    check_parts(data, split)
    np.testing.assert_array_equal(counts_per_user(data, split.test), expected)


def test_every_rating_of_a_user_is_held_out_equally_often():
    data = grid(2, 4)
    times = sum(user_holdout(data, 1, seed).test.astype(int) for seed in range(800))
    assert times.sum() == 1600
    assert np.abs(times - 200).max() < 5 * math.sqrt(150)  # five standard deviations of a binomial count


# -------------------------------------------------------------------- seeds and errors


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_a_seed_decides_the_split(splitter):
    data = grid(6, 6)
    for make in (lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)):
        for first, second in zip(splitter(data, make()), splitter(data, make()), strict=True):
            np.testing.assert_array_equal(first.test, second.test)
    assert any(
        (first.test != second.test).any() for first, second in zip(splitter(data, 3), splitter(data, 4), strict=True)
    )


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_a_generator_moves_on(splitter):
    data, rng = grid(6, 6), np.random.default_rng(0)
    first, second = splitter(data, rng), splitter(data, rng)
    assert any((one.test != other.test).any() for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_global_state_is_neither_read_nor_moved(splitter):
    data = grid(6, 6)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for seed in (0, None):
        check_parts(data, splitter(data, seed)[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize("fraction", [0, 1, 0.0, 1.0, -0.1, 1.5, float("nan"), "0.1", True, None])
def test_fractions_lie_between_zero_and_one(fraction):
    message = f"test_fraction must be a number > 0 and < 1, found {fraction!r}"
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        random_holdout(grid(2, 2), fraction)


@pytest.mark.parametrize("size", [0, -1, 0.0, 1.0, 1.5, float("nan"), "1", None])
def test_user_holdout_wants_a_share_or_a_number(size):
    with pytest.raises(ParameterError, match=r"^test_size must be an? (integer|number) >=? .* found"):
        user_holdout(grid(2, 2), size)


def test_parameters_are_checked_before_the_first_split():
    with pytest.raises(ParameterError, match="n_splits must be an integer >= 2, found 1"):
        k_fold(grid(2, 2), n_splits=1)
    with pytest.raises(ParameterError, match="n_repeats must be an integer >= 1, found 0"):
        repeated_k_fold(grid(2, 2), n_repeats=0)
    with pytest.raises(DataError, match="expected at least one rating per fold, found 4 for n_splits=5"):
        k_fold(grid(2, 2), n_splits=5)
    with pytest.raises(ParameterError, match="random_state must be an integer >= 0, found -1"):
        k_fold(grid(2, 3), random_state=-1)
    with pytest.raises(ParameterError, match=r"random_state must be an integer < 2\*\*32, found 4294967296"):
        random_holdout(grid(2, 3), random_state=2**32)


def test_too_few_ratings_are_named():
    with pytest.raises(DataError, match=r"leave one for training, found 2 with test_fraction=0\.9"):
        random_holdout(grid(1, 2), 0.9)
    with pytest.raises(DataError, match="both sides of the split, found 4 for training and 0 for testing"):
        user_holdout(grid(2, 2), test_size=2)
