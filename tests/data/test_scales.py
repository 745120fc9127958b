"""The scale of ratings: stated or found, and codes for missing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from air_recsys import AIR, Interactions
from air_recsys.data.interactions import as_interactions
from air_recsys.data.scales import as_scale, check_no_code
from air_recsys.exceptions import DataError, DataWarning, ParameterError

NAN = np.nan
WIDE = pd.DataFrame({"x": [-9.5, 99, 4], "y": [99, 5, 1], "z": [0, 10, -2]}, ["ann", "bob", "eve"])
LONG = WIDE.rename_axis("user").reset_index().melt("user", var_name="item", value_name="rating")
FORMS = {"wide": WIDE, "long": LONG, "matrix": sp.csr_array(WIDE.to_numpy()), "array": WIDE.to_numpy()}


@pytest.mark.parametrize("form", FORMS)
def test_a_code_for_missing_and_a_rating_outside_of_a_stated_scale_are_named(form: str) -> None:
    n_ratings = np.count_nonzero(WIDE) if form == "matrix" else WIDE.size
    message = (
        f"found 2 of {n_ratings} to be 99, where all others lie in -9.5..10: drop them if they stand for missing (in "
        "the shell --missing 99), or state rating_scale=(-9.5, 99)"
    )
    with pytest.raises(DataError, match=re.escape(message)):
        as_interactions(FORMS[form], allow_negative=True)
    assert as_interactions(FORMS[form], rating_scale=(-9.5, 99)).rating_scale == (-9.5, 99)
    with pytest.raises(DataError, match=r"expected ratings in -10\.\.10 \(rating_scale\), found 2 outside, .*: 99;"):
        as_interactions(FORMS[form], rating_scale=(-10, 10))


def test_a_stated_scale_goes_with_the_data() -> None:
    data = as_interactions(WIDE.replace(99, NAN), rating_scale=(-10, 10))
    assert data.rating_scale == data.select([0, 1]).rating_scale == (-10, 10)
    assert data.with_features(item=pd.DataFrame({"a": [1, 2, 3]}, ["x", "y", "z"])).rating_scale == (-10, 10)
    assert Interactions.from_dense([[1, 2]]).rating_scale is None
    with pytest.raises(DataError, match=r"expected ratings in 0\.\.10"):
        data.on_scale((0, 10))


@pytest.mark.parametrize("scale", [(5, 1), (1, 1), (1,), 5, "15", (1, NAN), (None, 5)])
def test_what_is_no_scale_is_refused(scale: object) -> None:
    with pytest.raises(ParameterError, match="rating_scale"):
        as_scale(scale)


@given(st.lists(st.floats(-1e4, 1e4), min_size=2, max_size=20))
def test_no_code_is_found_where_the_scale_reaches_as_far(ratings: list[float]) -> None:
    spread = np.array([*ratings, min(ratings) - 2e5, max(ratings) + 2e5])
    check_no_code(spread)


@pytest.mark.parametrize(
    "ratings", [[99, 99], [1, 99], [1, 50, 99], [1, 2, 3, 98], [0, 1, 2, 500], [0, 200, 255], [5, 5, 99]]
)
def test_ratings_that_may_be_what_they_are_pass(ratings: list[float]) -> None:
    check_no_code(np.array(ratings, dtype=float))


@pytest.mark.parametrize(
    "ratings", [[1, 5, 99], [1, 5, 3, 999, 999], [-99, 1, 5], [-10, 10, 99], [0, 100, 255], [0, 0.5, 9999]]
)
def test_codes_are_found_on_both_sides(ratings: list[float]) -> None:
    with pytest.raises(DataError, match="stand for missing"):
        check_no_code(np.array(ratings))


def test_models_keep_a_stated_scale_and_take_new_ratings_on_it(tmp_path) -> None:
    """A scale that is found: tests/models/test_new_rating_rules.py."""
    ratings = np.kron([[18.0, 2.0], [4.0, 16.0]], np.ones((3, 4)))
    how = {"n_factors": 2, "n_sweeps": 10, "random_state": 0, "device": "cpu", "clip": True}
    stated = AIR.for_ratings(**how).fit(ratings, rating_scale=(0, 20))
    new = pd.DataFrame({"user": [0, 9], "item": [0, 1], "rating": [20, 0]})
    for model in (stated, AIR.load(stated.save(tmp_path / "model.air"))):
        assert model.partial_fit(new).rating_scale_ == (0, 20)
        before = model.predict([0, 1], [0, 1])
        with pytest.raises(DataError, match=r"expected ratings in 0\.\.20 \(the scale of .*, found 99"):
            model.partial_fit(new.assign(rating=99))
        np.testing.assert_array_equal(model.predict([0, 1], [0, 1]), before)
    with pytest.raises(DataError, match=r"expected ratings in 5\.\.20"):
        AIR.for_ratings(**how).fit(Interactions.from_dense(ratings), rating_scale=(5, 20))


@pytest.mark.parametrize("values", [[-2, -1, 5], [-1, 1], [-1.5, 0, 1.5], [-3, -2]])
def test_ratings_below_zero_are_a_scale_and_said(values):
    frame = pd.DataFrame({"user": range(len(values)), "item": range(len(values)), "rating": values})
    readers: list[tuple[Any, Any]] = [(Interactions.from_frame, frame), (Interactions.from_dense, [values])]
    for read, data in readers:
        with pytest.warns(DataWarning, match="ratings below 0 are taken as part of the scale: state rating_scale="):
            assert read(data).ratings.min() == min(values)
        with pytest.raises(DataError, match="ratings must be >= 0"):
            read(data, allow_negative=False)
        assert read(data, rating_scale=(-9, 9)).rating_scale == (-9, 9)  # without a word


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([-1, 1, 10], "if these are no code for missing"),
        ([-1, 0, 4], "if these are no code for missing"),
        ([-1, -1, 3], "if these are no code for missing"),
        ([-10, -3, 10, 99], r"found 1 of 4 to be 99, where all others lie in -10\.\.10"),
    ],
)
def test_a_single_value_below_zero_is_no_scale_and_a_code_is_named_first(values, message):
    with pytest.raises(DataError, match=message):
        Interactions.from_dense([values])
