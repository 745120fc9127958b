"""Completion on a GPU gives what the CPU gives, and a captured step is the plain step; skipped where there is none."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from gpu_cases import needs_a_real_one, needs_gpu, ratings, scores

from air_recsys import AIR
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.training import GradientDescent, Plan, train
from air_recsys.training.steps import CapturedSteps, PlainSteps, make_stepper

pytestmark = needs_gpu

COMMON: dict[str, Any] = {
    "n_epochs": 12,
    "init_std": 0.1,
    "evaluate_every": 4,
    "random_state": 0,
    "settings": "fixed",
    "learning_rate": 1e-3,
}
FORMS = {
    "dense": {"graph_neighbors": None},
    "sparse": {"graph_neighbors": 5, "graph_refresh": 5},
    "global_sum": {"adjacency": "global_sum"},
    "factor-width": {
        "n_factors": 5,
        "depth": 2,
        "biases": True,
        "center": True,
        "graph_neighbors": 5,
        "graph_refresh": 5,
        "weight_decay": 1.0,
        "bias_decay": 1.0,
        "learning_rate": 0.01,
    },
    "further terms": {"transforms": [("blocks:3", 1e-4, 2), ("columns", 1e-4)], "tv_reg": 1e-3, "graph_refresh": 5},
    "unobserved": {"n_factors": 5, "unobserved_weight": 0.1, "learning_rate": 0.01},
}
every_form = pytest.mark.parametrize("form", FORMS)

# In float64, but for the rate of a captured step, which torch's fused Adam takes in float32: 6e-8 of each step.
RATE = 1e-6
SHAPE = 40, 30


def fit(device: str, form: str, **more: Any) -> Any:
    settings = COMMON | {"dtype": "float64", "device": device} | FORMS[form] | more
    return AIR.for_completion(**settings).fit(ratings(*SHAPE, share=0.4))


@cache
def there(form: str) -> Any:
    return fit("cuda", form)


@every_form
def test_the_gpu_agrees_with_the_cpu(form):
    cpu, gpu = fit("cpu", form), there(form)
    assert (cpu.device_, gpu.device_.split(":")[0]) == ("cpu", "cuda")
    np.testing.assert_allclose(scores(gpu, SHAPE), scores(cpu, SHAPE), rtol=RATE, atol=RATE)
    np.testing.assert_allclose(gpu.history_["objective"], cpu.history_["objective"], rtol=RATE)
    for one, other in ((gpu.user_graph_, cpu.user_graph_), (gpu.item_graph_, cpu.item_graph_)):
        assert abs(one.to_scipy() - other.to_scipy()).max() < RATE


@needs_a_real_one
@every_form
def test_the_same_seed_gives_the_same_model(form):
    first, again = (fit("cuda", form, dtype="float32") for _ in range(2))
    np.testing.assert_array_equal(first.user_factors_, again.user_factors_)
    np.testing.assert_array_equal(scores(first, SHAPE), scores(again, SHAPE))


@every_form
def test_a_model_trained_on_the_gpu_predicts_on_the_cpu(form, tmp_path, monkeypatch):
    model = there(form)
    path = model.save(tmp_path / "model.air")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    again = AIR.load(path)
    np.testing.assert_array_equal(scores(again, SHAPE), scores(model, SHAPE))
    np.testing.assert_array_equal(again.recommend(3)["item"], model.recommend(3)["item"])


def test_auto_takes_the_gpu_and_validation_and_divergence_work_there():
    model = fit("auto", "sparse", validation_fraction=0.2, patience=2)
    assert model.device_ == "cuda"
    assert np.isfinite(model.history_["validation_rmse"]).all()
    with pytest.raises(ArithmeticError, match="training diverged"):
        fit("cuda", "sparse", learning_rate=1e3)


# -------------------------------------------------------------------- captured steps


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


@needs_a_real_one
@pytest.mark.parametrize("adjacency", ["row_softmin", "global_sum", "global_product"])
def test_captured_steps_are_plain_steps(monkeypatch, adjacency):
    plain, expected = trained(monkeypatch, PlainSteps, adjacency)
    captured, found = trained(monkeypatch, CapturedSteps, adjacency)
    for first, second in zip(plain.parameters(), captured.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=RATE, atol=RATE)
    for first, second in zip(expected.records, found.records, strict=True):
        assert first.objective == pytest.approx(second.objective, rel=RATE)


@needs_a_real_one
def test_which_steps_are_captured():
    def stepper(**options):
        objective = objective_of(**options)
        return make_stepper(objective, [{"params": objective.parameters(), "rate": 1.0}], 0.01)

    assert isinstance(stepper(), CapturedSteps)
    assert isinstance(stepper(n_neighbors=3), PlainSteps)
    assert isinstance(stepper(width=5), PlainSteps)


@needs_a_real_one
@pytest.mark.parametrize("options", [{"evaluate_every": 1}, {"evaluate_every": 7}, {"stopping_delta": 1e-12}])
def test_evaluations_are_captured_too(monkeypatch, options):
    objective = objective_of(20, init=(0.0, 0.2))
    calls, evaluate = [], objective.evaluate
    monkeypatch.setattr(objective, "evaluate", lambda batch=0: (calls.append(batch), evaluate(batch))[1])
    result = train(GradientDescent(objective, Plan(n_epochs=15, learning_rate=0.01, **options)))
    assert len(calls) == 4  # three to warm up and the capture
    assert np.isfinite([record.objective for record in result.records]).all()


@needs_a_real_one
def test_a_long_run_ends(monkeypatch):
    _, result = trained(monkeypatch, CapturedSteps, n_epochs=300)
    assert result.stopped_by == "n_epochs"
    assert result.records[-1].objective < result.records[0].objective
