"""Interactions: the rules for ratings and ids, the ways in and out, and how ratings are held."""

import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from air_recsys import Interactions
from air_recsys.data.columns import index_type
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError, DataWarning, ParameterError
from air_recsys.splits import predefined

NAN = float("nan")
MASKED = np.ma.masked_array([0, 1], [False, True])
MANY = 70_000  # users and items whose pairs are more than 2**32
fast = settings(max_examples=40)
ratings = st.one_of(st.just(NAN), st.floats(0, 5))
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=ratings).filter(
    lambda array: not np.isnan(array).all()
)
triples_of_four = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0, 5)), min_size=1, max_size=40)


def build(user_index, item_index, values, **options):
    """Two users, three items."""
    return Interactions(user_index, item_index, values, ["ann", "bob"], ["x", "y", "z"], **options)


@pytest.mark.parametrize(
    ("part", "values", "message"),
    [
        ("user_index", MASKED, "expected user indices without masked values, found 1"),
        ("timestamps", MASKED, "expected timestamps without masked values, found 1"),
        ("weights", MASKED, "weights must be finite and >= 0, found 1 others, the first in row 1: nan"),
        ("timestamps", torch.ones(2, requires_grad=True), "expected timestamps as an array, found a Tensor: Can't"),
        ("ratings", torch.ones(2, dtype=torch.bfloat16), "expected ratings as an array, found a Tensor: Got"),
    ],
)
def test_what_numpy_cannot_read_or_reads_without_its_mask_is_named(part, values, message):
    parts = {"user_index": [0, 1], "item_index": [0, 1], "ratings": [5.0, 3.0]}
    with fails(message):
        Interactions(**parts | {part: values}, user_ids=[0, 1], item_ids=[0, 1])


def test_byte_orders_and_settings_of_numpy_change_nothing():
    matrix = sp.csr_array(np.eye(2) * 300)
    matrix.data, matrix.indices = matrix.data.astype(">f8"), matrix.indices.astype(">i4")
    assert Interactions.from_csr(matrix).ratings.tolist() == [300, 300]
    with np.errstate(all="raise"):
        assert Interactions.from_dense([[1e300, 1e-300]]).ratings.tolist() == [1e300, 1e-300]


def frame(**columns):
    return pd.DataFrame({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [5, 3]} | columns)


def triples(data):
    """The ratings with their ids, in any order."""
    return set(zip(data.user_ids[data.user_index], data.item_ids[data.item_index], data.ratings, strict=True))


def fails(message, error=DataError):
    return pytest.raises(error, match=f"^{re.escape(message)}")


# -------------------------------------------------------------------- round trips


@pytest.mark.filterwarnings("ignore:every pair has a rating")
@fast
@given(matrices, st.sampled_from(["csr", "csc", "coo", "lil", "dok"]), st.booleans())
def test_a_matrix_comes_back_and_stored_zeros_are_ratings_of_zero(array, form, as_matrix):
    np.testing.assert_array_equal(Interactions.from_dense(array).to_dense(), array)
    rows, columns = np.nonzero(~np.isnan(array))
    coo = sp.coo_array((array[rows, columns], (rows, columns)), shape=array.shape)
    data = Interactions.from_csr((sp.coo_matrix(coo) if as_matrix else coo).asformat(form))
    np.testing.assert_array_equal(data.to_csr().toarray(), np.nan_to_num(array))
    if form in ("csr", "csc", "coo"):
        assert data.n_ratings == data.to_csr().nnz == rows.size
        np.testing.assert_array_equal(data.to_dense(), array)


@fast
@given(matrices, st.randoms())
def test_a_frame_comes_back_and_the_order_of_its_rows_changes_neither_ids_nor_matrix(array, random):
    data = Interactions.from_dense(array, user_ids=[f"u{row}" for row in range(len(array))])
    table = data.to_frame()
    again = Interactions.from_frame(table)
    assert triples(again) == triples(data)
    pd.testing.assert_frame_equal(again.to_frame(), table)
    shuffled = Interactions.from_frame(table.iloc[random.sample(range(len(table)), len(table))])
    np.testing.assert_array_equal(shuffled.to_dense(), again.to_dense())
    assert shuffled.user_ids.tolist() == again.user_ids.tolist()


# -------------------------------------------------------------------- users, items, ids


def test_empty_users_and_items_are_kept():
    data = Interactions.from_csr(sp.csr_array(([4.0], ([1], [2])), shape=(3, 5)))
    assert (data.n_users, data.n_items, data.n_ratings, data.density) == (3, 5, 1, 1 / 15)
    only_nan = Interactions.from_dense([[NAN, NAN], [1, NAN]])
    assert only_nan.select([0]).to_dense().shape == (2, 2)


