"""Splits drawn by somebody else."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import PredefinedSplit
from split_laws import check_parts, fast, grid, interactions

from air_recsys import Interactions
from air_recsys.exceptions import DataError
from air_recsys.splits import predefined, predefined_folds, random_holdout


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


@pytest.mark.parametrize(
    ("users", "items", "message"),
    [
        ([0, 1], [0], "expected one item for each test user, found 2 users and 1 items"),
        ([0, 9], [0, 0], "expected test pairs that have a rating, found 1 without, the first at position 1"),
        ([9, 0], [0, 9], "expected test pairs that have a rating, found 2 without, the first at position 0"),
        ([1], [1], "expected test pairs that have a rating, found 1 without, the first at position 0"),
        ([], [], "expected ratings on both sides of the split, found 3 for training and 0 for testing"),
        ([0, 0, 1], [0, 1, 0], "expected ratings on both sides of the split, found 0 for training and 3"),
    ],
)
def test_pairs_that_do_not_fit_are_named(users, items, message):
    data = Interactions.from_dense([[1, 2], [3, np.nan]])
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        predefined(data, users, items)


@fast
@given(interactions(min_ratings=3), st.data())
def test_folds_are_those_of_scikit_learn(data, draw):
    numbers = st.lists(st.integers(-1, 3), min_size=data.n_ratings, max_size=data.n_ratings)
    fold = np.array(draw.draw(numbers.filter(lambda chosen: max(chosen) >= 0 and len(set(chosen)) > 1)))
    expected = PredefinedSplit(fold).split()
    for split, (train, test) in zip(predefined_folds(data, fold), expected, strict=True):
        check_parts(data, split)
        assert np.flatnonzero(split.train).tolist() == train.tolist()
        assert np.flatnonzero(split.test).tolist() == test.tolist()


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        ([0, 1], "expected one integer fold for each of 4 ratings, found int64 (2,)"),
        ([0.0, 1, 0, 1], "expected one integer fold for each of 4 ratings, found float64 (4,)"),
        ([0, 1, -2, 1], "expected fold numbers >= 0, or -1 for always training, and more than one of them, found"),
        ([-1] * 4, "expected fold numbers >= 0, or -1 for always training, and more than one of them, found [-1]"),
        ([2] * 4, "expected fold numbers >= 0, or -1 for always training, and more than one of them, found [2]"),
    ],
)
def test_folds_that_do_not_fit_are_named_at_once(fold, message):
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        predefined_folds(grid(2, 2), fold)


@pytest.mark.data
def test_movielens_u1(data_root):
    names = ["user", "item", "rating", "time"]
    everything, test = (
        pd.read_csv(data_root / "ml-100k" / name, sep="\t", names=names) for name in ("u.data", "u1.test")
    )
    split = predefined(Interactions.from_frame(everything), test["user"], test["item"])
    assert (split.train.sum(), split.test.sum()) == (80_000, 20_000)
