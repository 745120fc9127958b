"""Variance components against data drawn from them, and against the evidence written out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.nn.build import observations
from air_recsys.nn.posterior.components import Components, components


def entries(rows, columns, values, shape, weights=None):
    def matrix(numbers):
        return sp.csr_array((numbers, (rows, columns)), shape=shape)

    confidence = None if weights is None else matrix(weights)
    return observations(matrix(values), lambda numbers: numbers, torch.float64, torch.device("cpu"), confidence)


def sparse(deviations, size=1500, n=4000, seed=0):
    """A few entries of many rows and columns; biases and noise have these standard deviations."""
    rng = np.random.default_rng(seed)
    rows, columns = np.divmod(np.sort(rng.choice(size * size, n, replace=False)), size)
    of_rows, of_columns, noise = deviations
    values = of_rows * rng.normal(size=size)[rows] + of_columns * rng.normal(size=size)[columns]
    return rows, columns, values + noise * rng.normal(size=n), (size, size)


@pytest.mark.parametrize("deviations", [(0.5, 0.7, 0.8), (0.8, 0.2, 1.0)])
def test_variances_behind_sparse_data_are_found(deviations):
    found = np.mean([components(entries(*sparse(deviations, seed=seed))) for seed in range(8)], axis=0)
    np.testing.assert_allclose(found, np.square(deviations), rtol=0.15, atol=0.02)


def test_no_variances_nearby_have_more_evidence():
    """Restricted maximum likelihood, written out: the mean is free."""
    rows, columns, values, shape = sparse((0.6, 0.5, 0.7), size=100, n=220)
    left, right = np.eye(100)[rows], np.eye(100)[columns]

    def evidence(rows_variance, columns_variance, noise):
        covariance = rows_variance * left @ left.T + columns_variance * right @ right.T + noise * np.eye(values.size)
        inverse = np.linalg.inv(covariance)
        total = inverse.sum()
        rest = values - inverse.sum(0) @ values / total
        return -(rest @ inverse @ rest + np.linalg.slogdet(covariance)[1] + np.log(total)) / 2

    found = components(entries(rows, columns, values, shape))
    for place in range(3):
        for factor in (0.4, 2.5):
            other = [value * (factor if place == index else 1) for index, value in enumerate(found)]
            assert evidence(*found) > evidence(*other)


def test_the_unit_does_not_matter_weights_of_0_count_for_nothing_and_sides_may_be_exchanged():
    rows, columns, values, shape = sparse((0.8, 0.3, 0.8))
    found = components(entries(rows, columns, values, shape))
    np.testing.assert_allclose(components(entries(rows, columns, 10 * values + 10, shape)), 100 * np.array(found))
    other = components(entries(columns, rows, values, shape))
    np.testing.assert_allclose(found, Components(other.columns, other.rows, other.noise), rtol=0.05)
    counted = np.arange(values.size) % 3 > 0
    garbage = np.where(counted, values, 50.0)
    weighted = components(entries(rows, columns, garbage, shape, counted.astype(float)))
    kept = components(entries(rows[counted], columns[counted], values[counted], shape))
    np.testing.assert_allclose(weighted, kept)


@pytest.mark.parametrize(("values", "weights"), [([3.0], None), ([0.0, 0.0], None), ([1.0, 2.0], [0.0, 0.0])])
def test_hardly_any_data_give_variances_above_0(values, weights):
    index = np.arange(len(values))
    found = components(entries(index, index, np.array(values), (2, 2), None if weights is None else np.array(weights)))
    assert all(np.isfinite(value) and value > 0 for value in found)
