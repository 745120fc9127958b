"""A process against the Gaussian that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from air_recsys.nn.drift.process import Process, solve_chains

SCALE, STRENGTH = 10.0, 0.7
STEP = SCALE / 32  # times of one step count as one


def entries(n=40, n_rows=3, seed=0):
    rng = np.random.default_rng(seed)
    times = STEP * rng.integers(0, 300, n)
    times[0] = 0.0  # the first moment starts there
    return rng.integers(0, n_rows, n), times, rng.normal(size=n), rng.uniform(0.5, 2, n)


def covariance(rows, times, others, other_times, scales):
    same = rows[:, None] == others
    return same * STRENGTH / scales[rows][:, None] * np.exp(-np.abs(times[:, None] - other_times) / SCALE)


def process(rows, times, scales):
    return Process(torch.as_tensor(rows), torch.as_tensor(times), SCALE, STRENGTH, torch.as_tensor(scales))


def test_it_is_the_posterior_of_a_gaussian_process_at_and_between_the_moments():
    rows, times, values, precisions = entries()
    scales = np.array([1.0, 0.5, 2.0])
    found = process(rows, times, scales)
    found.update(torch.as_tensor(values), torch.as_tensor(precisions))
    asked, at = np.array([0, 1, 2, 0, 1, 2, 0]), STEP * np.array([0, 17, 150, 295, 400, -80, 33])
    kernel = covariance(rows, times, rows, times, scales) + np.diag(1 / precisions)
    for who, when, pair in ((rows, times, found.at_entries()), (asked, at, None)):
        cross = covariance(who, when, rows, times, scales)
        mean, spread = pair or found.moments().at(torch.as_tensor(who), torch.as_tensor(when))
        np.testing.assert_allclose(mean, cross @ np.linalg.solve(kernel, values), rtol=1e-6, atol=1e-9)
        told = np.einsum("ij,ji->i", cross, np.linalg.solve(kernel, cross.T))
        np.testing.assert_allclose(spread, STRENGTH / scales[who] - told, rtol=1e-6, atol=1e-9)


def test_rows_that_came_later_vary_as_one_of_scale_one():
    rows, times, values, precisions = entries()
    found = process(rows, times, np.array([4.0, 4.0, 4.0]))
    found.update(torch.as_tensor(values), torch.as_tensor(precisions))
    mean, spread = found.moments().at(torch.tensor([3, 17]), torch.tensor([5.0, 5.0]))
    assert mean.tolist() == [0, 0]
    assert spread.tolist() == pytest.approx([STRENGTH, STRENGTH])


def test_draws_have_the_mean_and_the_variance_of_the_process():
    rows, times, values, precisions = entries(12, 2)
    given: Any = torch.as_tensor(values), torch.as_tensor(precisions)
    exact, drawn = (process(rows, times, np.ones(2)) for _ in range(2))
    exact.update(*given)
    generator = torch.Generator().manual_seed(0)
    n = 4000
    for _ in range(n):
        drawn.update(*given, generator)
        drawn.count()
    mean, spread = drawn.moments().mean, drawn.moments().spread
    assert ((mean - exact.mean).abs() < 5 * (exact.spread / n).sqrt()).all()
    np.testing.assert_allclose(spread, exact.spread, rtol=0.15)


def test_entries_of_no_weight_say_nothing():
    rows, times, values, precisions = entries()
    silent = precisions * (np.arange(40) % 2)
    found, expected = process(rows, times, np.ones(3)), process(rows, times, np.ones(3))
    found.update(torch.as_tensor(values), torch.as_tensor(silent))
    expected.update(torch.as_tensor(np.where(silent > 0, values, 100.0)), torch.as_tensor(silent))
    torch.testing.assert_close(found.mean, expected.mean)


def chains(lengths, seed=0):
    """A random positive definite A of some chains, as a matrix and in parts."""
    rng = np.random.default_rng(seed)
    k = sum(lengths)
    before = rng.uniform(-1, 1, k)
    before[np.cumsum([0, *lengths])[:-1]] = 0.0
    diagonal = np.abs(before) + np.append(np.abs(before[1:]), 0.0) + rng.uniform(0.01, 1, k)
    matrix = np.diag(diagonal) + np.diag(before[1:], 1) + np.diag(before[1:], -1)
    return matrix, torch.as_tensor(diagonal), torch.as_tensor(before), torch.as_tensor(rng.normal(size=k))


@pytest.mark.parametrize("lengths", [[1], [2], [1, 1, 1], [5], [3, 1, 8, 2], [64], [65, 7], [1000]])
def test_solution_and_variances_are_those_of_the_matrix(lengths):
    matrix, diagonal, before, right = chains(lengths)
    found = solve_chains(diagonal, before, right, max(lengths))
    np.testing.assert_allclose(found.solution, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.variances, np.diag(np.linalg.inv(matrix)), rtol=1e-9)


def test_a_chain_does_not_depend_on_its_neighbours():
    parts = [chains([length], seed)[1:] for seed, length in enumerate((7, 1, 12))]
    whole = solve_chains(*(torch.cat(each) for each in zip(*parts, strict=True)), 12)
    alone = [solve_chains(*part, len(part[0])) for part in parts]
    for joined, each in zip(whole, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(joined, torch.cat(each), rtol=1e-12, atol=1e-13)
