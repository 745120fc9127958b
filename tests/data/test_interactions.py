"""Interactions: the rules for ratings and ids, and the ways in and out."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from air_recsys import Interactions
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import AirRecsysError, DataError, ParameterError

NAN = float("nan")
fast = settings(max_examples=40)
ratings = st.one_of(st.just(NAN), st.floats(0, 5))
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=ratings).filter(
    lambda array: not np.isnan(array).all()
)


def build(user_index, item_index, values, **options):
    """Two users, three items."""
    return Interactions(user_index, item_index, values, ["ann", "bob"], ["x", "y", "z"], **options)


def frame(**columns):
    return pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5, 3]} | columns)


def triples(data):
    """The ratings with their ids, in any order."""
    return set(zip(data.user_ids[data.user_index], data.item_ids[data.item_index], data.ratings, strict=True))


def fails(message):
    return pytest.raises(DataError, match=f"^{re.escape(message)}")


# -------------------------------------------------------------------- round trips


@fast
@given(matrices)
def test_dense_round_trip(array):
    np.testing.assert_array_equal(Interactions.from_dense(array).to_dense(), array)


@fast
@given(matrices, st.sampled_from(["csr", "csc", "coo", "lil", "dok"]), st.booleans())
def test_sparse_round_trip(array, form, as_matrix):
    rows, columns = np.nonzero(~np.isnan(array))
    coo = sp.coo_array((array[rows, columns], (rows, columns)), shape=array.shape)
    given_matrix = (sp.coo_matrix(coo) if as_matrix else coo).asformat(form)
    data = Interactions.from_csr(given_matrix)
    np.testing.assert_array_equal(data.to_csr().toarray(), np.nan_to_num(array))
    assert data.to_csr().shape == array.shape


@fast
@given(matrices)
def test_stored_zeros_are_ratings_of_zero(array):
    rows, columns = np.nonzero(~np.isnan(array))
    stored = sp.csr_array((array[rows, columns], (rows, columns)), shape=array.shape)
    data = Interactions.from_csr(stored)
    assert data.n_ratings == data.to_csr().nnz == rows.size
    np.testing.assert_array_equal(data.to_dense(), array)


@fast
@given(matrices)
def test_frame_round_trip(array):
    data = Interactions.from_dense(array, user_ids=[f"u{row}" for row in range(len(array))])
    again = Interactions.from_frame(data.to_frame())
    assert triples(again) == triples(data)
    pd.testing.assert_frame_equal(again.to_frame(), data.to_frame())


def test_a_wide_table_keeps_its_names():
    table = pd.DataFrame({"x": [5, np.nan], "y": [2, 1]}, index=["ann", "bob"])
    data = Interactions.from_dense(table)
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == (["ann", "bob"], ["x", "y"])
    assert Interactions.from_dense(table, item_ids=[7, 8]).item_ids.tolist() == [7, 8]
    with fails("expected the column(s) ['user', 'item', 'rating'], found ['x', 'y']: a table with one user per row"):
        Interactions.from_frame(table)
    with pytest.raises(DataError, match="'x'"):
        Interactions.from_dense(table.set_axis(["x", "x"], axis=1))


@fast
@given(matrices)
def test_surprise_round_trip(array):
    pytest.importorskip("surprise")
    users, items = [f"u{row}" for row in range(array.shape[0])], list(range(10, 10 + array.shape[1]))
    data = Interactions.from_dense(array, users, items)
    trainset = data.to_surprise()
    assert (trainset.n_users, trainset.n_items, trainset.n_ratings) == (data.n_users, data.n_items, data.n_ratings)
    again = Interactions.from_surprise(trainset)
    assert again.user_ids.tolist() == users
    assert again.item_ids.tolist() == items
    np.testing.assert_array_equal(again.to_dense(), array)


def test_surprise_duplicates_become_their_mean():
    surprise = pytest.importorskip("surprise")
    table = pd.DataFrame({"user": ["b", "a", "a"], "item": ["x", "x", "x"], "rating": [1, 2, 4]})
    trainset = surprise.Dataset.load_from_df(table, surprise.Reader()).build_full_trainset()
    assert triples(Interactions.from_surprise(trainset)) == {("a", "x", 3.0), ("b", "x", 1.0)}
    with fails("expected one rating per pair"):
        Interactions.from_surprise(trainset, duplicates="error")


def test_surprise_negative_ratings_are_taken():
    surprise = pytest.importorskip("surprise")
    table = pd.DataFrame({"user": ["b", "a"], "item": ["x", "x"], "rating": [-1.5, 2.0]})
    reader = surprise.Reader(rating_scale=(-10, 10))
    data = Interactions.from_surprise(surprise.Dataset.load_from_df(table, reader).build_full_trainset())
    assert triples(data) == {("a", "x", 2.0), ("b", "x", -1.5)}


@fast
@given(matrices, st.randoms())
def test_the_order_of_rows_changes_neither_ids_nor_matrix(array, random):
    table = Interactions.from_dense(array).to_frame()
    order = random.sample(range(len(table)), len(table))
    first, second = Interactions.from_frame(table), Interactions.from_frame(table.iloc[order])
    np.testing.assert_array_equal(first.to_dense(), second.to_dense())
    assert first.user_ids.tolist() == second.user_ids.tolist()


# -------------------------------------------------------------------- users, items, ids


def test_empty_users_and_items_are_kept():
    matrix = sp.csr_array(([4.0], ([1], [2])), shape=(3, 5))
    data = Interactions.from_csr(matrix)
    assert (data.n_users, data.n_items, data.n_ratings) == (3, 5, 1)
    assert data.density == 1 / 15
    only_nan = Interactions.from_dense([[NAN, NAN], [1, NAN]])
    assert (only_nan.n_users, only_nan.n_items) == (2, 2)
    assert only_nan.select([0]).to_dense().shape == (2, 2)


def test_ids_default_to_numbers_and_follow_the_rows():
    matrix = sp.csr_array([[0, 2], [3, 0]])
    assert triples(Interactions.from_csr(matrix)) == {(0, 1, 2.0), (1, 0, 3.0)}
    named = Interactions.from_csr(matrix, user_ids=["b", "a"], item_ids=[(1, 2), "x"])
    assert triples(named) == {("b", "x", 2.0), ("a", (1, 2), 3.0)}
    assert named.user_ids.tolist() == ["b", "a"]


def test_ids_of_mixed_types_survive_a_frame():
    users = ["b", 1, ("c", 2), b"d"]
    table = pd.DataFrame({"user": pd.Series(users, dtype=object), "item": [1, 2, 3, 4], "rating": [1, 2, 3, 4]})
    data = Interactions.from_frame(table)
    assert triples(data) == set(zip(users, [1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], strict=True))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"user_ids": ["a"]}, "expected 2 user ids, one per matrix row, found 1"),
        ({"item_ids": [1, 2, 3]}, "expected 2 item ids, one per matrix column, found 3"),
        ({"user_ids": ["a", "a"]}, "user ids must be distinct, found 'a' twice"),
    ],
)
@pytest.mark.parametrize(
    "read", [Interactions.from_dense, lambda m, **ids: Interactions.from_csr(sp.csr_array(m), **ids)]
)
def test_ids_have_to_fit_the_matrix(read, ids, message):
    with fails(message):
        read([[1, 2], [3, 4]], **ids)


def test_a_missing_id_in_a_frame_is_an_error():
    with fails("every rating needs its item id, found 1 without one, the first in row 1"):
        Interactions.from_frame(frame(item=["x", None]))


# -------------------------------------------------------------------- ratings


@pytest.mark.parametrize("broken", [NAN, np.inf, -np.inf])
def test_ratings_that_are_not_finite_are_errors(broken):
    message = f"ratings must be finite, found 1 NaN or infinite, the first in row 1: {broken}; drop those rows"
    with fails(message):
        build([0, 1], [0, 1], [1, broken])
    with fails(message):
        Interactions.from_frame(frame(rating=[1, broken]))
    with fails(message):
        Interactions.from_csr(sp.csr_array([[1, broken]]))


def test_infinite_is_an_error_in_a_dense_array_too():
    with fails("ratings must be finite, found 1"):
        Interactions.from_dense([[1, np.inf, NAN]])


def test_negative_ratings_need_a_word():
    message = "ratings must be >= 0, found 2 negative, the first in row 1: -1; if these are no code for "
    message += "missing, state rating_scale=(-2, 1) (in the shell --rating-scale=-2,1), or pass allow_negative=True"
    with fails(message):
        build([0, 0, 1], [0, 1, 1], [1, -1, -2])
    for read, container in [
        (Interactions.from_frame, frame(rating=[-1, 2])),
        (Interactions.from_csr, sp.csr_array([[-1.0]])),
        (Interactions.from_dense, [[-1.0]]),
        (as_interactions, [[-1.0]]),
    ]:
        with fails("ratings must be >= 0, found 1 negative, the first in row 0: -1"):
            read(container)
        assert read(container, allow_negative=True).ratings.min() == -1


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["good", 1], "'good'"),
        ([1 + 2j, 1], "(1+2j)"),
        ([[1], [1, 2]], "[1]"),
        ([object, 1], "<class 'object'>"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="M8[ns]"), "'dates'"),
        (pd.Series([pd.NA, 1]), "<NA>"),
    ],
)
def test_ratings_that_are_no_numbers_are_errors(values, found):
    with fails(f"ratings must be numbers, found {found}"):
        build([0, 1], [0, 1], values)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float32, object, "Int64"])
def test_ratings_of_every_numeric_type_become_float64(dtype):
    data = build([0, 1], [0, 1], pd.Series([1, 0], dtype=dtype))
    assert data.ratings.dtype == np.float64
    assert data.ratings.tolist() == [1, 0]


def test_the_callers_arrays_are_copied():
    values = np.array([1.0, 2.0])
    data = build([0, 1], [0, 1], values)
    values[0] = 9
    assert data.ratings.tolist() == [1, 2]


def test_a_frame_without_a_rating_column_has_ones():
    assert Interactions.from_frame(frame()[["user", "item"]], rating=None).ratings.tolist() == [1, 1]


# -------------------------------------------------------------------- duplicates


@pytest.mark.parametrize(
    ("rule", "kept", "times"),
    [
        ("first", [4, 1], [1, 2]),
        ("last", [1, 3], [2, 4]),
        ("mean", [3, 1], [1, 2]),
        ("sum", [9, 1], [1, 2]),
    ],
)
def test_rules_for_duplicates(rule, kept, times):
    data = build([0, 1, 0, 0], [2, 0, 2, 2], [4, 1, 2, 3], timestamps=[1, 2, 3, 4], duplicates=rule)
    assert data.ratings.tolist() == kept
    assert data.timestamps.tolist() == times
    assert triples(data) == {("ann", "z", max(kept)), ("bob", "x", 1.0)}


def test_duplicates_are_an_error_unless_a_rule_is_chosen():
    message = (
        "expected one rating per pair, found 3 duplicate(s), the first for user 'bob' and item 'y'; choose "
        "duplicates='first', 'last', 'mean' or 'sum'"
    )
    with fails(message):
        build([1, 0, 0, 0, 1], [1, 0, 0, 0, 1], [1, 2, 3, 4, 5])
    numbered = sp.coo_array(([1, 1], ([0, 0], [0, 0])), shape=(1, 1))
    with fails("expected one rating per pair, found 1 duplicate(s), the first for user 0 and item 0;"):
        Interactions.from_csr(numbered)
    assert Interactions.from_csr(numbered, duplicates="sum").ratings.tolist() == [2]


def test_an_unknown_rule_for_duplicates_is_named():
    with pytest.raises(ParameterError, match=r"duplicates must be one of 'error', 'first', .* found 'max'"):
        build([0], [0], [1], duplicates="max")


@fast
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 9)), min_size=1))
def test_sum_and_last_agree_with_scipy_and_a_dictionary(rows):
    users, items, values = zip(*rows, strict=True)
    summed = build(users, items, values, duplicates="sum").to_csr().toarray()
    np.testing.assert_array_equal(summed, sp.coo_array((values, (users, items)), shape=(2, 3)).toarray())
    last = build(users, items, values, duplicates="last")
    expected = {(user, item): value for user, item, value in rows}
    found = zip(last.user_index.tolist(), last.item_index.tolist(), last.ratings, strict=True)
    assert {(user, item): value for user, item, value in found} == expected


# -------------------------------------------------------------------- shapes and indices


@pytest.mark.parametrize(
    ("users", "items", "values", "message"),
    [
        ([0, 2], [0, 1], [1, 1], "user indices must lie in 0..1, found 0..2"),
        ([0, 1], [-1, 1], [1, 1], "item indices must lie in 0..2, found -1..1"),
        ([0.0, 1.0], [0, 1], [1, 1], "user indices must be a 1-D array of integers, found float64 (2,)"),
        ([[0, 1]], [0, 1], [1, 1], "user indices must be a 1-D array of integers, found int64 (1, 2)"),
        ([0, 1], [0, 1], [1], "expected one rating for each of 2 pairs, found shape (1,)"),
        ([0, 1], [0], [1, 1], "expected a user and an item for each rating, found 2 users and 1 items"),
        (np.empty(0, int), np.empty(0, int), [], "expected at least one rating, found none"),
    ],
)
def test_indices_have_to_fit(users, items, values, message):
    with fails(message):
        build(users, items, values)


def test_data_without_ratings_is_an_error():
    with fails("expected at least one rating, found an empty table"):
        Interactions.from_frame(frame().iloc[:0])
    with fails("expected at least one rating, found none"):
        Interactions.from_dense([[NAN, NAN]])
    with fails("expected at least one rating, found none"):
        Interactions.from_csr(sp.csr_array((2, 2)))


def test_containers_of_the_wrong_kind_are_named():
    with fails("expected the column(s) ['item', 'rating'], found ['user']"):
        Interactions.from_frame(frame()[["user"]])
    with fails("expected a SciPy sparse matrix, found ndarray"):
        Interactions.from_csr(np.eye(2))
    with fails("expected a 2-D matrix (users x items), found 1 dimension(s)"):
        Interactions.from_csr(sp.coo_array(np.ones(2)))
    with fails("expected a 2-D array (users x items), found 1 dimension(s)"):
        Interactions.from_dense([1, 2])
    with fails("ratings must be numbers, found [1, 2]"):
        Interactions.from_dense([[1, 2], [3]])
    with fails("expected Interactions, a SciPy sparse matrix, a DataFrame with the columns user, item and rating"):
        as_interactions("u.data")


def test_as_interactions_takes_what_people_have():
    array = np.array([[5.0, NAN], [NAN, 3.0]])
    data = Interactions.from_dense(array)
    sparse = sp.csc_array(np.nan_to_num(array))
    for given_data in (data, array, array.tolist(), sparse, data.to_frame()):
        np.testing.assert_array_equal(as_interactions(given_data).to_dense(), array)
    assert as_interactions(data) is data


def test_errors_are_both_ours_and_value_errors():
    assert issubclass(DataError, AirRecsysError)
    assert issubclass(DataError, ValueError)


# -------------------------------------------------------------------- timestamps, select, repr


@pytest.mark.parametrize(
    "times",
    [
        pd.to_datetime(["2021-01-01", "2020-01-01"]),
        pd.to_datetime(["2021-01-01", "2020-01-01"], utc=True),
        np.array(["2021-01-01", "2020-01-01"], dtype="M8[D]"),
        [pd.Timestamp("2021-01-01"), pd.Timestamp("2020-01-01")],
    ],
)
def test_dates_become_nanoseconds(times):
    data = Interactions.from_frame(frame(time=times), timestamp="time")
    assert data.timestamps.tolist() == [1609459200 * 10**9, 1577836800 * 10**9]


def test_integer_timestamps_keep_every_digit():
    times = [1700000000000000001, 1700000000000000002]
    assert Interactions.from_frame(frame(time=times), timestamp="time").timestamps.tolist() == times


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1, NAN], "timestamps must be finite numbers or dates, found 1 missing, the first in row 1"),
        (
            pd.to_datetime([None, "2020-01-01"]),
            "timestamps must be finite numbers or dates, found 1 missing, the first in row 0",
        ),
        (["noon", "night"], "timestamps must be numbers, found 'noon'"),
        ([1], "timestamps must be 2 finite numbers or dates, found shape (1,)"),
    ],
)
def test_broken_timestamps_are_errors(times, message):
    with fails(message):
        build([0, 1], [0, 1], [1, 1], timestamps=times)


def test_timestamps_come_out_in_the_frame():
    data = build([0, 1], [0, 1], [1, 2], timestamps=[7, 5])
    again = Interactions.from_frame(data.to_frame(), timestamp="timestamp")
    assert again.timestamps.tolist() == [7, 5]
    assert "timestamp" not in build([0], [0], [1]).to_frame()


def test_select_takes_masks_and_positions_and_keeps_everyone():
    data = build([0, 1, 1], [0, 1, 2], [1, -2, 3], timestamps=[9, 8, 7], allow_negative=True)
    by_mask, by_position = data.select([False, True, True]), data.select([2, 1])
    assert by_mask.ratings.tolist() == [-2, 3]
    assert by_position.ratings.tolist() == [3, -2]
    assert by_position.timestamps.tolist() == [7, 8]
    assert triples(by_mask) == triples(by_position)
    assert by_mask.user_ids.tolist() == data.user_ids.tolist()
    assert by_mask.n_items == data.n_items


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([True], "expected a mask of 2 ratings, found shape (1,)"),
        ([False, False], "expected at least one rating, found none"),
        ([2], "rating indices must lie in 0..1, found 2..2"),
        ([0.5], "rating indices must be a 1-D array of integers, found float64 (1,)"),
        ([0, 0], "expected one rating per pair, found 1 duplicate(s)"),
    ],
)
def test_select_names_what_does_not_fit(mask, message):
    with fails(message):
        build([0, 1], [0, 1], [1, 2]).select(mask)


def test_repr_counts():
    assert repr(build([0, 1, 1], [0, 1, 2], [1, 2, 4.5])) == (
        "Interactions(n_users=2, n_items=3, n_ratings=3, density=50.00 %, ratings 1..4.5)"
    )


@pytest.mark.data
def test_movielens_survives_every_container(data_root):
    table = pd.read_csv(data_root / "ml-100k" / "u.data", sep="\t", names=["user", "item", "rating", "time"])
    data = Interactions.from_frame(table, timestamp="time")
    assert (data.n_users, data.n_items, data.n_ratings) == (943, 1682, 100_000)
    again = Interactions.from_csr(data.to_csr(), data.user_ids, data.item_ids)
    assert triples(again) == triples(data)
