"""Tables of ratings, wide and long, in every type of column of pandas, and arrays as other programs make them."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.data.columns import wide_frame
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError, DataWarning

NAN = np.nan
DENSE = np.array([[5, NAN, 1, 2], [NAN, 4, NAN, 3], [2, 1, 5, NAN]])
ROWS, COLUMNS = np.nonzero(~np.isnan(DENSE))
VALUES = DENSE[ROWS, COLUMNS]


def table(**types: str) -> pd.DataFrame:
    """Ratings of users "u0".. and items 0.., as columns of given types."""
    users = [f"u{row}" for row in ROWS]
    return pd.DataFrame({"user": users, "item": COLUMNS, "rating": VALUES}).astype(types)


def assert_same(found: Interactions, expected: Interactions) -> None:
    assert found.user_ids.tolist() == expected.user_ids.tolist()
    assert found.item_ids.tolist() == expected.item_ids.tolist()
    np.testing.assert_array_equal(found.to_dense(), expected.to_dense())
    assert found.ratings.dtype == np.float64


# -------------------------------------------------------------------- names of columns

WIDE = pd.DataFrame({"Emma": [5, NAN, 1], "Dracula": [NAN, 4, 2]}, index=["ann", "bob", "eve"])
LONG = WIDE.rename_axis("user").reset_index().melt("user", var_name="item", value_name="rating").dropna()
TITLES, NAMES = ["Emma", "Dracula"], ["ann", "bob", "eve"]
WIDE_FORMS: dict[str, tuple[pd.DataFrame, list[Any], list[Any]]] = {
    "labelled": (WIDE, NAMES, TITLES),
    "users in a column": (WIDE.rename_axis("reader").reset_index(), NAMES, TITLES),
    "numbers of users": (WIDE.set_axis([7, 8, 9]).rename_axis("user").reset_index(), [7, 8, 9], TITLES),
    "pivoted": (LONG.pivot_table(index="user", columns="item", values="rating")[TITLES], NAMES, TITLES),
    "items are numbers": (WIDE.set_axis([10, 11], axis=1).reset_index(drop=True), [0, 1, 2], [10, 11]),
    "nullable": (WIDE.astype("Int64"), NAMES, TITLES),
    "objects": (WIDE.astype(object).where(WIDE.notna(), None), NAMES, TITLES),
    "complete": (WIDE.fillna(3), NAMES, TITLES),
}
NEITHER = {
    "other names": LONG.rename(columns={"user": "who", "item": "what", "rating": "how"}),
    "numbers under other names": pd.DataFrame({"a": [1, 1, 2], "b": [7, 8, 7], "c": [5, 3, 4]}),
    "numbers under two usual names": pd.DataFrame({"userId": [1, 2], "uid": [7, 8], "stars": [5, 3]}),
    "users twice": WIDE.rename_axis("reader").reset_index().iloc[[0, 0, 1]],
}


@pytest.mark.parametrize("form", WIDE_FORMS)
def test_a_wide_table_holds_a_user_a_row_and_an_item_a_column(form: str) -> None:
    given, users, items = WIDE_FORMS[form]
    data = as_interactions(given)
    np.testing.assert_array_equal(data.to_dense(), WIDE.fillna(3) if form == "complete" else WIDE)
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == (users, items)


@pytest.mark.parametrize("form", [LONG, LONG.rename(columns=str.upper), LONG.assign(timestamp=1.0)])
def test_a_long_table_holds_a_rating_a_row_whatever_the_case_of_its_names(form: pd.DataFrame) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        data = as_interactions(form)
    assert data.n_ratings == len(LONG)
    assert data.item_ids.tolist() == ["Dracula", "Emma"]
    assert len(told) == ("timestamp" in form)  # which is not read


@pytest.mark.parametrize("form", NEITHER)
def test_what_may_be_either_is_refused(form: str) -> None:
    assert wide_frame(NEITHER[form]) is None
    with pytest.raises(DataError, match="expected the column"):
        as_interactions(NEITHER[form])


def test_the_columns_that_are_probably_meant_are_named() -> None:
    message = (
        "expected the column(s) ['film'], found ['userId', 'movieId', 'stars']; is item='movieId' meant, for "
        "Interactions.from_frame and read_ratings (in the shell --item-column movieId)?"
    )
    frame = pd.DataFrame({"userId": [1, 2], "movieId": [7, 8], "stars": [5, 3]})
    with pytest.raises(DataError, match=re.escape(message)):
        Interactions.from_frame(frame, item="film")
    with pytest.warns(DataWarning, match="columns read: 'userId' as user, 'movieId' as item, 'stars' as rating"):
        assert as_interactions(frame).ratings.tolist() == [5, 3]


def test_two_columns_whose_names_differ_in_case_are_told_apart_by_case_alone() -> None:
    frame = pd.DataFrame({"user": [1], "USER": [2], "item": [3], "rating": [4]})
    with pytest.warns(DataWarning, match="columns not read: 'USER'"):
        assert Interactions.from_frame(frame).user_ids.tolist() == [1]
    with pytest.raises(DataError, match="User"):
        Interactions.from_frame(frame, user="User")


def test_a_column_that_stands_twice_is_not_called_absent() -> None:
    frame = LONG.set_axis(["user", "item", "item"], axis=1)
    with pytest.raises(DataError, match="'item' stands there 2 times"):
        Interactions.from_frame(frame, rating=None)


def test_flags_as_ratings_are_said() -> None:
    with pytest.warns(DataWarning, match="True and False are taken as 1 and 0"):
        assert Interactions.from_frame(LONG.assign(rating=LONG["rating"] > 3)).ratings.tolist() == [1, 0, 1, 0]


# -------------------------------------------------------------------- types of columns

NUMBERS = ["int8", "uint64", "Int64", "int64[pyarrow]", "category"]
TYPES = {
    "user": ["object", "string", "string[python]", "string[pyarrow]", "category"],
    "item": NUMBERS,
    "rating": [*NUMBERS, "float16", "Float32", "object", "double[pyarrow]"],
}
MISSING = {
    "user": ["object", "string", "string[pyarrow]", "category"],
    "item": ["Int64", "int64[pyarrow]", "category"],
    "rating": ["Int64", "boolean", "double[pyarrow]", "category"],
}


@pytest.mark.parametrize(("column", "kind"), [(name, kind) for name, kinds in TYPES.items() for kind in kinds])
def test_a_column_of_any_type_holds_the_same(column, kind):
    found = as_interactions(table(**{column: kind}))
    assert_same(found, as_interactions(table()))
    assert found.item_ids.dtype == np.int64
    assert {type(user) for user in found.user_ids} == {str}


@pytest.mark.filterwarnings("ignore:ratings of True and False")
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_converted_tables_hold_the_same(backend):
    assert_same(as_interactions(table().convert_dtypes(dtype_backend=backend)), as_interactions(table()))
    kind = "boolean" if backend == "numpy_nullable" else "bool[pyarrow]"
    liked = table().assign(rating=VALUES > 2)
    assert_same(as_interactions(liked.astype({"rating": kind})), as_interactions(liked.astype({"rating": float})))


def test_categories_that_nobody_has_are_no_users():
    known = pd.Categorical(table()["user"], categories=["nobody", "u2", "u1", "u0"])
    assert_same(as_interactions(table().assign(user=known)), as_interactions(table()))


@pytest.mark.parametrize(("column", "kind"), [(name, kind) for name, kinds in MISSING.items() for kind in kinds])
def test_what_is_missing_is_an_error_in_every_type(column, kind):
    plain = table() if kind != "boolean" else table().assign(rating=VALUES > 2)
    holed = plain.astype({column: kind})
    holed.loc[3, column] = None
    with pytest.raises(DataError, match=r"row 3|found <NA>"):
        as_interactions(holed)


@pytest.mark.parametrize("kind", ["Float64", "double[pyarrow]"])
def test_weights_and_times_have_types_too(kind):
    plain = table().assign(weight=1.0 + ROWS, time=np.arange(ROWS.size))
    typed = plain.astype({"weight": kind, "time": "Int64"})
    found: Any = Interactions.from_frame(typed, weight="weight", timestamp="time")
    assert (found.weights.tolist(), found.timestamps.tolist()) == (plain["weight"].tolist(), plain["time"].tolist())
    bad = plain.drop(columns="time").assign(weight=pd.array([None] * ROWS.size, dtype="Float64"))
    with pytest.raises(DataError, match="weights must be finite"):
        Interactions.from_frame(bad, weight="weight")


# -------------------------------------------------------------------- arrays


def frozen(array: Any) -> Any:
    """Return an array, or a CSR matrix, that nobody can write to."""
    for part in (array,) if isinstance(array, np.ndarray) else (array.data, array.indices, array.indptr):
        part.setflags(write=False)
    return array


def every_second() -> np.ndarray:
    wide = np.zeros((6, 8))
    wide[::2, ::2] = DENSE
    return wide[::2, ::2]


def csr() -> sp.csr_array:
    return sp.csr_array((VALUES, (ROWS, COLUMNS)), shape=DENSE.shape)


def unsorted() -> sp.csr_array:
    matrix = csr()
    for low, high in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[low:high], matrix.data[low:high] = matrix.indices[low:high][::-1], matrix.data[low:high][::-1]
    matrix.has_sorted_indices = False
    return matrix


ARRAYS: dict[str, Any] = {
    "read-only": frozen(DENSE.copy()),
    "columns first": np.asfortranarray(DENSE),
    "a view with steps": every_second(),
    "a view backwards": np.ascontiguousarray(DENSE[::-1, ::-1])[::-1, ::-1],
    "foreign byte order": DENSE.astype(">f8"),
    "half precision": DENSE.astype(np.float16),
    "objects": DENSE.astype(object),
    "masked": np.ma.masked_invalid(DENSE),
    "masked integers": np.ma.masked_equal(np.nan_to_num(DENSE, nan=-1).astype(int), -1),
    "unsorted read-only CSR": frozen(unsorted()),
    "CSR of integers": csr().astype(np.int16),
    **{form: csr().asformat(form) for form in ("csc", "coo", "lil", "dok", "bsr")},
}


@pytest.mark.parametrize("form", ARRAYS)
def test_an_array_of_any_layout_holds_the_same_and_stays_as_it_is(form):
    given = ARRAYS[form]
    before = given.copy()
    assert_same(as_interactions(given), as_interactions(DENSE))
    if sp.issparse(given):
        assert (given != before).nnz == 0
    else:
        np.testing.assert_array_equal(given.astype(float), before.astype(float))


def test_masked_ratings_are_missing():
    hidden = np.ma.array(VALUES, mask=VALUES == 5)
    with pytest.raises(DataError, match="ratings must be finite, found 2 NaN"):
        Interactions(ROWS, COLUMNS, hidden, range(3), range(4))


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.int64])
def test_indices_and_ratings_may_be_read_only_views(kind):
    users, items, ratings = (frozen(np.repeat(array.astype(kind), 2))[::2] for array in (ROWS, COLUMNS, VALUES))
    found = Interactions(users, items, ratings, range(3), range(4))
    assert_same(found, as_interactions(DENSE))
    for own in (found.user_index, found.item_index, found.ratings):
        assert own.flags.writeable
        assert own.flags.c_contiguous
