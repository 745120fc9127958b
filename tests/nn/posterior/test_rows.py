"""New rows: what the sweeps would make of them, everything else held fixed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.exceptions import AirRecsysError
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.rows import Known, solve_rows


def known(n=7, width=3, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(width, width))
    arrays = (
        rng.normal(size=(n, width)),
        rng.uniform(0.2, 2, n),
        rng.normal(size=(2, width)),
        np.eye(width) + root @ root.T,
    )
    mean, *rest = (torch.as_tensor(array) for array in arrays)
    return Known(Rows(mean), *rest)


def row(columns, values, weights=None):
    starts, places = torch.tensor([0, len(columns)]), torch.as_tensor(columns, dtype=torch.int64)
    confidence = None if weights is None else torch.as_tensor(weights, dtype=torch.float64)
    return Observations(SparsePattern(starts, places, 7), torch.as_tensor(values, dtype=torch.float64), confidence)


ONE = torch.ones(1, 2, dtype=torch.float64)


@pytest.mark.parametrize("weighted", [False, True])
def test_trained_rows_come_out_again(weighted):
    data = drawn(m=30, n=20, density=0.4)
    weights = np.random.default_rng(0).uniform(0.5, 2, data.seen.shape) if weighted else None
    entries = observed(data, weights=weights)
    state = posterior(entries)
    for _ in range(400):
        state.sweep()
    noise, prior = state.noise, state.priors[0]
    found, scales = solve_rows(
        entries,
        prior.features,
        Known(state.sides[1], noise.variance / noise.scales[1], prior.weights, prior.precision),
    )
    trained = state.sides[0]
    assert trained.covariance is not None
    assert found.covariance is not None
    np.testing.assert_allclose(found.mean, trained.mean, atol=2e-3)
    np.testing.assert_allclose(found.covariance, trained.covariance, atol=2e-3)
    np.testing.assert_allclose(scales, noise.scales[0], atol=2e-3)


def test_a_row_is_the_minimum_of_its_squares():
    given, columns, values = known(), [0, 2, 5], np.array([1.0, -2.0, 0.5])
    (found, scales) = solve_rows(row(columns, values), ONE, given)
    inputs = given.columns.mean.numpy()[columns].copy()
    rest = values - inputs[:, -1]
    inputs[:, -1] = 1.0
    share = 1 / given.noise.numpy()[columns]
    t, precision = _last_but_one(given, inputs, rest, share), given.precision.numpy()
    right = precision @ (np.ones(2) @ given.weights.numpy()) + t * inputs.T @ (share * rest)
    np.testing.assert_allclose(found.mean[0], np.linalg.solve(precision + t * (inputs.T * share) @ inputs, right))
    assert scales[0] == pytest.approx(t, rel=0.05)


def _last_but_one(given, inputs, rest, share):
    """The scale that the last solve has used: four updates from 1."""
    t, precision, prior = 1.0, given.precision.numpy(), np.ones(2) @ given.weights.numpy()
    for _ in range(4):
        matrix = precision + t * (inputs.T * share) @ inputs
        mean = np.linalg.solve(matrix, precision @ prior + t * inputs.T @ (share * rest))
        spread = np.einsum("ja,ab,jb->j", inputs, np.linalg.inv(matrix), inputs)
        t = (10 + len(rest)) / (10 + (share * ((rest - inputs @ mean) ** 2 + spread)).sum())
    return t


def test_a_row_without_entries_is_its_prior():
    given = known()
    found, scales = solve_rows(row([], []), ONE, given)
    np.testing.assert_allclose(found.mean, ONE @ given.weights)
    assert scales.tolist() == [1.0]


def test_weights_are_repeated_entries():
    given = known()
    repeated = solve_rows(row([0, 2, 2], [1.0, 3.0, 3.0]), ONE, given)
    weighted = solve_rows(row([0, 2], [1.0, 3.0], [1.0, 2.0]), ONE, given)
    np.testing.assert_allclose(weighted[0].mean, repeated[0].mean)
    np.testing.assert_allclose(weighted[1], repeated[1])


def test_rows_without_a_solution_say_so():
    given = known()
    with pytest.raises(AirRecsysError, match="rows of the posterior have no solution"):
        solve_rows(row([0], [1.0]), ONE, given._replace(precision=-1e6 * given.precision))