def test_what_is_given_stays_and_pairs_without_ratings_count_one():
    data = build([0, 1], [0, 1], [1, 2])
    assert as_interactions(data) is data
    assert Interactions.from_frame(frame()[["user", "item"]], rating=None).ratings.tolist() == [1, 1]


def test_ids_default_to_numbers_follow_the_rows_and_may_be_of_mixed_types():
    matrix = sp.csr_array([[0, 2], [3, 0]])
    assert triples(Interactions.from_csr(matrix)) == {(0, 1, 2.0), (1, 0, 3.0)}
    named = Interactions.from_csr(matrix, user_ids=["b", 1], item_ids=[(1, 2), b"x"])
    assert triples(named) == {("b", b"x", 2.0), (1, (1, 2), 3.0)}
    assert named.user_ids.tolist() == ["b", 1]
    assert triples(Interactions.from_frame(named.to_frame())) == triples(named)


def test_a_wide_table_may_have_other_names_and_is_no_long_one():
    table = pd.DataFrame({"x": [5, np.nan], "y": [2, 1]}, index=["ann", "bob"])
    assert Interactions.from_dense(table, item_ids=[7, 8]).item_ids.tolist() == [7, 8]
    with fails("expected the column(s) ['user', 'item', 'rating'], found ['x', 'y']: a table with one user per row"):
        Interactions.from_frame(table)
    with pytest.raises(DataError, match="'x'"):
        Interactions.from_dense(table.set_axis(["x", "x"], axis=1))


# -------------------------------------------------------------------- ratings


def test_negative_ratings_need_a_word():
    message = "ratings must be >= 0, found 2 negative, the first in row 1: -1; if these are no code for "
    message += "missing, state rating_scale=(-2, 1) (in the shell --rating-scale=-2,1), or pass allow_negative=True"
    with fails(message):
        build([0, 0, 1], [0, 1, 1], [1, -1, -2])
    for read, container in [
        (Interactions.from_frame, frame(rating=[-1, 2])),
        (Interactions.from_csr, sp.csr_array([[-1.0]])),
        (as_interactions, [[-1.0]]),
    ]:
        with fails("ratings must be >= 0, found 1 negative, the first in row 0: -1"):
            read(container)
        assert read(container, allow_negative=True).ratings.min() == -1


# -------------------------------------------------------------------- duplicates


@fast
@given(triples_of_four, st.sampled_from(["first", "last", "mean", "sum"]))
def test_rules_for_repeated_pairs_are_those_of_pandas(rows, rule):
    table = pd.DataFrame(rows, columns=["user", "item", "rating"]).assign(weight=range(1, len(rows) + 1))
    table["timestamp"] = table["row"] = table["weight"]
    columns = {"timestamps": table["timestamp"], "weights": table["weight"]}
    data = Interactions(table["user"], table["item"], table["rating"], range(4), range(4), **columns, duplicates=rule)
    place = "last" if rule == "last" else "first"
    moment = "max" if rule in ("mean", "sum") else place
    rules = {"rating": rule, "timestamp": moment, "weight": rule, "row": place}
    expected = table.groupby(["user", "item"], as_index=False).agg(rules).sort_values("row", ignore_index=True)
    del expected["row"]
    pd.testing.assert_frame_equal(data.to_frame(), expected, check_dtype=False)


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
    with pytest.raises(ParameterError, match=r"duplicates must be one of 'error', 'first', .* found 'max'"):
        build([0], [0], [1], duplicates="max")


# -------------------------------------------------------------------- what does not fit


TWO, EYE = [0, 1], sp.eye_array(2, format="csr")


