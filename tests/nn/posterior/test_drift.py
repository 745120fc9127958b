"""Drift: its processes against the Gaussians that they are, what is found of data that move, states that go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.build import observations
from air_recsys.nn.drift.curve import Curve, curve_of, processes_of
from air_recsys.nn.drift.drift import Drift
from air_recsys.nn.drift.process import Process, solve_chains
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Rows, equations, gaussians
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior

# -------------------------------------------------------------------- a process against the Gaussian that it is

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
        mean, spread = pair or found.moments().at(who, when)
        np.testing.assert_allclose(mean, cross @ np.linalg.solve(kernel, values), rtol=1e-6, atol=1e-9)
        told = np.einsum("ij,ji->i", cross, np.linalg.solve(kernel, cross.T))
        np.testing.assert_allclose(spread, STRENGTH / scales[who] - told, rtol=1e-6, atol=1e-9)
    # Rows that came later vary as one of scale one.
    mean, spread = found.moments().at(np.array([3, 17]), np.array([5.0, 5.0]))
    assert mean.tolist() == [0, 0]
    assert spread.tolist() == pytest.approx([STRENGTH, STRENGTH])


def test_draws_have_the_mean_and_the_variance_of_the_process():
    rows, times, values, precisions = entries(12, 2)
    given: Any = torch.as_tensor(values), torch.as_tensor(precisions)
    exact, drawn = (process(rows, times, np.ones(2)) for _ in range(2))
    exact.update(*given)
    generator, n = torch.Generator().manual_seed(0), 2000
    for _ in range(n):
        drawn.update(*given, generator)
        drawn.count()
    mean, spread = drawn.moments().mean, drawn.moments().spread
    assert (np.abs(mean - exact.mean.numpy()) < 5 * np.sqrt(exact.spread.numpy() / n)).all()
    np.testing.assert_allclose(spread, exact.spread, rtol=0.2)


def test_entries_of_no_weight_say_nothing():
    rows, times, values, precisions = entries()
    silent = precisions * (np.arange(40) % 2)
    found, expected = process(rows, times, np.ones(3)), process(rows, times, np.ones(3))
    found.update(torch.as_tensor(values), torch.as_tensor(silent))
    expected.update(torch.as_tensor(np.where(silent > 0, values, 100.0)), torch.as_tensor(silent))
    torch.testing.assert_close(found.mean, expected.mean)


@pytest.mark.parametrize("lengths", [[1], [2], [1, 1, 1], [3, 1, 8, 2], [64], [65, 7], [1000]])
def test_solution_and_variances_of_chains_are_those_of_the_matrix(lengths):
    rng, k = np.random.default_rng(0), sum(lengths)
    before = rng.uniform(-1, 1, k)
    before[np.cumsum([0, *lengths])[:-1]] = 0.0
    diagonal = np.abs(before) + np.append(np.abs(before[1:]), 0.0) + rng.uniform(0.01, 1, k)
    matrix, right = np.diag(diagonal) + np.diag(before[1:], 1) + np.diag(before[1:], -1), rng.normal(size=k)
    found = solve_chains(*map(torch.as_tensor, (diagonal, before, right)), max(lengths))
    np.testing.assert_allclose(found.solution, np.linalg.solve(matrix, right), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.variances, np.diag(np.linalg.inv(matrix)), rtol=1e-9)


# -------------------------------------------------------------------- the curve of data whose truth is known

NOISE = 0.5


def curve(strength, scale=20.0, m=300, n=400, per_row=60, seed=0):
    """The curve of rows with two factors and a bias, whose entries come in sessions and share a process."""
    rng = np.random.default_rng(seed)
    partners = np.column_stack([rng.normal(size=(n, 2)), rng.normal(size=n)])
    rows, columns, values, times = [], [], [], []
    for row in range(m):
        chosen = np.sort(rng.choice(n, per_row, replace=False))
        at = np.round(rng.integers(0, 20, per_row) * 5000.0 + rng.uniform(0, 100, per_row))
        kernel = strength * np.exp(-np.abs(at[:, None] - at) / scale)
        moved = np.linalg.cholesky(kernel + 1e-9 * np.eye(per_row)) @ rng.normal(size=per_row)
        own = partners[chosen] @ np.append(rng.normal(size=2), 1.0) + 0.5 * rng.normal()
        rows += [row] * per_row
        columns += chosen.tolist()
        values += (own + moved + NOISE * rng.normal(size=per_row)).tolist()
        times += at.tolist()
    table = sp.csr_array((values, (rows, columns)), shape=(m, n))
    given: Entries = OwnEntries.of(observations(table, lambda it: it, torch.float64, torch.device("cpu"))).entries[0]
    means, ones = torch.as_tensor(partners), torch.ones(m, dtype=torch.float64)
    precisions = torch.full((n,), 1 / (NOISE**2 + strength), dtype=torch.float64)
    prior = torch.eye(3, dtype=torch.float64)
    found = gaussians(equations(given, Rows(means), precisions), ones, torch.zeros(m, 3, dtype=torch.float64), prior)
    solved = Rows(found.mean, found.covariance)
    return curve_of(given, torch.as_tensor(times), solved, ones, means, precisions[given.partners])


@pytest.mark.parametrize("scale", [5.0, 40.0])
def test_the_covariance_is_that_of_the_process_and_none_of_rows_that_do_not_move(scale):
    found = curve(0.1, scale)
    short, long = (found.covariances[chosen] for chosen in (found.lags < scale / 4, found.lags > 40 * scale))
    assert np.average(short) == pytest.approx(0.1, abs=0.03)
    assert np.abs(long).max() < 0.03
    processes = processes_of(found)
    assert sum(each.strength for each in processes) == pytest.approx(0.1, rel=0.35)
    assert scale / 6 < max(each.scale for each in processes) < 6 * scale
    still = curve(0.0, scale)
    assert processes_of(still) == []
    assert np.abs(still.covariances[still.counts > 3000]).max() < 0.02


def test_two_scales_are_told_apart_and_few_pairs_and_one_time_tell_nothing():
    lags = 2.0 ** np.arange(16)
    covariances = 0.3 * np.exp(-lags / 16) + 0.2 * np.exp(-lags / 4096)
    found = processes_of(Curve(lags, covariances, np.full(16, 50_000.0), 1.0))
    assert [each.scale for each in found] == pytest.approx([16.0, 4096.0])
    assert [each.strength for each in found] == pytest.approx([0.3, 0.2], rel=1e-3)
    assert processes_of(Curve(lags, covariances, np.full(16, 3.0), 1.0)) == []
    assert processes_of(Curve(np.zeros(1), np.ones(1), np.full(1, 1e6), 1.0)) == []


# -------------------------------------------------------------------- a posterior with drift

SESSIONS = 6


def moving(strength, seed=0):
    """Entries, and a time for each: rows have sessions, and an offset in each of them."""
    data = drawn(m=150, n=120, noise=0.4, density=0.4, seed=seed)
    rng = np.random.default_rng(seed)
    session = rng.integers(0, SESSIONS, data.seen.shape)
    times = 10_000.0 * session + np.round(rng.uniform(0, 60, session.shape))
    offsets = strength * rng.normal(size=(150, SESSIONS))
    values = data.values + np.take_along_axis(offsets, session, axis=1)
    return observed(data._replace(values=values)), torch.as_tensor(times[data.seen])


def following(given, times, *, sample=False, n_sweeps=0):
    own = OwnEntries.of(given)
    drift = Drift(given, own, times, first=4, counted_from=8 if sample else None)
    state = Posterior(own, constant(given), 3, np.random.default_rng(0), sample=sample, drift=drift)
    for _ in range(n_sweeps):
        state.sweep()
        state.check()
    return state, drift


@pytest.mark.parametrize("sample", [False, True])
def test_what_moves_is_found_and_taken_out_and_errors_hold_its_variance(sample):
    given, times = moving(0.5)
    found, drift = following(given, times, sample=sample, n_sweeps=12)
    rows, columns = drift.processes
    assert len(rows) > 0
    assert columns == []
    assert sum(each.strength for each in rows) == pytest.approx(0.25, rel=0.6)
    assert float(found.noise.variance) == pytest.approx(0.16, rel=0.25)
    assert drift.span == (float(times.min()), float(times.max()))
    if not sample:
        m, n = given.pattern.shape
        spread = sum(process.at_entries()[1] for process in rows)
        precisions = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        expected = torch.zeros(m, dtype=torch.float64)
        expected.index_add_(0, given.pattern.rows.long(), spread * precisions[given.pattern.columns.long()])
        torch.testing.assert_close(drift.errors(0, precisions), expected)


def test_where_nothing_moves_there_is_no_drift_and_no_difference():
    given, times = moving(0.0)
    without = Posterior(OwnEntries.of(given), constant(given), 3, np.random.default_rng(0))
    for _ in range(8):
        without.sweep()
    found, drift = following(given, times, n_sweeps=8)
    assert drift.moments() == ([], [])
    for one, other in zip(found.sides, without.sides, strict=True):
        assert torch.equal(one.mean, other.mean)


@pytest.mark.parametrize(("at", "sample"), [(2, False), (6, False), (6, True), (10, True)])
def test_a_state_goes_on_to_the_bit(at, sample):
    whole, drift = following(*moving(0.5), sample=sample, n_sweeps=at)
    other, again = following(*moving(0.5), sample=sample)
    other.load_state(whole.state())
    for _ in range(3):
        whole.sweep()
        other.sweep()
    for one, two in zip(whole.sides, other.sides, strict=True):
        assert torch.equal(one.mean, two.mean)
    for one, two in zip(drift.moments()[0], again.moments()[0], strict=True):
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.spread, two.spread)
