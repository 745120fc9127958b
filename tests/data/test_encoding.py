"""How tables of features become numbers, and what is wrong with a table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from air_recsys.data.features import Encoding, as_table
from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import DataError, DataWarning

IDS = np.arange(6)


def encoded(**columns):
    table = pd.DataFrame(columns, index=IDS)
    encoding = Encoding.of(table, "item")
    return dict(zip(encoding.names, encoding.encode(table, "item").T, strict=True))


def data(n_users=3, n_items=6):
    return Interactions.from_dense(np.random.default_rng(0).integers(1, 6, (n_users, n_items)).astype(float))


def test_numbers_are_standardised_and_missing_ones_are_the_mean():
    found = encoded(year=[1990, 2000, 2010, None, 2020, 1980])["year"]
    present = np.delete(found, 3)
    assert found[3] == 0
    assert present.mean() == pytest.approx(0, abs=1e-6)
    assert present.std() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("flags", [[True, False, True, True, False, False], [1, 0, 1, 1, 0, 0], [1.0, 0, 1, 1, 0, 0]])
def test_flags_are_centred_alone(flags):
    np.testing.assert_array_equal(encoded(new=flags)["new"], np.array(flags, float) - 0.5)


@pytest.mark.parametrize(
    "genres",
    [
        ["Drama|War", "Drama", "War", None, "War | Drama", "War"],
        [["Drama", "War"], ("Drama",), {"War"}, None, np.array(["War", "Drama"]), ["War"]],
    ],
)
def test_text_and_lists_are_flags_of_levels(genres):
    found = encoded(genres=genres)
    assert list(found) == ["genres=Drama", "genres=War"]
    np.testing.assert_allclose(found["genres=Drama"], [0.4, 0.4, -0.6, 0, 0.4, -0.6], atol=1e-6)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pd.Series([3, 4, 3, 4, 4, 3], dtype="category"), ["x=3", "x=4"]),
        (["a", "a", "b", "b", "c", "d"], ["x=a", "x=b"]),  # levels of a single row say nothing
        *(
            (pd.Series([*list("FMFFM"), None], dtype=kind), ["x=F", "x=M"])
            for kind in ("object", "category", "string")
        ),
    ],
)
def test_levels_are_those_of_more_than_a_row_whatever_the_type(column, names):
    found = encoded(x=column)
    assert list(found) == names
    if names[0] == "x=F":
        np.testing.assert_allclose(found["x=F"], [0.4, -0.6, 0.4, 0.4, -0.6, 0], atol=1e-6)


def test_another_table_is_read_by_the_first():
    table = pd.DataFrame({"year": [1990.0, 2010.0, 2030.0], "genres": ["War", "War|Drama", "Drama"]})
    encoding = Encoding.of(table, "item")
    other = pd.DataFrame({"more": [1], "genres": ["Drama|Western"], "year": [2010]})
    np.testing.assert_allclose(encoding.encode(other, "item"), [[0, 1 / 3, -2 / 3]], atol=1e-6)
    unknown = pd.DataFrame({"genres": ["Western"], "year": [None]})
    np.testing.assert_array_equal(encoding.encode(unknown.astype({"year": float}), "item"), [[0, 0, 0]])
    assert Encoding.from_json(encoding.to_json()) == encoding
    with pytest.raises(DataError, match=r"numbers near those of the training in the column 'year', found 1e\+40"):
        encoding.encode(pd.DataFrame({"genres": ["War"], "year": [1e40]}), "item")
    for forged in ({"levels": ["War", "War"]}, {"separator": ""}, {"separator": 3}):
        with pytest.raises(ValueError, match="expected a column of features"):
            Encoding.from_json([each | forged for each in encoding.to_json() if each["name"] == "genres"])


def test_what_says_nothing_is_left_out_with_one_warning():
    columns = {
        "constant": [3] * 6,
        "rounded": [0.3, 0.1 + 0.2] * 3,
        "absent": [None] * 6,
        "title": list("abcdef"),
        "year": [1, 2, 3, 4, 5, 6],
        "again": [1, 2, 3, 4, 5, 6],
    }
    with pytest.warns(DataWarning, match="are left out: constant, rounded, absent, title, again$") as caught:
        found = encoded(**columns)
    assert list(found) == ["year"]
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("column", "match"),
    [
        ([1.0, np.inf, 2, 3, 4, 5], "finite numbers in the column 'x', found inf"),
        ([1.0, 1e300, 2, 3, 4, 5], r"finite numbers in the column 'x', found 1e\+300 \(the largest is 1e\+150\)"),
        ([1j, 2, 3, 4, 5, 6], "real numbers"),
        (pd.to_datetime(["2020-01-01"] * 5 + ["2021-01-01"]), "numbers, text, or lists"),
        ([object()] * 6, "numbers, text, or lists"),
        ([["a"], [1.5], ["a"], ["b"], ["b"], ["c"]], "lists of text"),
    ],
)
def test_other_values_are_refused(column, match):
    with pytest.raises(DataError, match=match):
        encoded(x=column)


def test_a_million_levels_and_text_where_numbers_were_are_refused():
    levels = np.repeat(np.arange(50_000), 2).astype(str)
    with pytest.raises(DataError, match="at most 1000 levels in the column 'zip', found 50000"):
        Encoding.of(pd.DataFrame({"zip": levels}), "user")
    wide = pd.DataFrame(np.random.default_rng(0).random((3, 1001))).rename(columns=str)
    with pytest.raises(DataError, match="at most 1000 user features in all, found 1001"):
        Encoding.of(wide, "user")
    encoding = Encoding.of(pd.DataFrame({"age": [20, 30]}), "user")
    with pytest.raises(DataError, match="expected numbers in the column 'age', found 'old'"):
        encoding.encode(pd.DataFrame({"age": ["old"]}), "user")
    with pytest.raises(DataError, match=r"expected the user features \['age'\], found \['size'\]"):
        encoding.encode(pd.DataFrame({"size": [1]}), "user")


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (pd.DataFrame({"a": [1, 2]}, index=[0, 0]), "one row of features for each item, found 1 more, the first"),
        (pd.DataFrame({"a": [1, 2]}, index=[0, None]), "needs an id"),
        (pd.DataFrame({"a": [1, 2]}, index=["x", "y"]), "ids are such as 0, those of the features such as 'x'"),
        (pd.DataFrame([[1, 2], [2, 3]], columns=["a", "a"]), "different names, found 'a' twice"),
        (pd.DataFrame(index=[0, 1]), "found a table of 2 rows, 0 columns"),
        (pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(0, 1)])), "several levels"),
        (np.ones((4, 2)), r"6 rows, one a item, found shape \(4, 2\)"),
        ("file.csv", "found str"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, match):
    with pytest.raises(DataError, match=match):
        as_table(table, "item", IDS)


def test_ids_may_stand_in_a_column_or_be_those_of_a_matrix():
    by_column = as_table(pd.DataFrame({"item": IDS, "a": IDS * 2}), "item", IDS)
    assert by_column.index.tolist() == IDS.tolist()
    assert as_table(sp.csr_array(np.eye(6)), "item", IDS).columns.tolist() == list("012345")


def test_ids_that_nobody_rated_come_in_at_the_end_and_others_are_average():
    known = data().with_features(item=pd.DataFrame({"year": [1990, 2000, 2010]}, index=[9, 0, 5]))
    assert known.item_ids.tolist() == [0, 1, 2, 3, 4, 5, 9]
    assert known.n_features == (0, 1)
    assert known.item_features is not None
    np.testing.assert_allclose(known.item_features.values[:, 0], [0, 0, 0, 0, 0, 1.2247449, -1.2247449], atol=1e-6)
    part = known.select(np.arange(4))
    assert part.item_features is known.item_features
    assert data().n_features == (0, 0)


def test_warnings_point_to_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data().with_features(item=pd.DataFrame({"year": IDS, "same": 1}))
    assert [warning.filename for warning in caught] == [__file__]
