"""What is found of data in which the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.nn.build import observations
from air_recsys.nn.drift.curve import Curve, curve_of, processes_of
from air_recsys.nn.posterior.entries import Entries
from air_recsys.nn.posterior.equations import Rows, equations, solve
from air_recsys.nn.posterior.exchange import OwnEntries

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
    observed = observations(table, lambda given: given, torch.float64, torch.device("cpu"))
    entries: Entries = OwnEntries.of(observed).entries[0]
    means, ones = torch.as_tensor(partners), torch.ones(m, dtype=torch.float64)
    precisions = torch.full((n,), 1 / (NOISE**2 + strength), dtype=torch.float64)
    system = equations(entries, Rows(means), precisions)
    prior = torch.eye(3, dtype=torch.float64)
    found = solve(system, ones, torch.zeros(m, 3, dtype=torch.float64), prior)
    solved = Rows(found.mean, found.covariance())
    return curve_of(entries, torch.as_tensor(times), solved, ones, means, precisions[entries.partners])


def test_rows_that_do_not_move_show_no_process():
    found = curve(0.0)
    assert processes_of(found) == []
    assert np.abs(found.covariances[found.counts > 3000]).max() < 0.02


@pytest.mark.parametrize("scale", [5.0, 40.0])
def test_the_covariance_is_that_of_the_process(scale):
    found = curve(0.1, scale)
    short, long = (found.covariances[chosen] for chosen in (found.lags < scale / 4, found.lags > 40 * scale))
    assert np.average(short) == pytest.approx(0.1, abs=0.03)
    assert np.abs(long).max() < 0.03
    processes = processes_of(found)
    assert sum(each.strength for each in processes) == pytest.approx(0.1, rel=0.35)
    assert scale / 6 < max(each.scale for each in processes) < 6 * scale


def test_two_scales_are_told_apart():
    lags = 2.0 ** np.arange(16)
    shown = Curve(lags, 0.3 * np.exp(-lags / 16) + 0.2 * np.exp(-lags / 4096), np.full(16, 50_000.0), 1.0)
    found = processes_of(shown)
    assert [each.scale for each in found] == pytest.approx([16.0, 4096.0])
    assert [each.strength for each in found] == pytest.approx([0.3, 0.2], rel=1e-3)


def test_few_pairs_and_one_time_tell_nothing():
    lags = 2.0 ** np.arange(6)
    assert processes_of(Curve(lags, 0.3 * np.exp(-lags / 4), np.full(6, 3.0), 1.0)) == []
    assert processes_of(Curve(np.zeros(1), np.ones(1), np.full(1, 1e6), 1.0)) == []
