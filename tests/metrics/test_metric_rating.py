"""Errors of ratings: oracles, laws, and what is refused."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import mae, nmae, rmse

fast = settings(max_examples=60)
values = st.integers(-8000, 8000).map(lambda eighths: eighths / 8)
pairs = st.lists(st.tuples(values, values), min_size=1, max_size=20).map(lambda rows: np.array(rows).T)


@fast
@given(pairs)
def test_errors_are_their_definitions(pair):
    truth, prediction = pair
    n = len(truth)
    squares = math.fsum((y - p) ** 2 for y, p in zip(truth, prediction, strict=True))
    absolute = math.fsum(abs(y - p) for y, p in zip(truth, prediction, strict=True))
    assert rmse(truth, prediction) == pytest.approx(math.sqrt(squares / n))
    assert mae(truth, prediction) == pytest.approx(absolute / n)
    assert nmae(truth, prediction, value_range=4) == pytest.approx(absolute / n / 4)


def test_errors_are_those_of_surprise():
    accuracy = pytest.importorskip("surprise.accuracy")
    rng = np.random.default_rng(0)
    truth, prediction = rng.uniform(1, 5, (2, 50))
    rows = [(None, None, y, p, None) for y, p in zip(truth, prediction, strict=True)]
    assert rmse(truth, prediction) == pytest.approx(accuracy.rmse(rows, verbose=False))
    assert mae(truth, prediction) == pytest.approx(accuracy.mae(rows, verbose=False))


@fast
@given(pairs, st.floats(-10, 10), st.floats(0.1, 10))
def test_laws(pair, shift, scale):
    truth, prediction = pair
    for error in (rmse, mae):
        assert error(truth, truth) == 0
        assert error(truth, prediction) == error(prediction, truth)
        moved = error(scale * truth + shift, scale * prediction + shift)
        assert moved == pytest.approx(scale * error(truth, prediction), abs=1e-9)
    assert mae(truth, prediction) <= rmse(truth, prediction) * (1 + 1e-12)


@fast
@given(pairs, st.floats(-10, 10), st.floats(0.1, 10))
def test_nmae_does_not_depend_on_the_unit(pair, shift, scale):
    truth, prediction = np.append(pair[0], [0.0, 1.0]), np.append(pair[1], [0.5, 0.5])
    moved = nmae(scale * truth + shift, scale * prediction + shift)
    assert moved == pytest.approx(nmae(truth, prediction), rel=1e-6)
    assert nmae(truth, prediction) == pytest.approx(mae(truth, prediction) / (truth.max() - truth.min()))


def test_nmae_of_the_paper_takes_the_range_of_the_whole_matrix():
    truth = np.array([[0.0, 10.0], [4.0, 6.0]])
    hidden = np.array([[False, False], [True, True]])
    guess = np.full((2, 2), 5.0)
    assert nmae(truth[hidden], guess[hidden], value_range=np.ptp(truth)) == pytest.approx(0.1)
    assert nmae(truth[hidden], guess[hidden]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        ([1, 2], [1], "expected y_true and y_pred of the same length, found 2 and 1"),
        ([], [], "expected y_true as a 1-D array with at least one value, found shape (0,)"),
        ([[1, 2]], [1, 2], "expected y_true as a 1-D array with at least one value, found shape (1, 2)"),
        (3, 4, "expected y_true as a 1-D array with at least one value, found shape ()"),
        ([1, np.nan], [1, 2], "expected finite numbers in y_true, found 1 NaN or infinite, the first at position 1"),
        ([1, 2], [np.inf, 2], "expected finite numbers in y_pred, found 1 NaN or infinite, the first at position 0"),
        ([1, "x"], [1, 2], "expected y_true as a 1-D array of numbers, found list"),
    ],
)
def test_input_that_is_refused(truth, prediction, message):
    for error in (rmse, mae, nmae):
        with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
            error(truth, prediction)


def test_nmae_wants_a_range():
    with pytest.raises(DataError, match="at least two different values, found only 3; pass value_range"):
        nmae([3, 3], [1, 2])
    for wrong in (0, -1, np.nan, "4"):
        with pytest.raises(ParameterError, match="value_range must be a number > 0, found"):
            nmae([3, 3], [1, 2], value_range=wrong)
