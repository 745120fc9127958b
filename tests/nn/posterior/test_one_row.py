"""A row alone is what the tables of many rows find of it."""

import numpy as np
import pytest
import torch

from air_recsys.exceptions import NumericalError
from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.equations import Rows
from air_recsys.nn.posterior.rows import Columns, Known, Prior, solve_row, solve_rows
from air_recsys.nn.posterior.triangles import packed, squares, symmetric

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
