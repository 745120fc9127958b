"""A posterior with drift: data that move, data that do not, and states that go on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.drift.drift import Drift
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior

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


def posterior(entries, times, *, sample=False, first=4):
    own = OwnEntries.of(entries)
    drift = Drift(entries, own, times, first=first, counted_from=8 if sample else None)
    return Posterior(own, constant(entries), 3, np.random.default_rng(0), sample=sample, drift=drift)


@pytest.mark.parametrize("sample", [False, True])
def test_what_moves_is_found_and_taken_out(sample):
    entries, times = moving(0.5)
    found = posterior(entries, times, sample=sample)
    for _ in range(12):
        found.sweep()
        found.check()
    assert found.drift is not None
    rows, columns = found.drift.processes
    assert len(rows) > 0
    assert columns == []
    assert sum(each.strength for each in rows) == pytest.approx(0.25, rel=0.5)
    assert float(found.noise.variance) == pytest.approx(0.16, rel=0.25)
    assert found.drift.span == (float(times.min()), float(times.max()))


def test_where_nothing_moves_there_is_no_drift_and_no_difference():
    entries, times = moving(0.0)
    without = Posterior(OwnEntries.of(entries), constant(entries), 3, np.random.default_rng(0))
    found = posterior(entries, times)
    for _ in range(8):
        found.sweep()
        without.sweep()
    assert found.drift is not None
    assert found.drift.moments() == ([], [])
    for one, other in zip(found.sides, without.sides, strict=True):
        assert torch.equal(one.mean, other.mean)


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("at", [2, 6, 10])
def test_a_state_goes_on_to_the_bit(sample, at):
    whole, other = (posterior(*moving(0.5), sample=sample) for _ in range(2))
    for _ in range(at):
        whole.sweep()
    other.load_state(whole.state())
    for _ in range(3):
        whole.sweep()
        other.sweep()
    for one, again in zip(whole.sides, other.sides, strict=True):
        assert torch.equal(one.mean, again.mean)
    assert whole.drift is not None
    assert other.drift is not None
    for one, again in zip(whole.drift.moments()[0], other.drift.moments()[0], strict=True):
        assert torch.equal(one.mean, again.mean)
        assert torch.equal(one.spread, again.spread)


def test_errors_hold_the_variance_of_the_drift():
    entries, times = moving(0.5)
    found = posterior(entries, times)
    for _ in range(6):
        found.sweep()
    assert found.drift is not None
    (rows, _), m, n = found.drift.processes, *entries.pattern.shape
    spread = sum(process.at_entries()[1] for process in rows)
    precisions = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.zeros(m, dtype=torch.float64)
    expected.index_add_(0, entries.pattern.rows.long(), spread * precisions[entries.pattern.columns.long()])
    torch.testing.assert_close(found.drift.errors(0, precisions), expected)
