"""New rows: what the sweeps would make of them, everything else held fixed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.exceptions import AirRecsysError, NumericalError
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.rows import Columns, Known, Prior, solve_row, solve_rows
from air_recsys.nn.posterior.triangles import packed, squares, symmetric


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


N, WIDTH = 7, 4


def definite(rng: np.random.Generator, number: int) -> np.ndarray:
    roots = rng.standard_normal((number, WIDTH, WIDTH))
    return roots @ roots.swapaxes(1, 2) + 0.1 * np.eye(WIDTH)


def as_tensor(array: np.ndarray) -> torch.Tensor:
    return torch.as_tensor(array, dtype=torch.float64)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_draws", [0, 3])
def test_a_row_alone_is_the_row_among_others(weighted, n_draws):
    rng = np.random.default_rng(0)
    means = rng.standard_normal((max(n_draws, 1), N, WIDTH))
    covariances = None if n_draws else packed(as_tensor(0.1 * definite(rng, N))).numpy()
    noise, values = rng.uniform(0.5, 2, N), rng.standard_normal(N)
    weights = rng.uniform(0, 2, N) if weighted else None
    prior = Prior(rng.standard_normal((len(means), WIDTH)), definite(rng, len(means)))
    found = solve_row(values, weights, Columns(means, covariances, noise), prior)

    pattern = SparsePattern(torch.tensor([0, N]), torch.arange(N), N)
    entries = Observations(pattern, as_tensor(values), None if weights is None else as_tensor(weights))
    for draw in range(len(means)):
        columns = Rows(as_tensor(means[draw]), None if covariances is None else as_tensor(covariances))
        known = Known(columns, as_tensor(noise), as_tensor(prior.means[draw][None]), as_tensor(prior.precisions[draw]))
        rows, scales = solve_rows(entries, torch.ones(1, 1, dtype=torch.float64), known)
        np.testing.assert_allclose(found.means[draw], rows.mean[0], rtol=1e-9)
        np.testing.assert_allclose(found.covariances[draw], rows.covariances()[0], rtol=1e-9)
        np.testing.assert_allclose(found.scales[draw], scales[0], rtol=1e-9)


def test_a_row_without_entries_has_its_prior():
    prior = Prior(np.array([[1.0, -2.0]]), np.diag([2.0, 4.0])[None])
    found = solve_row(np.empty(0), None, Columns(np.empty((1, 0, 2)), None, np.empty(0)), prior)
    np.testing.assert_allclose(found.means, prior.means)
    np.testing.assert_allclose(found.covariances[0], np.diag([0.5, 0.25]))


@pytest.mark.parametrize("precision", [np.diag([1.0, -1.0]), np.zeros((2, 2))])
def test_equations_without_a_solution_are_an_error(precision):
    columns = Columns(np.empty((1, 0, 2)), None, np.empty(0))
    with pytest.raises(NumericalError, match="1 rows of the posterior have no solution"):
        solve_row(np.empty(0), None, columns, Prior(np.zeros((1, 2)), precision[None]))


def test_triangles_of_few_and_of_many_rows_are_the_same():
    rng = np.random.default_rng(0)
    rows, matrices = as_tensor(rng.standard_normal((200, WIDTH))), as_tensor(definite(rng, 200))
    assert torch.equal(squares(rows)[:5], squares(rows[:5]))
    assert torch.equal(packed(matrices)[:5], packed(matrices[:5]))
    assert torch.equal(symmetric(packed(matrices[:5])), matrices[:5])
