"""Tables of ratings in every type of column that pandas has, and arrays as they come out of other programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError

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


TYPES: dict[str, list[str]] = {
    "user": ["object", "string", "string[python]", "string[pyarrow]", "category"],
    "item": ["int8", "uint64", "Int64", "UInt8", "int64[pyarrow]", "category"],
    "rating": [
        "int8",
        "float16",
        "float32",
        "Int64",
        "Float32",
        "object",
        "category",
        "int64[pyarrow]",
        "double[pyarrow]",
    ],
}


@pytest.mark.parametrize(("column", "kind"), [(name, kind) for name, kinds in TYPES.items() for kind in kinds])
def test_a_column_of_any_type_holds_the_same(column, kind):
    found = as_interactions(table(**{column: kind}))
    assert_same(found, as_interactions(table()))
    assert found.item_ids.dtype == np.int64
    assert {type(user) for user in found.user_ids} == {str}


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_converted_tables_hold_the_same(backend):
    assert_same(as_interactions(table().convert_dtypes(dtype_backend=backend)), as_interactions(table()))


@pytest.mark.parametrize("kind", ["bool", "boolean", "bool[pyarrow]"])
def test_truths_are_ones_and_zeros(kind):
    liked = table().assign(rating=VALUES > 2)
    assert_same(as_interactions(liked.astype({"rating": kind})), as_interactions(liked.astype({"rating": "float64"})))


def test_categories_that_nobody_has_are_no_users():
    known = pd.Categorical(table()["user"], categories=["nobody", "u2", "u1", "u0"])
    assert_same(as_interactions(table().assign(user=known)), as_interactions(table()))


MISSING = {
    "user": ["object", "string", "string[pyarrow]", "category"],
    "item": ["Int64", "int64[pyarrow]", "category"],
    "rating": ["Int64", "Float64", "boolean", "int64[pyarrow]", "double[pyarrow]", "category"],
}


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
    names: dict[str, Any] = {"weight": "weight", "timestamp": "time"}
    typed = Interactions.from_frame(plain.astype({"weight": kind, "time": "Int64"}), **names)
    expected = Interactions.from_frame(plain, **names)
    for found, wanted in ((typed.weights, expected.weights), (typed.timestamps, expected.timestamps)):
        assert found is not None
        assert wanted is not None
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(DataError, match="weights must be finite"):
        Interactions.from_frame(plain.assign(weight=pd.array([None] * ROWS.size, dtype="Float64")), weight="weight")


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
    "read-only CSR": frozen(csr()),
    "unsorted CSR": frozen(unsorted()),
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


def test_masked_entries_are_not_rated_whatever_lies_under_the_mask():
    filled = np.nan_to_num(DENSE, nan=-1)
    assert_same(as_interactions(np.ma.masked_equal(filled, -1)), as_interactions(DENSE))
    assert_same(as_interactions(np.ma.masked_equal(filled.astype(int), -1)), as_interactions(DENSE))
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
