"""Which column is which, and which tables are wide."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.data.columns import may_be_wide, wide_frame
from air_recsys.data.interactions import as_interactions
from air_recsys.exceptions import DataError

NAN = np.nan
WIDE = pd.DataFrame({"Emma": [5, NAN, 1], "Dracula": [NAN, 4, 2]}, index=["ann", "bob", "eve"])
LONG = WIDE.rename_axis("user").reset_index().melt("user", var_name="item", value_name="rating").dropna()

WIDE_FORMS = {
    "labelled": WIDE,
    "users in a column": WIDE.rename_axis("reader").reset_index(),
    "numbers of users in a column": WIDE.set_axis([7, 8, 9]).rename_axis("user").reset_index(),
    "pivoted": LONG.pivot_table(index="user", columns="item", values="rating"),
    "items are numbers": WIDE.set_axis([10, 11], axis=1).reset_index(drop=True),
    "nothing labelled": WIDE.reset_index(drop=True),
    "nullable": WIDE.astype("Int64"),
    "objects": WIDE.astype(object).where(WIDE.notna(), None),
    "complete": WIDE.fillna(3),
}
LONG_FORMS = {
    "as expected": LONG,
    "in other cases": LONG.rename(columns=str.upper),
    "with a time": LONG.assign(timestamp=1.0),
}
NEITHER = {
    "other names": LONG.rename(columns={"user": "who", "item": "what", "rating": "how"}),
    "numbers under other names": pd.DataFrame({"a": [1, 1, 2], "b": [7, 8, 7], "c": [5, 3, 4]}),
    "numbers under usual names": pd.DataFrame({"userId": [1, 2], "movieId": [7, 8], "stars": [5, 3]}),
    "users twice": WIDE.rename_axis("reader").reset_index().iloc[[0, 0, 1]],
}


@pytest.mark.parametrize("form", WIDE_FORMS)
def test_a_wide_table_holds_a_user_a_row_and_an_item_a_column(form: str) -> None:
    table = WIDE_FORMS[form]
    data = as_interactions(table)
    expected = WIDE.fillna(3) if form == "complete" else WIDE
    if form == "pivoted":
        expected = expected[["Dracula", "Emma"]]
    np.testing.assert_array_equal(data.to_dense(), expected.to_numpy())
    names = {"numbers of users in a column": [7, 8, 9]} | {
        "items are numbers": [0, 1, 2],
        "nothing labelled": [0, 1, 2],
    }
    assert data.user_ids.tolist() == names.get(form, WIDE.index.tolist())
    assert data.item_ids.tolist() == ([10, 11] if form == "items are numbers" else expected.columns.tolist())


@pytest.mark.parametrize("form", LONG_FORMS)
def test_a_long_table_holds_a_rating_a_row_whatever_the_case_of_its_names(form: str) -> None:
    data = as_interactions(LONG_FORMS[form])
    assert data.n_ratings == len(LONG)
    assert data.item_ids.tolist() == ["Dracula", "Emma"]


@pytest.mark.parametrize("form", NEITHER)
def test_what_may_be_either_is_refused(form: str) -> None:
    assert wide_frame(NEITHER[form]) is None
    with pytest.raises(DataError, match="expected the column"):
        as_interactions(NEITHER[form])


def test_the_columns_that_are_probably_meant_are_named() -> None:
    message = (
        "expected the column(s) ['user', 'item', 'rating'], found ['userId', 'movieId', 'stars']; is user='userId', "
        "item='movieId', rating='stars' meant, for Interactions.from_frame and read_ratings (in the shell "
        "--user-column userId --item-column movieId --rating-column stars)?"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        as_interactions(NEITHER["numbers under usual names"])


def test_two_columns_whose_names_differ_in_case_are_told_apart_by_case_alone() -> None:
    frame = pd.DataFrame({"user": [1], "USER": [2], "item": [3], "rating": [4]})
    assert Interactions.from_frame(frame).user_ids.tolist() == [1]
    with pytest.raises(DataError, match="User"):
        Interactions.from_frame(frame, user="User")


@pytest.mark.parametrize(
    ("header", "wide"),
    [
        (["user", "Emma", "Dracula"], True),
        (["", "7", "8"], True),
        (["user", "item"], False),
        (["who", "what", "rating"], False),
        (["who", "what", "Time"], False),
        (["rating", "x", "y"], False),
        (["ann"], False),
    ],
)
def test_headers_of_wide_tables(header: list[str], wide: bool) -> None:
    assert may_be_wide(header) == wide
