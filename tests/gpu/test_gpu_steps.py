"""A captured step is the plain step; skipped where there is no GPU."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import needs_a_real_one, needs_gpu

from air_recsys import AIR
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.training import GradientDescent, Plan, train
from air_recsys.training.steps import CapturedSteps, PlainSteps, make_stepper

pytestmark = [*needs_gpu, needs_a_real_one]

RATE = 1e-6  # relative: torch's fused Adam takes the rate of a captured step in float32


def observe(size):
    rng = np.random.default_rng(0)
    full = rng.random((size, 3)) @ rng.random((3, size))
    ratings = sp.csr_array(np.where(rng.random(full.shape) < 0.6, full, 0))
    return observations(ratings, lambda values: values, torch.float64, torch.device("cuda"))


def trained(monkeypatch, stepper, adjacency="row_softmin", n_epochs=20):
    objective = build_objective(observe(30), Settings(init=(0.0, 0.2), adjacency=adjacency), np.random.default_rng(0))
    if stepper is PlainSteps:
        monkeypatch.setattr("air_recsys.training.descent.make_stepper", PlainSteps)
    else:
        monkeypatch.setattr("air_recsys.training.descent.make_stepper", make_stepper)
    result = train(
        GradientDescent(objective, Plan(n_epochs=n_epochs, learning_rate=0.01, schedule="cosine", evaluate_every=7))
    )
    return objective, result


@pytest.mark.parametrize("adjacency", ["row_softmin", "global_sum", "global_product"])
def test_captured_steps_are_plain_steps(monkeypatch, adjacency):
    plain, expected = trained(monkeypatch, PlainSteps, adjacency)
    captured, found = trained(monkeypatch, CapturedSteps, adjacency)
    for first, second in zip(plain.parameters(), captured.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=RATE, atol=RATE)
    for first, second in zip(expected.records, found.records, strict=True):
        assert first.objective == pytest.approx(second.objective, rel=RATE)


def test_which_steps_are_captured():
    observed = observe(30)

    def stepper(**options):
        objective = build_objective(observed, Settings(**options), np.random.default_rng(0))
        return make_stepper(objective, [{"params": objective.parameters(), "rate": 1.0}], 0.01)

    assert isinstance(stepper(), CapturedSteps)
    assert isinstance(stepper(n_neighbors=3), PlainSteps)
    assert isinstance(stepper(width=5), PlainSteps)


def test_a_model_of_captured_steps_is_that_of_the_cpu():
    ratings = np.random.default_rng(0).uniform(1, 5, (40, 30))
    ratings[::3, ::2] = np.nan
    settings = {
        "n_epochs": 20,
        "settings": "fixed",
        "graph_neighbors": None,
        "init_std": 0.1,
        "dtype": "float64",
        "random_state": 0,
    }
    found, expected = (AIR.for_completion(device=device, **settings).fit(ratings) for device in ("cuda", "cpu"))
    np.testing.assert_allclose(found.user_factors_, expected.user_factors_, atol=RATE)


@pytest.mark.parametrize("options", [{"evaluate_every": 1}, {"evaluate_every": 7}, {"stopping_delta": 1e-12}])
def test_evaluations_are_captured_too(monkeypatch, options):
    objective = build_objective(observe(20), Settings(init=(0.0, 0.2)), np.random.default_rng(0))
    calls, evaluate = [], objective.evaluate
    monkeypatch.setattr(objective, "evaluate", lambda batch=0: (calls.append(batch), evaluate(batch))[1])
    result = train(GradientDescent(objective, Plan(n_epochs=15, learning_rate=0.01, **options)))
    assert len(calls) == 4  # three to warm up and the capture
    assert np.isfinite([record.objective for record in result.records]).all()


def test_a_long_run_ends(monkeypatch):
    _, result = trained(monkeypatch, CapturedSteps, n_epochs=300)
    assert result.stopped_by == "n_epochs"
    assert result.records[-1].objective < result.records[0].objective
