"""The k-core: enough ratings for everyone, and nothing larger has that."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from split_laws import fast, grid, interactions

from air_recsys import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.splits import k_core

degrees = st.integers(1, 3)


def is_core(users, items, k_user, k_item):
    return all(
        np.unique(index, return_counts=True)[1].min(initial=k) >= k for index, k in ((users, k_user), (items, k_item))
    )


@fast
@given(interactions(), degrees, degrees)
def test_everyone_has_enough_and_a_second_pass_changes_nothing(data, k_user, k_item):
    mask = k_core(data, k_user, k_item)
    assert is_core(data.user_index[mask], data.item_index[mask], k_user, k_item)
    if mask.any():
        assert k_core(data.select(mask), k_user, k_item).all()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 8), unique=True, min_size=1, max_size=8), degrees, degrees)
def test_it_holds_every_set_of_ratings_with_the_property(cells, k_user, k_item):
    users, items = np.divmod(np.array(cells), 3)
    data = Interactions(users, items, np.ones(len(cells)), range(3), range(3))
    mask = k_core(data, k_user, k_item)
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


def test_one_keeps_everything():
    assert k_core(grid(3, 4), 1, 1).all()
    assert k_core(grid(3, 4), 4, 3).all()
    assert not k_core(grid(3, 4), 4, 4).any()


@pytest.mark.parametrize("name", ["k_user", "k_item"])
@pytest.mark.parametrize("value", [0, 1.5, None])
def test_numbers_below_one_are_errors(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be an integer >= 1, found {value!r}"):
        k_core(grid(2, 2), **{name: value})
