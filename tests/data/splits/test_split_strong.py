"""Strong generalisation: hidden users are hidden from training, shown in part, and tested on the rest."""

import math

import numpy as np
import pytest
from hypothesis import given
from split_laws import check_parts, counts_per_user, fast, fractions, grid, interactions, seeds

from air_recsys import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import strong_generalisation


@fast
@given(interactions(min_ratings=2), fractions, fractions, seeds)
def test_laws(data, user_fraction, fold_in_fraction, seed):
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


def test_users_with_one_rating_are_trained_on():
    data = Interactions([0, 1, 1, 2, 2], [0, 0, 1, 0, 1], np.ones(5), "abc", "xy")
    for seed in range(10):
        assert strong_generalisation(data, 0.9, 0.5, seed).train[0]


def test_every_user_gets_hidden_sometimes():
    data = grid(5, 4)
    hidden = {int(data.user_index[strong_generalisation(data, 0.2, 0.5, seed).test][0]) for seed in range(60)}
    assert hidden == set(range(5))


def test_a_seed_decides_the_split():
    data = grid(6, 6)
    first, again, other = (strong_generalisation(data, 0.5, 0.5, seed) for seed in (1, 1, 2))
    assert all((one == two).all() for one, two in zip(first, again, strict=True))
    assert any((one != two).any() for one, two in zip(first, other, strict=True))


def test_errors_say_what_is_missing():
    with pytest.raises(DataError, match="expected users with at least two ratings, found none"):
        strong_generalisation(grid(3, 1))
    with pytest.raises(DataError, match=r"train on beside the 2 hidden one\(s\), found none with ratings; lower"):
        strong_generalisation(grid(2, 3), 0.9)
    with pytest.raises(ParameterError, match="test_user_fraction must be a number > 0 and < 1, found 1"):
        strong_generalisation(grid(3, 3), 1)
    with pytest.raises(ParameterError, match="fold_in_fraction must be a number > 0 and < 1, found 0"):
        strong_generalisation(grid(3, 3), 0.5, 0)
