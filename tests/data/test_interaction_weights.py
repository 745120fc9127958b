"""Weights of ratings: checked at the door, and carried wherever the ratings go."""

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.exceptions import DataError


def weighted(weights=(1.0, 2.0, 0.5), duplicates="error", users=(0, 1, 1), **kwargs):
    return Interactions(users, (0, 0, 1), (5, 3, 1), ["a", "b"], ["x", "y"], weights=weights, duplicates=duplicates)


def test_weights_are_absent_unless_given():
    data = Interactions((0,), (0,), (5,), ["a"], ["x"])
    assert data.weights is None
    assert data.weights_to_csr() is None
    assert "weight" not in data.to_frame()


def test_weights_come_from_a_column_and_go_back_to_one():
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "x"], "rating": [5.0, 3.0], "confidence": [1, 4]})
    data = Interactions.from_frame(frame, weight="confidence")
    assert data.weights.tolist() == [1.0, 4.0]
    assert data.to_frame()["weight"].tolist() == [1.0, 4.0]


def test_weights_stand_where_the_ratings_stand():
    data = weighted()
    assert data.weights_to_csr().toarray().tolist() == [[1.0, 0.0], [2.0, 0.5]]
    ratings, weights = data.to_csr(), data.weights_to_csr()
    np.testing.assert_array_equal(ratings.indices, weights.indices)
    np.testing.assert_array_equal(ratings.indptr, weights.indptr)


def test_a_selection_keeps_its_weights():
    assert weighted().select([2, 0]).weights.tolist() == [0.5, 1.0]
    assert weighted().select(np.array([False, True, False])).weights.tolist() == [2.0]


@pytest.mark.parametrize(("rule", "expected"), [("first", 2.0), ("last", 0.5), ("mean", 1.25), ("sum", 2.5)])
def test_duplicates_combine_their_weights_as_their_ratings(rule, expected):
    data = Interactions((0, 1, 1), (0, 1, 1), (5, 3, 1), "ab", "xy", weights=(1.0, 2.0, 0.5), duplicates=rule)
    assert data.weights.tolist() == [1.0, expected]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((1.0, 2.0), "one weight for each of 3 ratings"),
        ((1.0, -2.0, 1.0), "weights must be finite and >= 0, found 1 others, the first in row 1: -2"),
        ((1.0, np.nan, np.inf), "found 2 others, the first in row 1: nan"),
        ((0.0, 0.0, 0.0), "at least one weight > 0"),
        (("much", 1, 1), "weights must be numbers, found 'much'"),
    ],
)
def test_bad_weights_are_told(weights, message):
    with pytest.raises(DataError, match=message):
        weighted(weights)


def test_a_missing_column_is_told():
    frame = pd.DataFrame({"user": ["a"], "item": ["x"], "rating": [5.0]})
    with pytest.raises(DataError, match="confidence"):
        Interactions.from_frame(frame, weight="confidence")