@pytest.mark.parametrize(
    ("given_arrays", "options", "message"),
    [
        (([0, 2], TWO, [1, 1]), {}, "user indices must lie in 0..1, found 0..2"),
        ((TWO, [-1, 1], [1, 1]), {}, "item indices must lie in 0..2, found -1..1"),
        (([0.0, 1.0], TWO, [1, 1]), {}, "user indices must be a 1-D array of integers, found float64 (2,)"),
        ((TWO, TWO, [1]), {}, "expected one rating for each of 2 pairs, found shape (1,)"),
        ((TWO, [0], [1, 1]), {}, "expected a user and an item for each rating, found 2 users and 1 items"),
        ((np.empty(0, int), np.empty(0, int), []), {}, "expected at least one rating, found none"),
        ((TWO, TWO, ["good", 1]), {}, "ratings must be numbers, found 'good'"),
        ((TWO, TWO, [1 + 2j, 1]), {}, "ratings must be numbers, found (1+2j)"),
        ((TWO, TWO, np.array(["2020-01-01", "2020-01-02"], "M8[ns]")), {}, "ratings must be numbers, found 'dates'"),
        ((TWO, TWO, pd.Series([pd.NA, 1])), {}, "ratings must be numbers, found <NA>"),
        ((TWO, TWO, [1, 1]), {"timestamps": [1, NAN]}, "timestamps must be finite numbers or dates, found 1 missing"),
        (
            (TWO, TWO, [1, 1]),
            {"timestamps": pd.to_datetime([None, "2020"])},
            "timestamps must be finite numbers or dates",
        ),
        ((TWO, TWO, [1, 1]), {"timestamps": ["noon", "night"]}, "timestamps must be finite numbers or dates in ISO"),
        ((TWO, TWO, [1, 1]), {"timestamps": [1]}, "timestamps must be 2 finite numbers or dates, found shape (1,)"),
        ((TWO, TWO, [1, 1]), {"weights": [1.0]}, "expected one weight for each of 2 ratings"),
        (
            (TWO, TWO, [1, 1]),
            {"weights": [1, -2]},
            "weights must be finite and >= 0, found 1 others, the first in row",
        ),
        ((TWO, TWO, [1, 1]), {"weights": [NAN, np.inf]}, "weights must be finite and >= 0, found 2 others"),
        ((TWO, TWO, [1, NAN]), {}, "ratings must be finite, found 1 NaN or infinite, the first in row 1: nan; drop"),
        ((TWO, TWO, [1, -np.inf]), {}, "ratings must be finite, found 1 NaN or infinite, the first in row 1: -inf"),
        ((TWO, TWO, [1, 1]), {"weights": [0, 0]}, "expected at least one weight > 0"),
        ((TWO, TWO, [1, 1]), {"weights": ["much", 1]}, "weights must be numbers, found 'much'"),
    ],
)
def test_arrays_have_to_fit(given_arrays, options, message):
    with fails(message):
        build(*given_arrays, **options)


@pytest.mark.parametrize(
    ("read", "container", "message"),
    [
        (Interactions.from_frame, frame().iloc[:0], "expected at least one rating, found an empty table"),
        (Interactions.from_dense, [[NAN, NAN]], "expected at least one rating, found none"),
        (Interactions.from_csr, sp.csr_array((2, 2)), "expected at least one rating, found none"),
        (Interactions.from_frame, frame()[["user"]], "expected the column(s) ['item', 'rating'], found ['user']"),
        (partial(Interactions.from_frame, weight="often"), frame(), "expected the column(s) ['often']"),
        (Interactions.from_frame, frame(rating=[1, np.inf]), "ratings must be finite, found 1 NaN or infinite"),
        (Interactions.from_csr, sp.csr_array([[1, NAN]]), "ratings must be finite, found 1 NaN or infinite"),
        (Interactions.from_dense, [[1, np.inf, NAN]], "ratings must be finite, found 1"),
        (
            partial(Interactions.from_dense, user_ids=["a"]),
            np.eye(2),
            "expected 2 user ids, one per matrix row, found 1",
        ),
        (partial(Interactions.from_csr, item_ids="abc"), EYE, "expected 2 item ids, one per matrix column, found 3"),
        (partial(Interactions.from_csr, user_ids="aa"), EYE, "user ids must be distinct, found 'a' twice"),
        (Interactions.from_csr, np.eye(2), "expected ratings as a 2-D SciPy sparse matrix, found ndarray"),
        (
            Interactions.from_csr,
            sp.coo_array(np.ones(2)),
            "expected ratings as a 2-D SciPy sparse matrix, found coo_array of 1",
        ),
        (Interactions.from_dense, [1, 2], "expected a 2-D array (users x items), found 1 dimension(s)"),
        (Interactions.from_dense, [[1, 2], [3]], "ratings must be numbers, found [1, 2]"),
        (as_interactions, "u.data", "expected Interactions, a SciPy sparse matrix, a DataFrame with the columns user"),
    ],
)
def test_containers_of_the_wrong_kind_are_named(read, container, message):
    with fails(message):
        read(container)


# -------------------------------------------------------------------- timestamps


@pytest.mark.parametrize(
    "times",
    [
        pd.to_datetime(["2021-01-01", "2020-01-01"]),
        pd.to_datetime(["2021-01-01", "2020-01-01"], utc=True),
        np.array(["2021-01-01", "2020-01-01"], dtype="M8[D]"),
        [pd.Timestamp("2021-01-01"), pd.Timestamp("2020-01-01")],
        [1609459200 * 10**9, 1577836800 * 10**9],
    ],
)
def test_dates_become_nanoseconds_and_come_out_in_the_frame(times):
    data = Interactions.from_frame(frame(time=times), timestamp="time")
    assert data.timestamps.tolist() == [1609459200 * 10**9, 1577836800 * 10**9]
    again = Interactions.from_frame(data.to_frame(), timestamp="timestamp")
    assert again.timestamps.tolist() == data.timestamps.tolist()
    assert "timestamp" not in build([0], [0], [1]).to_frame()


