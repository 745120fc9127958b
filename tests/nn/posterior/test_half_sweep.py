"""Half a sweep in blocks, against one block and against the formula written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed

from air_recsys.nn.posterior import equations as module
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import SLAB, Given, Rows, half_sweep
from air_recsys.nn.posterior.triangles import packed, size_of

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


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("width", [1, 3, 12])
def test_every_row_is_the_dense_formula(width, weighted, side):
    case, data, weights = given(width, weighted=weighted, side=side)
    assert size_of(12) > SLAB  # triangles are cut in the middle of a row
    found = half_sweep(case)
    for row in range(len(case.scales)):
        mean, covariance, errors = dense(case, data, weights, side, row)
        np.testing.assert_allclose(found.rows.mean[row], mean, atol=1e-10)
        np.testing.assert_allclose(found.rows.covariances()[row], covariance, atol=1e-10)
        np.testing.assert_allclose(found.errors[row], errors, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("block", [1, 7, 29])
@pytest.mark.parametrize("draws", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
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
