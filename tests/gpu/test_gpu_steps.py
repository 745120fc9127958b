"""A captured step is the plain step; skipped where there is no GPU."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import RATE, needs_a_real_one, needs_gpu

from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.training import GradientDescent, Plan, train
from air_recsys.training.steps import CapturedSteps, PlainSteps, make_stepper

pytestmark = [*needs_gpu, needs_a_real_one]


def observe(size):
    rng = np.random.default_rng(0)
    full = rng.random((size, 3)) @ rng.random((3, size))
    entries = sp.csr_array(np.where(rng.random(full.shape) < 0.6, full, 0))
    return observations(entries, lambda values: values, torch.float64, torch.device("cuda"))


def objective_of(size=30, **options):
    return build_objective(observe(size), Settings(**options), np.random.default_rng(0))


def trained(monkeypatch, stepper, adjacency="row_softmin", n_epochs=20):
    objective = objective_of(init=(0.0, 0.2), adjacency=adjacency)
    chosen = PlainSteps if stepper is PlainSteps else make_stepper
    monkeypatch.setattr("air_recsys.training.descent.make_stepper", chosen)
    plan = Plan(n_epochs=n_epochs, learning_rate=0.01, schedule="cosine", evaluate_every=7)
    return objective, train(GradientDescent(objective, plan))


@pytest.mark.parametrize("adjacency", ["row_softmin", "global_sum", "global_product"])
def test_captured_steps_are_plain_steps(monkeypatch, adjacency):
    plain, expected = trained(monkeypatch, PlainSteps, adjacency)
    captured, found = trained(monkeypatch, CapturedSteps, adjacency)
    for first, second in zip(plain.parameters(), captured.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=RATE, atol=RATE)
    for first, second in zip(expected.records, found.records, strict=True):
        assert first.objective == pytest.approx(second.objective, rel=RATE)


def test_which_steps_are_captured():
    def stepper(**options):
        objective = objective_of(**options)
        return make_stepper(objective, [{"params": objective.parameters(), "rate": 1.0}], 0.01)

    assert isinstance(stepper(), CapturedSteps)
    assert isinstance(stepper(n_neighbors=3), PlainSteps)
    assert isinstance(stepper(width=5), PlainSteps)


@pytest.mark.parametrize("options", [{"evaluate_every": 1}, {"evaluate_every": 7}, {"stopping_delta": 1e-12}])
def test_evaluations_are_captured_too(monkeypatch, options):
    objective = objective_of(20, init=(0.0, 0.2))
    calls, evaluate = [], objective.evaluate
    monkeypatch.setattr(objective, "evaluate", lambda batch=0: (calls.append(batch), evaluate(batch))[1])
    result = train(GradientDescent(objective, Plan(n_epochs=15, learning_rate=0.01, **options)))
    assert len(calls) == 4  # three to warm up and the capture
    assert np.isfinite([record.objective for record in result.records]).all()


def test_a_long_run_ends(monkeypatch):
    _, result = trained(monkeypatch, CapturedSteps, n_epochs=300)
    assert result.stopped_by == "n_epochs"
    assert result.records[-1].objective < result.records[0].objective
