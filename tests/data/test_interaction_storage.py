"""How interactions are held: in as few bits as lose nothing, with repeated pairs found whatever their numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys import Interactions
from air_recsys.data.columns import index_type
from air_recsys.exceptions import DataError
from air_recsys.splits import predefined

MANY = 70_000  # users and items whose pairs are more than 2**32
fast = settings(max_examples=60)
triples = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=40)


def build(users, items, values, **options):
    return Interactions(users, items, values, range(4), range(4), **options)


def held_bytes(data):
    return sum(array.nbytes for array in vars(data).values() if isinstance(array, np.ndarray))


@fast
@given(st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=1, max_size=16))
def test_ratings_come_back_as_they_were_given(values):
    size = len(values)
    data = Interactions(range(size), [0] * size, values, range(size), ["x"])
    assert data.ratings.dtype == np.float64
    assert data.ratings.tolist() == values
    assert pickle.loads(pickle.dumps(data)).ratings.tolist() == values
    assert data.select([size - 1]).ratings.tolist() == values[-1:]


@pytest.mark.parametrize(("step", "held"), [(0.5, 12), (0.1, 16)])
def test_a_rating_takes_twelve_bytes_where_that_loses_nothing(step, held):
    values = np.arange(16) * step
    data = build(np.repeat(range(4), 4), np.tile(range(4), 4), values)
    assert held_bytes(data) == held * data.n_ratings
    assert (data.ratings == values).all()


def test_positions_have_as_many_bits_as_their_number_needs():
    assert index_type(2**31) is np.int32
    assert index_type(2**31 + 1) is np.int64
    assert build([3], [2], [1]).user_index.dtype == np.int32


def test_arrays_of_the_callers_are_taken_over_on_request_alone():
    arrays = np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([3, 4.5], np.float32)
    for copy in (True, False):
        data = build(*arrays, copy=copy)
        for taken, own in zip((data.user_index, data.item_index, data._ratings), arrays, strict=True):
            assert np.shares_memory(taken, own) != copy


def test_pairs_are_counted_in_64_bits():
    users, items = np.array([0, 61_356, MANY - 1]), np.array([0, 47_296, MANY - 1])
    assert (users * MANY + items).astype(np.int32)[1] == 0  # what 32 bits would make of the second pair
    data = Interactions(users, items, [1, 2, 3], range(MANY), range(MANY))
    assert data.pair_index.tolist() == [0, 2**32, MANY**2 - 1]
    assert predefined(data, [61_356], [47_296]).test.tolist() == [False, True, False]
    with pytest.raises(DataError, match="1 duplicate"):
        Interactions(np.append(users, MANY - 1), np.append(items, MANY - 1), [1, 2, 3, 4], range(MANY), range(MANY))


@fast
@given(triples, st.sampled_from(["first", "last", "mean", "sum"]))
def test_rules_for_repeated_pairs_are_those_of_pandas(rows, rule):
    table = pd.DataFrame(rows, columns=["user", "item", "rating"]).assign(weight=range(1, len(rows) + 1))
    table["timestamp"] = table["weight"]
    columns = {"timestamps": table["timestamp"], "weights": table["weight"]}
    data = build(table["user"], table["item"], table["rating"], **columns, duplicates=rule)
    place = "last" if rule == "last" else "first"
    rules = {"rating": rule, "timestamp": place, "weight": rule}
    expected = table.groupby(["user", "item"], as_index=False).agg(rules).sort_values("timestamp", ignore_index=True)
    pd.testing.assert_frame_equal(data.to_frame(), expected, check_dtype=False)