# -------------------------------------------------------------------- weights


def test_weights_stand_where_the_ratings_stand_and_are_absent_unless_given():
    data = build([0, 1, 1], [0, 0, 1], [5, 3, 1], weights=[1.0, 2.0, 0.5])
    assert data.weights_to_csr().toarray().tolist() == [[1.0, 0.0, 0.0], [2.0, 0.5, 0.0]]
    again = Interactions.from_frame(data.to_frame().rename(columns={"weight": "confidence"}), weight="confidence")
    assert again.weights.tolist() == data.weights.tolist() == [1.0, 2.0, 0.5]
    with pytest.warns(DataWarning, match="columns not read: 'weight'"):
        without = Interactions.from_frame(data.to_frame())
    assert without.weights is None
    assert without.weights_to_csr() is None
    assert "weight" not in without.to_frame()


# -------------------------------------------------------------------- select, repr


def test_select_takes_masks_and_positions_and_keeps_everyone():
    data = build([0, 1, 1], [0, 0, 1], [5, 3, 1], weights=[1.0, 2.0, 0.5], timestamps=[9, 8, 7])
    by_mask, by_position = data.select([False, True, True]), data.select([2, 1])
    assert by_mask.ratings.tolist() == [3, 1]
    for name, values in (("ratings", [1, 3]), ("timestamps", [7, 8]), ("weights", [0.5, 2.0])):
        assert getattr(by_position, name).tolist() == values
    assert triples(by_mask) == triples(by_position)
    assert by_mask.user_ids.tolist() == data.user_ids.tolist()
    assert by_mask.n_items == data.n_items
    assert repr(data) == "Interactions(n_users=2, n_items=3, n_ratings=3, density=50.00 %, ratings 1..5)"


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


# -------------------------------------------------------------------- bits


@fast
@given(st.lists(st.floats(0, allow_nan=False, allow_infinity=False), min_size=1, max_size=16))
def test_ratings_come_back_as_they_were_given(values):
    size = len(values)
    data = Interactions(range(size), [0] * size, values, range(size), ["x"])
    assert data.ratings.dtype == np.float64
    assert pickle.loads(pickle.dumps(data)).ratings.tolist() == data.ratings.tolist() == values
    assert data.select([size - 1]).ratings.tolist() == values[-1:]


@pytest.mark.parametrize(("step", "held"), [(0.5, 12), (0.1, 16)])
def test_a_rating_takes_twelve_bytes_where_that_loses_nothing(step, held):
    values = np.arange(16) * step
    data = Interactions(np.repeat(range(4), 4), np.tile(range(4), 4), values, range(4), range(4))
    arrays = [array for array in vars(data).values() if isinstance(array, np.ndarray)]
    assert sum(array.nbytes for array in arrays) == held * data.n_ratings
    assert (data.ratings == values).all()


def test_arrays_of_the_callers_are_taken_over_on_request_alone():
    arrays = np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([3, 4.5], np.float32)
    for copy in (True, False):
        data = build(*arrays, copy=copy)
        for taken, own in zip((data.user_index, data.item_index), arrays[:2], strict=True):
            assert np.shares_memory(taken, own) != copy
    kept, taken = build(*arrays), build(*arrays, copy=False)
    arrays[2][0] = 9
    assert (kept.ratings.tolist(), taken.ratings.tolist()) == ([3, 4.5], [9, 4.5])


def test_positions_have_as_many_bits_as_they_need_and_pairs_64():
    assert index_type(2**31) is np.int32
    assert index_type(2**31 + 1) is np.int64
    users, items = np.array([0, 61_356, MANY - 1]), np.array([0, 47_296, MANY - 1])
    assert (users * MANY + items).astype(np.int32)[1] == 0  # what 32 bits would make of the second pair
    data = Interactions(users, items, [1, 2, 3], range(MANY), range(MANY))
    assert data.user_index.dtype == np.int32
    assert data.pair_index.tolist() == [0, 2**32, MANY**2 - 1]
    assert predefined(data, [61_356], [47_296]).test.tolist() == [False, True, False]
    with pytest.raises(DataError, match="1 duplicate"):
        Interactions(np.append(users, MANY - 1), np.append(items, MANY - 1), [1, 2, 3, 4], range(MANY), range(MANY))
