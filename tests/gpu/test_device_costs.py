"""Memory of a device is within the plan, too little of it is said, and the host seldom waits for it.

Each wait empties the queue of kernels; waits are counted on the emulated device. Drift, and features with given
similarities, have branches of their own: they agree with the CPU too. All is skipped where there is no GPU.
"""

from __future__ import annotations

from typing import Any

import emulation
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import POSTERIORS, model, needs_a_real_one, needs_emulation, needs_gpu, peak_of, ratings, waits_a_step

from air_recsys import AIR, Interactions
from air_recsys.exceptions import MemoryLimitError
from air_recsys.graphs.agreement import agreement_graphs
from air_recsys.graphs.candidates import near_rows, nearest_rows
from air_recsys.models.engines import posterior
from air_recsys.models.given import with_similarities
from air_recsys.nn import memory
from air_recsys.nn.posterior import equations

pytestmark = needs_gpu
by_posterior = pytest.mark.parametrize("solver", POSTERIORS)
FIXED: dict[str, Any] = {"user_graph_strength": 0.3, "item_graph_strength": 0.6}


def moving(n_users=80, n_items=60):
    """Users whose ratings of a sitting share an offset."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((n_users, n_items)) < 0.5)
    sitting = rng.integers(0, 5, users.size)
    moods = 0.8 * rng.standard_normal((n_users, 5))
    values = (5 + moods[users, sitting] + 0.4 * rng.standard_normal(users.size)).clip(0, 10)
    times = 1_600_000_000 + 400_000 * sitting + rng.integers(0, 60, users.size)
    return Interactions(users, items, values, range(n_users), range(n_items), timestamps=times)


def told(n_users=80, n_items=60):
    """Users who like groups of items to some degree, with features and similarities; two items have no rating.

    As many groups as factors: the ratings determine the scores, whatever numbers a device draws.
    """
    rng = np.random.default_rng(0)
    groups = np.arange(n_items) % 3
    taste = rng.standard_normal((n_users, 3))
    users, items = np.nonzero((rng.random((n_users, n_items)) < 0.4) & (np.arange(n_items) < n_items - 2))
    values = (5 + taste[users, groups[items]] + 0.4 * rng.standard_normal(users.size)).clip(0, 10)
    data = Interactions(users, items, values, range(n_users), range(n_items))
    data = data.with_features(item=pd.DataFrame({"group": groups.astype(str)}))
    return with_similarities(data, np.corrcoef(taste).clip(0), 1.0 * (groups[:, None] == groups))


# -------------------------------------------------------------------- answers


@needs_a_real_one
@by_posterior
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


@needs_a_real_one
@by_posterior
def test_scores_of_features_and_given_similarities_agree_with_the_cpu(solver):
    data, sweeps = told(), {"n_sweeps": 12 if solver == "variational" else 40}
    pairs = np.repeat(np.arange(80), 60), np.tile(np.arange(60), 80)
    one, two = (model(device, solver, **FIXED | sweeps).fit(data).predict(*pairs) for device in ("cuda", "cpu"))
    assert np.sqrt(np.mean((one - two) ** 2)) < 0.15 * two.std()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_near_rows_are_those_of_the_cpu(dtype):
    points = torch.randn(6000, 8, dtype=dtype, generator=torch.Generator().manual_seed(0))
    points[:2500] = points[0] + 0.01 * points[:2500]  # clusters of other sizes
    found, expected = near_rows(points.to("cuda"), points.to("cuda"), 10).cpu(), near_rows(points, points, 10)
    assert (found == expected).double().mean() > 0.98  # some distances round to the same number
    one, two = ((points[:, None] - points[rows]).square().sum(2) for rows in (found, expected))
    torch.testing.assert_close(one.sort(dim=1).values, two.sort(dim=1).values, rtol=1e-3, atol=1e-4)


def test_graphs_of_residuals_are_those_of_the_cpu():
    rng = np.random.default_rng(0)
    left = sp.random_array((300, 200), density=0.2, format="csr", rng=rng)
    left.data = (left.data - 0.5) * (left.data > 0.1)  # zeros among them
    points = rng.standard_normal((300, 5))
    found, expected = (agreement_graphs(points, left, device=torch.device(device)) for device in ("cuda", "cpu"))
    for one, other in zip(found, expected, strict=True):
        assert abs(one - other).max() < 1e-9


# -------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("solver", "data", "options"),
    [
        ("adam", ratings(300, 200, share=0.2), {"dtype": "float32"}),
        ("adam", ratings(300, 200, share=0.2), {"dtype": "float64"}),
        ("variational", ratings(300, 200, share=0.2), {"dtype": "float64"}),
        ("langevin", ratings(300, 200, share=0.2), {"dtype": "float32"}),
        ("variational", moving(), {"time": "drift", "n_sweeps": 12}),
        ("langevin", moving(500, 200), {"time": "drift", "n_sweeps": 12}),
        ("variational", told(300, 200), {"n_sweeps": 12, **FIXED}),
        ("langevin", told(300, 200), {"n_sweeps": 12, **FIXED}),
    ],
)
def test_the_plan_is_above_the_peak(solver, data, options):
    made = model("cuda", solver, n_factors=8, **options)
    assert peak_of(lambda: made.fit(data)) <= made.memory_plan(data).total


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("search", [nearest_rows, near_rows])
def test_a_search_for_near_rows_stays_within_its_share_of_the_plan(search, dtype):
    points, k = torch.randn(5_000, 4, dtype=dtype, device="cuda"), 10
    assert peak_of(lambda: search(points, points, k)) <= memory._search(len(points), k, on_gpu=True)


@needs_emulation
@pytest.mark.parametrize(("solver", "steps"), [("adam", "n_epochs"), ("variational", "n_sweeps")])
def test_memory_that_runs_out_within_a_training_leaves_the_last_good_state(solver, steps, monkeypatch):
    from emulation.machine import machine

    def run_out(record):
        if record.epoch == 4:
            monkeypatch.setattr(machine(), "hold", refuse)

    def refuse(block, size):
        monkeypatch.undo()
        raise torch.OutOfMemoryError("CUDA out of memory (emulated)")

    fitted = model("cuda", solver, **{steps: 8})
    with pytest.raises(MemoryLimitError, match="last good state"):
        fitted.fit(ratings(), callbacks=[run_out])
    assert fitted.stopped_by_ == "memory"
    assert np.isfinite(fitted.user_factors_).all()


# -------------------------------------------------------------------- waits


def of_posterior(solver, data=None, **options):
    def fit(n_sweeps):
        model("cuda", solver, n_sweeps=n_sweeps, **options).fit(ratings() if data is None else data)

    return fit


@needs_emulation
@pytest.mark.parametrize(
    ("fit", "first", "expected"),
    [
        (of_posterior("variational"), 4, 1),
        (of_posterior("langevin"), 4, 1),
        (of_posterior("variational", validation_fraction=0.2), 4, 2),
        (of_posterior("variational", moving(), time="drift"), 6, 1),
        (of_posterior("variational", told(), **FIXED, graph_residuals=0), 6, 1),
        (of_posterior("langevin", told(), **FIXED, graph_residuals=0), 6, 1),
    ],
)
def test_a_sweep_waits_once_for_its_flags_and_once_for_a_validation_error(fit, first, expected):
    waits, where = waits_a_step(fit, first, first)
    assert waits == expected, where


@needs_emulation
@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize(("solver", "most", "most_captured"), [("variational", 240, 40), ("langevin", 310, 60)])
def test_a_sweep_gives_the_device_few_operators_at_any_width(solver, most, most_captured, captured, monkeypatch):
    if not captured:
        monkeypatch.setattr("air_recsys.nn.posterior.posterior.MOST_ENTRIES", 0)
    counts = []
    for n_sweeps in (4, 4, 8):  # the first one fills caches
        with emulation.launched() as launches:
            fitted = model("cuda", solver, n_sweeps=n_sweeps, n_factors=40, user_graph_reg=0, item_graph_reg=0)
            fitted.fit(ratings(300, 200))
        counts.append(launches)
    extra = counts[2] - counts[1]
    assert extra.total() / 4 <= (most_captured if captured else most), extra


@needs_emulation
@by_posterior
def test_a_sweep_in_blocks_waits_once(solver, monkeypatch):
    monkeypatch.setattr(posterior, "SUMS", 400)
    monkeypatch.setattr(equations, "MOST_FACTORED", 3)
    waits, where = waits_a_step(of_posterior(solver, user_graph_reg=0, item_graph_reg=0))
    assert waits == 1, where


@needs_emulation
@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"evaluate_every": 100}, 0),
        ({"evaluate_every": 1}, 2),  # the objective, and whether the logits are finite
        ({"evaluate_every": 100, "stopping_delta": 1e-12}, 2),
    ],
)
def test_a_step_of_graphs_of_all_pairs_waits_for_its_figures_alone(options, most):
    settings = {
        "settings": "fixed",
        "exact_epochs": 0,
        "graph_neighbors": None,
        "learning_rate": 1e-3,
        "device": "cuda",
    }

    def completed(n_epochs):
        AIR.for_completion(n_epochs=n_epochs, random_state=0, **settings | options).fit(ratings())

    waits, where = waits_a_step(completed, first=6)
    assert waits <= most, where


@needs_emulation
@pytest.mark.parametrize("solver", ["adam", "adam in parts"])
def test_an_epoch_of_sparse_graphs_does_not_wait(solver):
    waits, where = waits_a_step(
        lambda n: model("cuda", solver, n_epochs=n, evaluate_every=100, graph_refresh=100).fit(ratings())
    )
    assert waits == 0, where
