"""Measures of affinities follow their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from air_recsys.exceptions import DataError
from air_recsys.metrics import concordance_index, modified_r_squared, mse, rmse


def values(n=60, seed=0):
    """Affinities with ties, and predictions with ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(5, 9, n).astype(float)
    return truth, (truth + rng.normal(size=n)).round(1)


@pytest.mark.parametrize("seed", range(5))
def test_concordance_is_that_of_all_pairs(seed):
    truth, predicted = values(seed=seed)
    higher = truth[:, None] > truth
    difference = predicted[:, None] - predicted
    expected = ((difference > 0)[higher].sum() + 0.5 * (difference == 0)[higher].sum()) / higher.sum()
    assert concordance_index(truth, predicted) == pytest.approx(expected, abs=1e-12)


def test_concordance_looks_at_the_order_alone():
    truth, predicted = values()
    found = concordance_index(truth, predicted)
    assert concordance_index(3 * truth - 1, np.exp(predicted)) == pytest.approx(found)
    assert concordance_index(truth, -predicted) == pytest.approx(1 - found)
    assert concordance_index(truth, truth) == pytest.approx(1)
    assert concordance_index(truth, np.zeros(truth.size)) == 0.5


def test_mse_is_the_square_of_the_rmse():
    truth, predicted = values()
    assert mse(truth, predicted) == pytest.approx(rmse(truth, predicted) ** 2)


def test_modified_r_squared_falls_with_noise_and_with_an_offset():
    truth, predicted = values()
    assert modified_r_squared(truth, truth) == pytest.approx(1)
    assert modified_r_squared(truth, 2 * truth) == pytest.approx(1)  # a line through the origin
    exact = np.corrcoef(truth, predicted)[0, 1] ** 2
    assert 0 < modified_r_squared(truth, predicted) < exact < 1
    assert modified_r_squared(truth, truth + 20) < 0.5


@pytest.mark.parametrize("metric", [concordance_index, modified_r_squared, mse])
def test_what_cannot_be_measured_is_refused(metric):
    with pytest.raises(DataError, match="same length"):
        metric([1.0, 2.0], [1.0])
    with pytest.raises(DataError):
        metric([1.0, np.nan], [1.0, 2.0])


def test_values_that_are_all_equal_have_no_order():
    with pytest.raises(DataError, match="differ, found one value"):
        concordance_index([5.0, 5.0], [1.0, 2.0])
    with pytest.raises(DataError, match="differ, found one value"):
        modified_r_squared([5.0, 6.0], [2.0, 2.0])
