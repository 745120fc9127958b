"""What the tests on a GPU share: small ratings, small models, when two of them agree, and what a run costs."""

from collections import Counter
from functools import cache
from typing import Any

import emulation
import numpy as np
import pytest
import torch

from air_recsys import AIR

needs_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
needs_a_real_one = pytest.mark.skipif(emulation.is_on(), reason="not emulated")
needs_emulation = pytest.mark.skipif(not emulation.is_on(), reason="needs the emulated device")

SHAPE = 30, 20
# Three ways to train, and forms of each that take other branches.
SOLVERS: dict[str, dict[str, Any]] = {
    "adam": {"solver": "adam", "n_epochs": 8, "evaluate_every": 2, "graph_refresh": 3, "n_batches": 1},
    "variational": {"n_sweeps": 5},
    "langevin": {"solver": "langevin", "n_sweeps": 8},
    "adam in parts": {"solver": "adam", "n_epochs": 4, "evaluate_every": 2, "n_batches": 3},
}
POSTERIORS = ["variational", "langevin"]
# Completion, in float64.
COMPLETION: dict[str, dict[str, Any]] = {
    "dense": {"graph_neighbors": None},
    "sparse": {"graph_neighbors": 5, "graph_refresh": 5},
    "global_sum": {"adjacency": "global_sum"},
    "factor-width": {
        "n_factors": 5,
        "depth": 2,
        "biases": True,
        "center": True,
        "graph_refresh": 5,
        "weight_decay": 1.0,
    },
    "further terms": {"transforms": [("blocks:3", 1e-4, 2), ("columns", 1e-4)], "tv_reg": 1e-3, "graph_refresh": 5},
    "unobserved": {"n_factors": 5, "unobserved_weight": 0.1},
}
by_solver = pytest.mark.parametrize("solver", ["adam", *POSTERIORS])


def ratings(n_users=SHAPE[0], n_items=SHAPE[1], share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    truth = 3 + rng.normal(size=(n_users, 3)) @ rng.normal(size=(3, n_items)) / 2
    return np.where(rng.random(truth.shape) < share, truth.clip(0.5, 5.5), np.nan)


def model(device, solver="variational", **more):
    if solver in COMPLETION:
        few = {"n_epochs": 12, "evaluate_every": 4, "settings": "fixed", "init_std": 0.1, "learning_rate": 1e-3}
        given = {"dtype": "float64", "random_state": 0, "device": device} | COMPLETION[solver] | more
        return AIR.for_completion(**few | given)
    small = {"n_factors": 3, "graph_neighbors": 4, "random_state": 0, "device": device}
    return AIR.for_ratings(**small | SOLVERS[solver] | more)


@cache
def fitted(device, solver) -> Any:
    """A model that is not to be changed."""
    return model(device, solver).fit(ratings())


def scores(fitted):
    return fitted.predict(*np.indices(SHAPE).reshape(2, -1))


RATE = 1e-6  # relative: torch's fused Adam takes the rate of a captured step in float32: 6e-8 of each step


def assert_agree(found, expected, solver="variational"):
    """The emulated device has the numbers of the CPU; a real one draws others, and rounds in another way."""
    if solver in COMPLETION:
        np.testing.assert_allclose(found, expected, rtol=RATE, atol=RATE)
    elif emulation.is_on():
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        assert np.sqrt(np.mean((found - expected) ** 2)) < 0.3 * np.std(ratings()[~np.isnan(ratings())])


def peak_of(run):
    """Bytes that are taken on the device beside those taken before."""
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() - before


def waits_a_step(fit, first=4, more=4):
    """Waits of each of `more` steps beyond the first ones, and where."""
    counts = []
    for n_steps in (first, first, first + more):  # the first one fills caches
        with emulation.watched() as waits:
            fit(n_steps)
        counts.append(waits)
    extra = Counter(counts[2])
    extra.subtract(counts[1])
    return sum(extra.values()) / more, {key: count / more for key, count in extra.items() if count}
