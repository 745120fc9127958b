"""Features and given similarities on a GPU: the scores of the CPU, the memory of the plan, one wait a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from gpu_cases import model, needs_emulation, needs_gpu
from test_device_memory import peak_of
from test_host_waits import waits_a_step

from air_recsys import Interactions
from air_recsys.models.given import with_similarities

pytestmark = needs_gpu
FIXED: dict[str, Any] = {"user_graph_strength": 0.3, "item_graph_strength": 0.6}


def told(n_users=80, n_items=60, seed=0):
    """Users who like groups of items to some degree, with features and similarities; two items have no rating.

    As many groups as factors: the ratings determine the scores, whatever numbers a device draws.
    """
    rng = np.random.default_rng(seed)
    groups = np.arange(n_items) % 3
    taste = rng.standard_normal((n_users, 3))
    users, items = np.nonzero((rng.random((n_users, n_items)) < 0.4) & (np.arange(n_items) < n_items - 2))
    values = (5 + taste[users, groups[items]] + 0.4 * rng.standard_normal(users.size)).clip(0, 10)
    data = Interactions(users, items, values, range(n_users), range(n_items))
    data = data.with_features(item=pd.DataFrame({"group": groups.astype(str)}))
    return with_similarities(data, np.corrcoef(taste).clip(0), 1.0 * (groups[:, None] == groups))


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_scores_agree_with_the_cpu(solver):
    data = told()
    pairs = np.repeat(np.arange(80), 60), np.tile(np.arange(60), 80)
    sweeps = {"n_sweeps": 12 if solver == "variational" else 40}
    one, two = (model(device, solver, **FIXED | sweeps).fit(data).predict(*pairs) for device in ("cuda", "cpu"))
    assert np.sqrt(np.mean((one - two) ** 2)) < 0.15 * two.std()


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_the_plan_is_above_the_peak(solver):
    data, made = told(300, 200), model("cuda", solver, n_factors=8, n_sweeps=12, **FIXED)
    assert peak_of(lambda: made.fit(data)) <= made.memory_plan(data).total


@needs_emulation
@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_sweep_waits_once_for_its_flags(solver):
    data, options = told(), {"graph_refresh": 100, **FIXED}

    def fit(n_sweeps):
        model("cuda", solver, n_sweeps=n_sweeps, **options).fit(data)

    waits, where = waits_a_step(fit, first=6, more=6)
    assert waits == 1, where
