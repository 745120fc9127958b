"""Errors of ratings and measures of affinities: oracles, laws, and what is refused."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import aupr, auroc, concordance_index, mae, modified_r_squared, mse, nmae, rmse

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
    assert mse(truth, prediction) == pytest.approx(squares / n)
    assert mae(truth, prediction) == pytest.approx(absolute / n)
    assert nmae(truth, prediction, value_range=4) == pytest.approx(absolute / n / 4)


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


@pytest.mark.parametrize(
    ("truth", "prediction", "message"),
    [
        ([1, 2], [1], "of the same length, found 2 and 1"),
        ([], [], "expected y_true as a 1-D array with at least one value, found shape (0,)"),
        ([[1, 2]], [1, 2], "expected y_true as a 1-D array with at least one value, found shape (1, 2)"),
        (3, 4, "expected y_true as a 1-D array with at least one value, found shape ()"),
        ([1, np.nan], [1, 2], "expected finite numbers in y_true, found 1 NaN or infinite, the first at position 1"),
        ([1, 2], [np.inf, 2], "found 1 NaN or infinite, the first at position 0"),
        ([1, "x"], [1, 2], "expected y_true as a 1-D array of numbers, found list"),
    ],
)
@pytest.mark.parametrize("error", [rmse, mae, nmae, mse, concordance_index, modified_r_squared, auroc, aupr])
def test_input_that_is_refused(error, truth, prediction, message):
    with pytest.raises(DataError, match=re.escape(message)):
        error(truth, prediction)


def test_nmae_wants_a_range():
    truth, guess = np.array([4.0, 6.0]), np.array([5.0, 5.0])
    assert nmae(truth, guess, value_range=10) == pytest.approx(0.1)  # of a whole matrix, as in the paper
    assert nmae(truth, guess) == pytest.approx(0.5)
    with pytest.raises(DataError, match="at least two different values, found only 3; pass value_range"):
        nmae([3, 3], [1, 2])
    for wrong in (0, -1, np.nan, "4"):
        with pytest.raises(ParameterError, match="value_range must be a number > 0, found"):
            nmae([3, 3], [1, 2], value_range=wrong)


def affinities(n=60, seed=0):
    """Affinities with ties, and predictions with ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(5, 9, n).astype(float)
    return truth, (truth + rng.normal(size=n)).round(1)


@pytest.mark.parametrize("seed", range(3))
def test_concordance_is_that_of_all_pairs(seed):
    truth, predicted = affinities(seed=seed)
    higher = truth[:, None] > truth
    difference = predicted[:, None] - predicted
    expected = ((difference > 0)[higher].sum() + 0.5 * (difference == 0)[higher].sum()) / higher.sum()
    assert concordance_index(truth, predicted) == pytest.approx(expected, abs=1e-12)


def test_concordance_looks_at_the_order_alone_and_needs_one():
    truth, predicted = affinities()
    found = concordance_index(truth, predicted)
    assert concordance_index(3 * truth - 1, np.exp(predicted)) == pytest.approx(found)
    assert concordance_index(truth, -predicted) == pytest.approx(1 - found)
    assert concordance_index(truth, truth) == pytest.approx(1)
    assert concordance_index(truth, np.zeros(truth.size)) == 0.5
    with pytest.raises(DataError, match="differ, found one value"):
        concordance_index([5.0, 5.0], [1.0, 2.0])


def test_modified_r_squared_falls_with_noise_and_with_an_offset():
    truth, predicted = affinities()
    assert modified_r_squared(truth, truth) == pytest.approx(1)
    assert modified_r_squared(truth, 2 * truth) == pytest.approx(1)  # a line through the origin
    exact = np.corrcoef(truth, predicted)[0, 1] ** 2
    assert 0 < modified_r_squared(truth, predicted) < exact < 1
    assert modified_r_squared(truth, truth + 20) < 0.5
    with pytest.raises(DataError, match="differ, found one value"):
        modified_r_squared([5.0, 6.0], [2.0, 2.0])
