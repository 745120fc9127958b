"""The equations of rows against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed

from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Equations, Rows, Solution, equations, solve
from air_recsys.nn.posterior.triangles import packed, symmetric


def partner(size, width=3, spread=True, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(size, width, width)) * 0.3
    covariance = packed(torch.as_tensor(roots @ roots.transpose(0, 2, 1))) if spread else None
    return Rows(torch.as_tensor(rng.normal(size=(size, width))), covariance)


def system_of(entries, side, other):
    return equations(Entries.of(entries, side), other, torch.ones_like(other.mean[:, 0]))


@pytest.mark.parametrize("side", [0, 1])
def test_exact_partners_give_the_normal_equations(side):
    data = drawn()
    entries = observed(data)
    other = partner(data.seen.shape[1 - side], spread=False)
    found = system_of(entries, side, other)
    seen, values = (data.seen.T, data.values.T) if side else (data.seen, data.values)
    inputs, biases = other.mean.numpy().copy(), other.mean.numpy()[:, -1]
    inputs[:, -1] = 1
    for row in (0, 7):
        place = seen[row]
        rest = values[row, place] - biases[place]
        np.testing.assert_allclose(symmetric(found.precision)[row], inputs[place].T @ inputs[place])
        np.testing.assert_allclose(found.right[row], inputs[place].T @ rest)
        assert found.squares[row] == pytest.approx(rest @ rest)


def test_expectations_are_those_over_draws_of_the_partner():
    data = drawn(m=4, n=5, density=0.8)
    entries, other, rng = observed(data), partner(5), np.random.default_rng(1)
    expected = system_of(entries, 0, other)
    assert other.covariance is not None
    draws = np.stack(
        [
            rng.multivariate_normal(mean, cov, 40_000)
            for mean, cov in zip(other.mean.numpy(), other.covariances().numpy(), strict=True)
        ],
        axis=1,
    )  # (s, n, d)
    inputs = draws.copy()
    inputs[:, :, -1] = 1
    for row in range(4):
        g, rest = inputs[:, data.seen[row]], data.values[row, data.seen[row]] - draws[:, data.seen[row], -1]
        np.testing.assert_allclose(
            symmetric(expected.precision)[row], np.einsum("sni,snj->ij", g, g) / len(g), atol=0.1
        )
        np.testing.assert_allclose(expected.right[row], np.einsum("sni,sn->i", g, rest) / len(g), atol=0.1)
        assert expected.squares[row] == pytest.approx((rest**2).sum(1).mean(), rel=0.03)


def test_squared_errors_are_those_of_the_scores():
    data = drawn()
    entries, columns, rows = observed(data), partner(50, spread=False), partner(60, spread=False, seed=2)
    found = system_of(entries, 0, columns)
    p, q = rows.mean.numpy(), columns.mean.numpy()
    errors = data.values - (p[:, :-1] @ q[:, :-1].T + p[:, -1:] + q[:, -1])
    np.testing.assert_allclose(found.squared_errors(rows), (errors**2 * data.seen).sum(1))


def test_the_solution_is_bayesian_linear_regression():
    data = drawn()
    entries, other = observed(data), partner(50, spread=False)
    found = system_of(entries, 0, other)
    mean, precision = torch.full((60, 3), 0.5, dtype=torch.float64), 2.0 * torch.eye(3, dtype=torch.float64)
    scale = torch.full((60,), 4.0, dtype=torch.float64)
    solution = solve(found, scale, mean, precision)
    matrix = precision + 4 * symmetric(found.precision)[3]
    np.testing.assert_allclose(symmetric(solution.covariance())[3], np.linalg.inv(matrix))
    right = precision @ mean[3] + 4 * found.right[3]
    np.testing.assert_allclose(solution.mean[3], np.linalg.solve(matrix, right))


def test_a_row_without_entries_has_its_prior():
    data = drawn()
    data.seen[5] = False
    entries = observed(data)
    found = system_of(entries, 0, partner(50))
    mean, precision = torch.arange(180.0, dtype=torch.float64).view(60, 3), 3.0 * torch.eye(3, dtype=torch.float64)
    solution = solve(found, torch.ones(60, dtype=torch.float64), mean, precision)
    np.testing.assert_allclose(solution.mean[5], mean[5])
    np.testing.assert_allclose(symmetric(solution.covariance())[5], np.eye(3) / 3, atol=1e-15)


def test_a_weight_of_two_is_an_entry_twice():
    data = drawn()
    entries, other = observed(data), partner(50)
    once = system_of(entries, 0, other)
    twice = system_of(entries._replace(weights=2 * torch.ones_like(entries.values)), 0, other)
    for one, two in zip(once, twice, strict=True):
        np.testing.assert_allclose(2 * one, two)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_draws_keep_the_gaussian(momentum):
    generator, size = torch.Generator().manual_seed(0), 20_000
    mean, precision = torch.tensor([1.0, -2.0]), torch.tensor([[2.0, 0.6], [0.6, 1.0]])
    empty = Equations(torch.zeros(size, 3), torch.zeros(size, 2), torch.zeros(size))
    solution = solve(empty, torch.ones(size), mean.repeat(size, 1), precision)
    state = solution.draw(solution.mean, 0.0, torch.randn(size, 2, generator=generator))
    state = solution.draw(state, momentum, torch.randn(size, 2, generator=generator))
    np.testing.assert_allclose(state.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(torch.cov(state.T), torch.linalg.inv(precision), atol=0.05)


def test_momentum_steps_past_the_mean():
    mean, before = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 0.0]])
    solution = Solution(mean, torch.eye(2)[None], torch.tensor(0))
    torch.testing.assert_close(solution.draw(before, 0.5, torch.zeros(1, 2)), torch.tensor([[0.0, -3.0]]))


def test_rows_that_are_not_definite_are_counted():
    precision = torch.stack([torch.eye(2), -torch.eye(2), torch.eye(2)])
    found = Equations(packed(precision), torch.zeros(3, 2), torch.zeros(3))
    solution = solve(found, torch.ones(3), torch.zeros(3, 2), 0.1 * torch.eye(2))
    assert solution.unsolved == 1
    assert solution.mean.isfinite().all(dim=1).tolist() == [True, False, True]
    assert solution.covariance().isfinite().all(dim=1).tolist() == [True, False, True]


def test_equations_that_are_zero_have_no_solution():
    entries = observed(drawn())
    found = system_of(entries._replace(weights=torch.zeros_like(entries.values)), 0, partner(50))
    zeros = torch.zeros(60, 3, dtype=torch.float64)
    solution = solve(found, torch.ones(60, dtype=torch.float64), zeros, torch.zeros(3, 3, dtype=torch.float64))
    assert solution.unsolved == 60
