"""The equations of rows against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed

from air_recsys.nn.posterior import equations as module
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import SLAB, Equations, Given, Rows, Solution, equations, half_sweep, solve
from air_recsys.nn.posterior.triangles import packed, size_of, symmetric


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


M, N = 30, 20


def given(width=3, spread=True, weighted=False, side=0):
    data, rng = drawn(m=M, n=N, density=0.4), np.random.default_rng(3)
    data.seen[4] = False
    weights = rng.uniform(0.5, 2, data.seen.shape) if weighted else None
    m, n = (N, M) if side else (M, N)
    roots = rng.normal(size=(n, width, width)) * 0.3
    covariance = packed(torch.as_tensor(roots @ roots.transpose(0, 2, 1))) if spread else None
    partner = Rows(torch.as_tensor(rng.normal(size=(n, width))), covariance)
    root = rng.normal(size=(width, width))
    values = (
        rng.uniform(0.5, 2, n),
        rng.uniform(0.5, 2, m),
        rng.normal(size=(m, width)),
        np.eye(width) + root @ root.T,
    )
    entries = Entries.of(observed(data, weights=weights), side)
    return Given(entries.cut(), partner, *map(torch.as_tensor, values)), data, weights


def dense(case, data, weights, side, row):
    """Mean, covariance and expected squared errors of one row, written out."""
    seen, values = (data.seen.T, data.values.T) if side else (data.seen, data.values)
    place = seen[row]
    confidence = np.ones(place.sum()) if weights is None else (weights.T if side else weights)[row, place]
    confidence = confidence * case.precisions.numpy()[place]
    mean, spread = case.partner.mean.numpy()[place], case.partner.covariances().numpy()[place]
    inputs = np.column_stack([mean[:, :-1], np.ones(len(mean))])
    with_bias, of_bias = spread[:, :, -1].copy(), spread[:, -1, -1].copy()
    spread = spread.copy()
    spread[:, -1] = spread[:, :, -1] = with_bias[:, -1] = 0
    rest = values[row, place] - mean[:, -1]
    a = np.einsum("j,jab->ab", confidence, inputs[:, :, None] * inputs[:, None] + spread)
    h = confidence @ (rest[:, None] * inputs - with_bias)
    s = confidence @ (rest**2 + of_bias)
    scale, prior = case.scales.numpy()[row], case.prior_precision.numpy()
    covariance = np.linalg.inv(prior + scale * a)
    mean = covariance @ (prior @ case.prior_mean.numpy()[row] + scale * h)
    return mean, covariance, s - 2 * h @ mean + np.sum(a * (covariance + np.outer(mean, mean)))


@pytest.mark.parametrize(
    ("width", "weighted", "side"), [(1, False, 0), (1, True, 1), (3, True, 0), (12, False, 1), (12, True, 0)]
)
def test_every_row_is_the_dense_formula(width, weighted, side):
    case, data, weights = given(width, weighted=weighted, side=side)
    assert size_of(12) > SLAB  # triangles are cut in the middle of a row
    found = half_sweep(case)
    for row in range(len(case.scales)):
        mean, covariance, errors = dense(case, data, weights, side, row)
        np.testing.assert_allclose(found.rows.mean[row], mean, atol=1e-10)
        np.testing.assert_allclose(found.rows.covariances()[row], covariance, atol=1e-10)
        np.testing.assert_allclose(found.errors[row], errors, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("block", "draws", "weighted"), [(1, False, True), (1, True, False), (7, True, True), (29, False, False)]
)
def test_blocks_are_one_block(weighted, block, draws, monkeypatch):
    case, _, _ = given(spread=not draws, weighted=weighted)
    ((_, entries),) = case.blocks
    noise = torch.as_tensor(np.random.default_rng(0).normal(size=(M, 3)))

    def draw(solution, rows):
        return solution.draw(torch.zeros_like(solution.mean), 0.5, noise[rows])

    whole = half_sweep(case, draw if draws else None)
    monkeypatch.setattr(module, "FACTORED", {"cpu": 2})
    parts = half_sweep(case._replace(blocks=entries.cut(block)), draw if draws else None)
    for one, two in zip((*whole.rows, *whole[1:3]), (*parts.rows, *parts[1:3]), strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            np.testing.assert_allclose(one, two, atol=1e-12)


def test_draws_come_with_the_means_and_without_covariances():
    case, _, _ = given(spread=False)
    found = half_sweep(case, lambda solution, rows: solution.mean + 1)
    assert found.rows.covariance is None
    np.testing.assert_allclose(found.rows.mean, found.means + 1)
    np.testing.assert_allclose(found.means, half_sweep(case).means)


@pytest.mark.parametrize("block", [None, 7])
def test_rows_without_a_solution_are_flagged_and_not_finite(block, monkeypatch):
    monkeypatch.setattr(module, "FACTORED", {"cpu": 2})
    case, data, _ = given()
    ((_, entries),) = case.blocks
    filled = torch.as_tensor(data.seen.any(axis=1))
    nothing = torch.zeros_like(case.prior_precision)
    scales = case.scales.clone()
    scales[[3, 8]] *= -1  # A is positive definite, and minus A is not
    assert filled[[3, 8]].all()
    found = half_sweep(case._replace(blocks=entries.cut(block), scales=scales, prior_precision=nothing))
    failed = ~found.means.isfinite().all(dim=1)
    assert failed[[3, 8]].all()
    assert found.flag.code == failed.sum() < M
