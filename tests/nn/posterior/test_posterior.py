"""What sweeps find on data drawn from the model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import Drawn, drawn, observed, posterior

from air_recsys.nn.posterior.estimate import LangevinEstimate, VariationalEstimate

ESTIMATES = {"variational": (VariationalEstimate, 30), "langevin": (LangevinEstimate, 150)}
both = pytest.mark.parametrize("solver", list(ESTIMATES))


def swept(data, solver, dtype=torch.float64, weights=None, seed=0, n_sweeps=None):
    kind, number = ESTIMATES[solver]
    number = n_sweeps or number
    estimate = kind(posterior(observed(data, dtype, weights), seed=seed, sample=solver == "langevin"), number)
    for _ in range(number):
        estimate.sweep()
    return estimate


def matrix(estimate):
    left, right, rows, columns = (tensor.double().numpy() for tensor in estimate.scores())
    return left @ right.T + rows[:, None] + columns


def error(estimate, data):
    return np.sqrt(np.mean((matrix(estimate) - data.truth)[~data.seen] ** 2))


@both
def test_the_truth_is_found_within_the_noise(solver):
    data = drawn()
    estimate = swept(data, solver)
    assert error(estimate, data) < 0.3 * np.sqrt(np.mean(data.truth**2))
    assert estimate.uncertainty().noise == pytest.approx(0.3**2, rel=0.5)


def test_draws_and_approximation_agree():
    data = drawn(density=0.6)
    first, second = (matrix(swept(data, solver)) for solver in ESTIMATES)
    assert np.sqrt(np.mean((first - second) ** 2)) < 0.1


@both
def test_the_same_seed_gives_the_same_state(solver):
    first, second = (matrix(swept(drawn(), solver, n_sweeps=8)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@both
def test_single_and_double_precision_agree(solver):
    data = drawn(density=0.6)
    first, second = (matrix(swept(data, solver, dtype)) for dtype in (torch.float32, torch.float64))
    assert np.sqrt(np.mean((first - second) ** 2)) < 0.05


def test_weights_are_repeated_entries():
    data = drawn(m=20, n=15, density=0.5)
    twice = Drawn(*(np.vstack([part, part]) for part in data))  # columns see every entry twice
    weighted = posterior(observed(data, weights=np.full(data.seen.shape, 2.0)))
    repeated = posterior(observed(twice))
    np.testing.assert_allclose(weighted.noise.counts[1], repeated.noise.counts[1])
    assert weighted.noise._total == repeated.noise._total


@both
def test_entries_of_weight_zero_say_nothing(solver):
    data = drawn()
    weights = (np.random.default_rng(1).random(data.seen.shape) < 0.7).astype(float)
    other = Drawn(data.truth, data.seen, np.where(weights > 0, data.values, -data.values))
    kept = data.values[data.seen & (weights > 0)].size
    assert 0 < kept < data.seen.sum()
    first, second = (matrix(swept(given, solver, weights=weights, n_sweeps=2)) for given in (data, other))
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_covariances_are_positive_definite():
    for side in swept(drawn(), "variational").posterior.sides:
        assert torch.linalg.eigvalsh(side.covariances()).min() > 0


def settled(past, n_sweeps, monkeypatch):
    monkeypatch.setattr("air_recsys.nn.posterior.posterior._PAST", past)
    return matrix(swept(drawn(density=0.3), "variational", n_sweeps=n_sweeps))


def test_sweeps_past_the_optimum_end_where_plain_ones_do_in_fewer_steps(monkeypatch):
    end = settled(0.0, 400, monkeypatch)
    np.testing.assert_allclose(settled(0.6, 400, monkeypatch), end, atol=1e-3)
    plain, past = (np.abs(settled(each, 20, monkeypatch) - end).mean() for each in (0.0, 0.6))
    assert past < 0.5 * plain


def test_a_noisy_row_is_known_as_one():
    data, rng = drawn(m=80, noise=0.2), np.random.default_rng(3)
    data.values[:10] += rng.normal(size=(10, 50))
    noise = swept(data, "variational").uncertainty().of_rows
    assert noise[:10].median() > 2 * noise[10:].median()


def test_exact_entries_do_no_harm():
    data = drawn(noise=0.0, density=0.6)
    for dtype in (torch.float32, torch.float64):
        assert error(swept(data, "variational", dtype), data) < 0.1


def test_constant_entries_are_found():
    data = Drawn(np.zeros((8, 6)), np.ones((8, 6), dtype=bool), np.zeros((8, 6)))
    assert np.abs(matrix(swept(data, "variational"))).max() < 0.05
