"""Ids: order, types, missing ones, and the way to indices and back."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.data.ids import IdIndex, as_id_array, encode_ids
from air_recsys.exceptions import DataError

fast = settings(max_examples=60)
hashables = st.one_of(
    st.integers(),
    st.text(),
    st.booleans(),
    st.binary(),
    st.floats(allow_nan=False),
    st.tuples(st.integers(), st.text()),
    st.tuples(st.integers()),
    st.frozensets(st.integers(), max_size=2),
)
columns = st.one_of(
    st.lists(st.integers(), min_size=1),
    st.lists(st.text(), min_size=1),
    st.lists(st.tuples(st.integers(), st.integers()), min_size=1),
    st.lists(hashables, min_size=1),
)


@fast
@given(columns)
def test_ids_are_distinct_all_used_and_lead_back_to_the_column(values):
    indices, ids = encode_ids(values, "user")
    assert ids[indices].tolist() == values
    assert len(set(ids.tolist())) == ids.size
    assert set(indices.tolist()) == set(range(ids.size))
    index = IdIndex(ids, "user")
    np.testing.assert_array_equal(index.lookup(ids), np.arange(len(index)))
    np.testing.assert_array_equal(index.lookup(values), indices)


@fast
@given(st.one_of(st.lists(st.integers(), min_size=1), st.lists(st.text(), min_size=1)), st.randoms())
def test_comparable_ids_do_not_depend_on_the_order_of_rows(values, random):
    shuffled = random.sample(values, len(values))
    first, second = encode_ids(values, "user")[1], encode_ids(shuffled, "user")[1]
    assert first.tolist() == second.tolist() == sorted(set(values))


def test_ids_that_cannot_be_compared_stand_in_order_of_appearance():
    indices, ids = encode_ids(["b", 1, ("c", 2), "b"], "item")
    assert ids.tolist() == ["b", 1, ("c", 2)]
    assert indices.tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize("make", [pd.Series, pd.Index, np.array, tuple, iter])
def test_every_container_gives_plain_strings_and_integers_of_64_bits(make):
    indices, ids = encode_ids(make(["b", "a", "b"]), "user")
    assert (ids.tolist(), indices.tolist()) == (["a", "b"], [1, 0, 1])
    assert all(type(value) is str for value in ids)
    _, numbers = encode_ids(make([7, 3]), "user")
    assert (numbers.tolist(), numbers.dtype) == ([3, 7], np.int64)


def test_integers_keep_their_value_and_are_no_text():
    large = 2**63 + 5
    assert as_id_array(np.array([large], dtype=np.uint64)).tolist() == [large]
    assert IdIndex([large, 1], "user").lookup([large]).tolist() == [0]
    assert IdIndex([2**53, 2**53 + 2], "user").lookup([2**53 + 1]).tolist() == [-1]
    assert IdIndex(["1", "2"], "user").lookup([1, "2"]).tolist() == [-1, 1]
    assert IdIndex([1, 2], "user").lookup(["1", 2]).tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("column", "row"),
    [
        ([None, "a"], 0),
        ([1.0, float("nan")], 1),
        (pd.Series(["a", "b", None]), 2),
        (pd.Series([1, pd.NA]), 1),
        (np.ma.array([1, 2], mask=[False, True]), 1),
    ],
)
def test_a_missing_id_is_named_with_its_row(column, row):
    message = f"every rating needs its user id, found 1 without one, the first in row {row}"
    with pytest.raises(DataError, match=f"^{message}$"):
        encode_ids(column, "user")


@pytest.mark.parametrize(("ids", "repeated"), [([1, 2, 1], "1"), (["a", "a"], "'a'"), ([(1, 2), (1, 2)], "(1, 2)")])
def test_an_id_that_stands_twice_is_named(ids, repeated):
    with pytest.raises(DataError, match=f"^item ids must be distinct, found {re.escape(repeated)} twice$"):
        IdIndex(ids, "item")


def test_lookup_of_one_id_in_many_forms_of_none_and_of_unknown_ones():
    for ids in (2, np.int64(2), np.array(2), [2], (2,), range(2, 3), np.array([2]), pd.array([2])):
        assert IdIndex([1, 2, 3], "user").lookup(ids).tolist() == [1]
    index = IdIndex(["ann", "bob"], "user")
    assert index.lookup("bob").tolist() == [1]
    assert index.lookup([]).tolist() == []
    assert index.lookup([None, "eve", ("x", 1), 3.5]).tolist() == [-1] * 4
    assert IdIndex([1, 2], "user").lookup(np.ma.array([1, 2], mask=[False, True])).tolist() == [0, -1]


@pytest.mark.parametrize("ids", [{2, 1}, iter([1, 2]), (one for one in [1, 2]), {1: 2, 2: 1}.keys(), map(int, "12")])
def test_any_iterable_is_a_list_of_ids(ids):
    assert IdIndex([1, 2, 3], "user").lookup(ids).tolist() == [0, 1]


@pytest.mark.parametrize("ids", [{1: 2}, pd.DataFrame({"a": [1], "b": [2]}), np.ones((2, 2))])
def test_tables_and_mappings_are_no_list_of_ids(ids):
    with pytest.raises(DataError, match=r"expected (a user id|user ids)"):
        IdIndex([1, 2, 3], "user").lookup(ids)


@pytest.mark.parametrize("bad", [["a"], {"a": 1}, {"a"}, ("a", ["b"])], ids=["list", "dict", "set", "tuple"])
def test_ids_that_cannot_be_hashed_are_refused(bad):
    message = re.escape(f"expected user ids that can be hashed, as numbers or text, found {bad!r}")
    for refused in (
        lambda: IdIndex(["a", "b"], "user").lookup([bad]),
        lambda: IdIndex([1, 2], "user").lookup([1, bad]),
        lambda: IdIndex([bad, "a"], "user"),
        lambda: encode_ids([bad, "a", "a"], "user"),
        lambda: encode_ids(pd.Series([bad, bad]), "user"),
    ):
        with pytest.raises(DataError, match=message):
            refused()
