"""Entries in blocks of rows, and the equations of rows against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.posterior import equations as module
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import SLAB, Equations, Given, Half, Rows, Solution, half_sweep, solve
from air_recsys.nn.posterior.exchange import Exchange, OwnEntries
from air_recsys.nn.posterior.posterior import Posterior
from air_recsys.nn.posterior.triangles import packed, size_of

M, N = 30, 20


@pytest.mark.parametrize(("size", "side", "weighted"), [(1, 0, True), (6, 1, False), (7, 1, True), (29, 0, False)])
def test_blocks_have_the_sums_of_their_rows(size, side, weighted):
    data = drawn(m=M, n=N)
    data.seen[6:8] = data.seen[-1] = False  # a block may be empty
    weights = np.random.default_rng(0).uniform(0.5, 2, data.seen.shape) if weighted else None
    whole = Entries.of(observed(data, weights=weights), side)
    m = (M, N)[side]
    table = torch.rand((N, M)[side], 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    blocks = whole.cut(size)
    assert [row for rows, _ in blocks for row in range(m)[rows]] == list(range(m))
    assert max(rows.stop - rows.start for rows, _ in blocks) == min(size, m)
    for power in (0, 1):
        parts = torch.cat([entries.sum(table, power) for _, entries in blocks])
        torch.testing.assert_close(parts, whole.sum(table, power))
    torch.testing.assert_close(torch.cat([entries.counts() for _, entries in blocks]), whole.counts())
    for size_of_all in (None, m, 100):
        ((rows, entries),) = whole.cut(size_of_all)
        assert rows == slice(0, m)
        assert entries is whole


class Part(Exchange):
    """Some rows of each side; the others are known, and what is found of the own ones is recorded."""

    def __init__(self, rows: slice = slice(None), known: tuple[Half, ...] = ()) -> None:
        self.rows, self.known = rows, known
        self.halves: list[Half] = []

    def own(self, side: int, n_rows: int) -> slice:
        return slice(*self.rows.indices(n_rows))

    def whole(self, side: int, half: Half) -> Half:
        self.halves.append(half)
        return self.known[side] if self.known else half


@pytest.mark.parametrize(("sample", "cuts"), [(False, (0, 1, 13)), (True, (0, 20)), (True, (0, 1, 13))])
def test_the_rows_of_all_parts_are_those_of_one_process(sample, cuts):
    """With the same numbers drawn: of Gaussians, and of draws."""
    entries, whole = observed(drawn(m=40, n=30)), Part()
    parts = [Part(slice(*pair)) for pair in zip(cuts, (*cuts[1:], None), strict=True)]
    for part in (whole, *parts):
        part.known = tuple(whole.halves)
        own = OwnEntries.of(entries, part)
        Posterior(own, constant(entries), 2, np.random.default_rng(0), sample=sample).sweep()
    for half, *shared in zip(whole.halves, *(part.halves for part in parts), strict=True):
        torch.testing.assert_close(torch.cat([each.means for each in shared]), half.means)
        torch.testing.assert_close(torch.cat([each.errors for each in shared]), half.errors)
        for number, expected in enumerate(half.rows):
            if expected is not None:
                torch.testing.assert_close(torch.cat([each.rows[number] for each in shared]), expected)


# -------------------------------------------------------------------- draws


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


# -------------------------------------------------------------------- half a sweep


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
    ("width", "spread", "weighted", "side"),
    [(1, True, False, 0), (1, True, True, 1), (3, True, True, 0), (3, False, False, 1), (12, True, True, 0)],
)
def test_every_row_is_the_dense_formula(width, spread, weighted, side):
    case, data, weights = given(width, spread, weighted, side)
    assert size_of(12) > SLAB  # triangles are cut in the middle of a row
    found = half_sweep(case)
    for row in range(len(case.scales)):
        mean, covariance, errors = dense(case, data, weights, side, row)
        np.testing.assert_allclose(found.rows.mean[row], mean, atol=1e-10)
        np.testing.assert_allclose(found.rows.covariances()[row], covariance, atol=1e-10)
        np.testing.assert_allclose(found.errors[row], errors, rtol=1e-8, atol=1e-10)


def test_the_moments_of_a_partner_are_those_of_its_draws():
    case, data, _ = given()
    rng, place, s = np.random.default_rng(1), data.seen[2], 40_000
    pairs = zip(case.partner.mean.numpy()[place], case.partner.covariances().numpy()[place], strict=True)
    draws = np.stack([rng.multivariate_normal(*pair, s) for pair in pairs], axis=1)  # (s, entries, d)
    errors = data.values[2, place] - draws[..., -1] - draws[..., :-1] @ [0.3, -0.2] - 0.5
    ((_, entries),) = case.blocks
    system = module.equations(entries, case.partner, case.precisions)
    at = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    found = system.squared_errors(Rows(at.repeat(M, 1)))[2]
    assert float(found) == pytest.approx((errors**2 @ case.precisions.numpy()[place]).mean(), rel=0.02)


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
def test_rows_without_a_solution_are_counted_and_not_finite(block, monkeypatch):
    monkeypatch.setattr(module, "FACTORED", {"cpu": 2})
    case, data, _ = given()
    ((_, entries),) = case.blocks
    nothing, scales = torch.zeros_like(case.prior_precision), case.scales.clone()
    scales[[3, 8]] *= -1  # A is positive definite, and minus A is not
    assert data.seen[[3, 8]].any(axis=1).all()
    found = half_sweep(case._replace(blocks=entries.cut(block), scales=scales, prior_precision=nothing))
    failed = ~found.means.isfinite().all(dim=1)
    assert failed[[3, 4, 8]].all()  # a row without entries and without a prior too
    assert found.flag.code == failed.sum() < M
    assert (~found.rows.covariances().isfinite().flatten(1).all(dim=1) == failed).all()
