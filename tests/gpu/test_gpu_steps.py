"""A captured step is the plain step; skipped where there is no GPU."""

import emulation
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import RATE, needs_emulation, needs_gpu

from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.training import GradientDescent, Plan, train
from air_recsys.training.steps import CapturedSteps, PlainSteps, make_stepper

pytestmark = needs_gpu


def observe(size):
    rng = np.random.default_rng(0)
    full = rng.random((size, 3)) @ rng.random((3, size))
    entries = sp.csr_array(np.where(rng.random(full.shape) < 0.6, full, 0))
    return observations(entries, lambda values: values, torch.float64, torch.device("cuda"))


def objective_of(size=30, **options):
    return build_objective(observe(size), Settings(**options), np.random.default_rng(0))


def trained(monkeypatch, stepper, n_epochs=20, **options):
    objective = objective_of(init=(0.0, 0.2), **options)
    chosen = PlainSteps if stepper is PlainSteps else make_stepper
    monkeypatch.setattr("air_recsys.training.descent.make_stepper", chosen)
    plan = Plan(n_epochs=n_epochs, learning_rate=0.01, schedule="cosine", evaluate_every=7, graph_refresh=9)
    return objective, train(GradientDescent(objective, plan))


FORMS = {
    "row_softmin": {},
    "global_sum": {"adjacency": "global_sum"},
    "global_product": {"adjacency": "global_product"},
    "sparse": {"n_neighbors": 3},
    "factors": {"width": 5, "depth": 2, "n_neighbors": 3, "biases": True},
    "parts": {"width": 5, "depth": 2, "n_neighbors": 3, "n_batches": 3},
}


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_captured_steps_are_plain_steps(monkeypatch, caplog, options):
    plain, expected = trained(monkeypatch, PlainSteps, **options)
    captured, found = trained(monkeypatch, CapturedSteps, **options)
    for first, second in zip(plain.parameters(), captured.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=RATE, atol=RATE)
    for first, second in zip(expected.records, found.records, strict=True):
        assert first.objective == pytest.approx(second.objective, rel=RATE)
    assert not caplog.records  # all was captured


@needs_emulation
@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_an_epoch_is_two_launches_a_part_and_two_rates(options):
    def run(n_epochs):
        objective = objective_of(init=(0.0, 0.2), **options)
        train(GradientDescent(objective, Plan(n_epochs=n_epochs, learning_rate=0.01, evaluate_every=100)))

    counts = []
    for n_epochs in (10, 20):
        with emulation.launched() as launches:
            run(n_epochs)
        counts.append(launches.total())
    assert counts[1] - counts[0] == 10 * 4 * options.get("n_batches", 1)


def test_which_steps_are_captured():
    def stepper(**options):
        objective = objective_of(**options)
        return make_stepper(objective, [{"params": objective.parameters(), "rate": 1.0}], 0.01)

    for options in FORMS.values():
        assert isinstance(stepper(**options), CapturedSteps)
    for options in ({"graph_every": 5}, {"tv_strength": 0.1}):
        assert isinstance(stepper(**options), PlainSteps)
        assert not isinstance(stepper(**options), CapturedSteps)


@pytest.mark.parametrize("options", [{"evaluate_every": 1}, {"evaluate_every": 7}, {"stopping_delta": 1e-12}])
def test_evaluations_are_captured_too(monkeypatch, options):
    objective = objective_of(20, init=(0.0, 0.2))
    calls, evaluate = [], objective.evaluate
    monkeypatch.setattr(objective, "evaluate", lambda batch=0: (calls.append(batch), evaluate(batch))[1])
    result = train(GradientDescent(objective, Plan(n_epochs=15, learning_rate=0.01, **options)))
    assert len(calls) == 5  # two to warm up, two for the checks, and the capture
    assert np.isfinite([record.objective for record in result.records]).all()


def test_a_long_run_ends(monkeypatch):
    _, result = trained(monkeypatch, CapturedSteps, n_epochs=300)
    assert result.stopped_by == "n_epochs"
    assert result.records[-1].objective < result.records[0].objective
