"""Drift on a GPU: found there, in the memory that the plan says, and a matter of one wait for the host a sweep."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_cases import model, needs_emulation, needs_gpu
from test_device_memory import peak_of
from test_host_waits import waits_a_step

from air_recsys import Interactions

pytestmark = needs_gpu


def moving(n_users=80, n_items=60, seed=0):
    """Users whose ratings of a sitting share an offset."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.5)
    sitting = rng.integers(0, 5, users.size)
    moods = 0.8 * rng.standard_normal((n_users, 5))
    values = (5 + moods[users, sitting] + 0.4 * rng.standard_normal(users.size)).clip(0, 10)
    times = 1_600_000_000 + 400_000 * sitting + rng.integers(0, 60, users.size)
    return Interactions(users, items, values, range(n_users), range(n_items), timestamps=times)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_drift_agrees_with_the_cpu(solver):
    data = moving()
    pairs = data.user_index[:300], data.item_index[:300]
    errors, found = [], []
    for device in ("cuda", "cpu"):
        fitted = model(device, solver, time="drift", n_sweeps=12 if solver == "variational" else 60).fit(data)
        assert set(fitted.drift_["side"]) == {"user"}
        scores = fitted.predict(*pairs, timestamps=data.timestamps[:300])
        errors.append(np.sqrt(np.mean((scores - data.ratings[:300]) ** 2)))
        found.append(fitted.drift_["deviation"].pow(2).sum() ** 0.5)
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
    assert found[0] == pytest.approx(found[1], rel=0.1)


@pytest.mark.parametrize("solver", ["variational", "langevin"])
@pytest.mark.parametrize("size", [{}, {"n_users": 500, "n_items": 200}], ids=["small", "larger"])
def test_the_plan_is_above_the_peak(solver, size):
    data, made = moving(**size), model("cuda", solver, time="drift", n_factors=8, n_sweeps=12)
    assert peak_of(lambda: made.fit(data)) <= made.memory_plan(data).total


@needs_emulation
def test_a_sweep_with_drift_waits_once_for_its_flags():
    data, options = moving(), {"graph_refresh": 100, "time": "drift"}

    def fit(n_sweeps):
        fitted = model("cuda", n_sweeps=n_sweeps, **options).fit(data)
        assert not fitted.drift_.empty

    waits, where = waits_a_step(fit, first=6, more=6)
    assert waits == 1, where
