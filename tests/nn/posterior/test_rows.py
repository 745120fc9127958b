"""New rows: what the sweeps would make of them, everything else held fixed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.exceptions import NumericalError
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.rows import Columns, Known, Prior, solve_row, solve_rows
from air_recsys.nn.posterior.triangles import packed

N, WIDTH = 7, 4
NO_COLUMNS = Columns(np.empty((1, 0, WIDTH)), None, np.empty(0))


def as_tensor(array):
    return None if array is None else torch.as_tensor(array, dtype=torch.float64)


def definite(rng, number):
    roots = rng.standard_normal((number, WIDTH, WIDTH))
    return roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(WIDTH)


def row(columns, values, weights=None):
    starts, places = torch.tensor([0, len(columns)]), torch.as_tensor(columns, dtype=torch.int64)
    return Observations(SparsePattern(starts, places, N), torch.as_tensor(values, dtype=torch.float64), weights)


def known(seed=0):
    rng = np.random.default_rng(seed)
    mean, noise, weights = rng.normal(size=(N, WIDTH)), rng.uniform(0.2, 2, N), rng.normal(size=(1, WIDTH))
    return Known(Rows(as_tensor(mean)), *map(as_tensor, (noise, weights, definite(rng, 1)[0])))


ONE = torch.ones(1, 1, dtype=torch.float64)


def test_trained_rows_come_out_again():
    data = drawn(m=30, n=20, density=0.4)
    entries = observed(data, weights=np.random.default_rng(0).uniform(0.5, 2, data.seen.shape))
    state = posterior(entries)
    for _ in range(400):
        state.sweep()
    noise, prior, trained = state.noise, state.priors[0], state.sides[0]
    fixed = Known(state.sides[1], noise.variance / noise.scales[1], prior.weights, prior.precision)
    found, scales = solve_rows(entries, prior.features, fixed)
    assert trained.covariance is not None
    assert found.covariance is not None
    np.testing.assert_allclose(found.mean, trained.mean, atol=2e-3)
    np.testing.assert_allclose(found.covariance, trained.covariance, atol=2e-3)
    np.testing.assert_allclose(scales, noise.scales[0], atol=2e-3)


def test_a_row_without_entries_is_its_prior():
    found, scales = solve_rows(row([], []), ONE, known())
    np.testing.assert_allclose(found.mean, known().weights)
    np.testing.assert_allclose(found.covariances()[0], torch.linalg.inv(known().precision))
    assert scales.tolist() == [1.0]
    prior = Prior(known().weights.numpy(), known().precision.numpy()[None])
    alone = solve_row(np.empty(0), None, NO_COLUMNS, prior)
    np.testing.assert_allclose(alone.means, prior.means)
    np.testing.assert_allclose(alone.covariances[0], found.covariances()[0])


def test_weights_are_repeated_entries():
    repeated = solve_rows(row([0, 2, 2], [1.0, 3.0, 3.0]), ONE, known())
    weighted = solve_rows(row([0, 2], [1.0, 3.0], torch.tensor([1.0, 2.0], dtype=torch.float64)), ONE, known())
    np.testing.assert_allclose(weighted[0].mean, repeated[0].mean)
    np.testing.assert_allclose(weighted[1], repeated[1])


@pytest.mark.parametrize(("weighted", "n_draws"), [(False, 0), (True, 0), (False, 3), (True, 3)])
def test_a_row_alone_is_the_row_among_others(weighted, n_draws):
    rng = np.random.default_rng(0)
    means = rng.standard_normal((max(n_draws, 1), N, WIDTH))
    covariances = None if n_draws else packed(as_tensor(0.1 * definite(rng, N))).numpy()
    noise, values = rng.uniform(0.5, 2, N), rng.standard_normal(N)
    weights = rng.uniform(0, 2, N) if weighted else None
    prior = Prior(rng.standard_normal((len(means), WIDTH)), definite(rng, len(means)))
    found = solve_row(values, weights, Columns(means, covariances, noise), prior)
    for draw in range(len(means)):
        columns = Rows(as_tensor(means[draw]), as_tensor(covariances))
        given = Known(columns, as_tensor(noise), as_tensor(prior.means[draw][None]), as_tensor(prior.precisions[draw]))
        rows, scales = solve_rows(row(range(N), values, as_tensor(weights)), ONE, given)
        np.testing.assert_allclose(found.means[draw], rows.mean[0], rtol=1e-9)
        np.testing.assert_allclose(found.covariances[draw], rows.covariances()[0], rtol=1e-9)
        np.testing.assert_allclose(found.scales[draw], scales[0], rtol=1e-9)


def test_rows_without_a_solution_say_so():
    with pytest.raises(NumericalError, match="1 rows of the posterior have no solution"):
        solve_rows(row([0], [1.0]), ONE, known()._replace(precision=-1e6 * known().precision))
    for precision in (np.diag([1.0, 1.0, 1.0, -1.0]), np.zeros((WIDTH, WIDTH))):
        with pytest.raises(NumericalError, match="1 rows of the posterior have no solution"):
            solve_row(np.empty(0), None, NO_COLUMNS, Prior(np.zeros((1, WIDTH)), precision[None]))
