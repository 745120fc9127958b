"""Cold-start splits: nobody who is hidden is in the training part."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold
from split_laws import check_parts, fast, grid, interactions, seeds

from air_recsys import Interactions
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.splits import cold_both_folds, cold_item_folds, cold_user_folds

SIDES = [(cold_user_folds, "user_index", "users"), (cold_item_folds, "item_index", "items")]


@pytest.mark.parametrize(("folds", "side", "kind"), SIDES)
@fast
@given(data=interactions(), n_splits=st.integers(2, 4), seed=seeds)
def test_whole_groups_are_hidden_each_once(folds, side, kind, data, n_splits, seed):
    index = getattr(data, side)
    present = np.unique(index)
    if present.size < n_splits:
        with pytest.raises(DataError, match=f"at least {n_splits} {kind} with ratings, one per fold, found"):
            folds(data, n_splits, seed)
        return
    splits = list(folds(data, n_splits, seed))
    check_parts(data, [split.test for split in splits])
    expected = KFold(n_splits, shuffle=True, random_state=seed).split(present)
    for split, (_, hidden) in zip(splits, expected, strict=True):
        check_parts(data, split)
        assert set(index[split.test]) == set(present[hidden])
        assert not set(index[split.test]) & set(index[split.train])


@fast
@given(interactions(), st.integers(2, 3), seeds)
def test_both_sides_hidden(data, n_splits, seed):
    try:
        splits = list(cold_both_folds(data, n_splits, seed))
    except DataError:
        return
    assert len(splits) == n_splits**2
    check_parts(data, [split.test for split in splits])
    users, items = data.user_index, data.item_index
    for train, test in splits:
        check_parts(data, [train, test], cover=False)
        assert not set(users[test]) & set(users[train])
        assert not set(items[test]) & set(items[train])


def test_blocks_of_a_full_matrix():
    data = grid(6, 9)
    blocks = list(cold_both_folds(data, n_splits=3))
    assert {(int(train.sum()), int(test.sum())) for train, test in blocks} == {(4 * 6, 2 * 3)}
    hidden = [(frozenset(data.user_index[test]), frozenset(data.item_index[test])) for _, test in blocks]
    users, items = {user for user, _ in hidden}, {item for _, item in hidden}
    assert set(hidden) == set(itertools.product(users, items))
    assert sorted(itertools.chain(*users)) == list(range(6))


def test_ratings_with_one_side_hidden_are_left_out():
    data = grid(4, 4)
    train, test = next(cold_both_folds(data, n_splits=2))
    hidden_users, hidden_items = set(data.user_index[test]), set(data.item_index[test])
    for position, (user, item) in enumerate(zip(data.user_index, data.item_index, strict=True)):
        if (user in hidden_users) != (item in hidden_items):
            assert not train[position]
            assert not test[position]


def test_blocks_without_ratings_are_an_error_at_once():
    diagonal = Interactions(range(4), range(4), np.ones(4), range(4), range(4))
    with pytest.raises(DataError, match=r"each of the 16 blocks .* found 12 block\(s\) without; choose a smaller"):
        cold_both_folds(diagonal, n_splits=4)


@pytest.mark.parametrize("folds", [cold_user_folds, cold_item_folds, cold_both_folds])
def test_parameters_are_checked_at_once(folds):
    with pytest.raises(ParameterError, match="n_splits must be an integer >= 2, found 1"):
        folds(grid(3, 3), 1)
    with pytest.raises(DataError, match=r"expected at least 4 (users|items) with ratings, one per fold, found 3"):
        folds(grid(3, 3), 4)


@pytest.mark.parametrize("folds", [cold_user_folds, cold_item_folds, cold_both_folds])
def test_a_seed_decides_the_folds(folds):
    data = grid(8, 8)
    first, again, other = (
        [split.test.tobytes() for split in folds(data, 2, seed)]
        for seed in (np.random.default_rng(1), np.random.default_rng(1), np.random.default_rng(2))
    )
    assert first == again
    assert first != other
