"""The GPU gives what the CPU gives; skipped where there is no GPU."""

from typing import Any

import numpy as np
import pytest
import torch
from gpu_cases import needs_gpu

from air_recsys import AIR

pytestmark = needs_gpu

COMMON: dict[str, Any] = {
    "n_epochs": 12,
    "init_std": 0.1,
    "evaluate_every": 4,
    "random_state": 0,
    "settings": "fixed",
}
FORMS = {
    "dense": {"learning_rate": 1e-3, "graph_neighbors": None},
    "sparse": {"learning_rate": 1e-3, "graph_neighbors": 5, "graph_refresh": 5},
    "global_sum": {"learning_rate": 1e-3, "adjacency": "global_sum"},
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
    "further terms": {
        "transforms": [("blocks:3", 1e-4, 2), ("columns", 1e-4)],
        "tv_reg": 1e-3,
        "learning_rate": 1e-3,
        "graph_refresh": 5,
    },
    "unobserved": {"n_factors": 5, "unobserved_weight": 0.1, "learning_rate": 0.01},
}
every_form = pytest.mark.parametrize("options", FORMS.values(), ids=FORMS.keys())

# In float64, but for the rate of a captured step, which torch's fused Adam takes in float32: 6e-8 of each step.
TOLERANCE = 1e-6


def ratings():
    rng = np.random.default_rng(0)
    truth = 3 + rng.normal(size=(40, 4)) @ rng.normal(size=(4, 30))
    return np.where(rng.random(truth.shape) < 0.4, truth.clip(0.5, 5.5), np.nan)


def fit(device: str, options: dict[str, Any], **more: Any) -> Any:
    settings: dict[str, Any] = {"dtype": "float64", "device": device}
    return AIR.for_completion(**COMMON | settings | options | more).fit(ratings())


def scores(model):
    return model.predict(*np.indices((40, 30)).reshape(2, -1))


@every_form
def test_the_gpu_agrees_with_the_cpu(options):
    cpu, gpu = fit("cpu", options), fit("cuda", options)
    assert (cpu.device_, gpu.device_.split(":")[0]) == ("cpu", "cuda")
    np.testing.assert_allclose(scores(gpu), scores(cpu), rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(gpu.history_["objective"], cpu.history_["objective"], rtol=TOLERANCE)
    for one, other in ((gpu.user_graph_, cpu.user_graph_), (gpu.item_graph_, cpu.item_graph_)):
        difference = one.to_scipy() - other.to_scipy()
        assert abs(difference).max() < TOLERANCE


@every_form
def test_the_same_seed_gives_the_same_model(options):
    first, again = (fit("cuda", options, dtype="float32") for _ in range(2))
    np.testing.assert_array_equal(first.user_factors_, again.user_factors_)
    np.testing.assert_array_equal(scores(first), scores(again))


@every_form
def test_a_model_trained_on_the_gpu_predicts_on_the_cpu(options, tmp_path, monkeypatch):
    model = fit("cuda", options)
    path = model.save(tmp_path / "model.air")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    again = AIR.load(path)
    np.testing.assert_array_equal(scores(again), scores(model))
    np.testing.assert_array_equal(again.recommend(3)["item"], model.recommend(3)["item"])


def test_auto_takes_the_gpu():
    assert fit("auto", FORMS["dense"], n_epochs=2).device_ == "cuda"


def test_validation_and_divergence_work_there_too():
    model = fit("cuda", FORMS["sparse"], validation_fraction=0.2, patience=2)
    assert np.isfinite(model.history_["validation_rmse"]).all()
    with pytest.raises(ArithmeticError, match="training diverged"):
        fit("cuda", FORMS["sparse"], learning_rate=1e3)
