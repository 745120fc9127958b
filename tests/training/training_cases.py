"""Small objectives of every form, and what a training of them leaves behind."""

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch.utils._pytree import tree_leaves

from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.training import GradientDescent, Plan
from air_recsys.training import train as train_trainee

FORMS: list[dict[str, Any]] = [
    {},
    {"n_neighbors": 3},
    {"width": 3, "biases": True},
    {"width": 3, "n_neighbors": 3, "adjacency": "row_softmin"},
]


def observe(m=12, n=10, seed=0):
    """Half of the entries of a matrix of rank one with noise."""
    rng = np.random.default_rng(seed)
    matrix = np.outer(np.linspace(0.5, 1.5, m), np.linspace(-1, 1, n)) + 0.1 * rng.normal(size=(m, n))
    rows, columns = np.nonzero(rng.random((m, n)) < 0.5)
    ratings = sp.csr_array((matrix[rows, columns], (rows, columns)), shape=(m, n))
    return observations(ratings, lambda values: values, torch.float64, torch.device("cpu"))


def passed_on_the_way():
    """Observations that a model starting near 0 fits best somewhere between the start and the end."""
    observed = observe()
    return observed._replace(values=0.3 * observed.values)


def build(seed=0, **options: Any):
    defaults: dict[str, Any] = {"init": (0.0, 0.3), "strengths": (1e-3, 1e-3)}
    settings = Settings(**defaults | options)
    return build_objective(observe(), settings, np.random.default_rng(seed))


RULES = ("patience", "snapshot_epochs")


def plan(**options):
    """How to descend, and the rules of the course beside it."""
    rules = {name: options.pop(name) for name in RULES if name in options}
    return Plan(**{"n_epochs": 60, "learning_rate": 0.01, "evaluate_every": 10} | options), rules


def train(objective, planned, *, validation=None, **options):
    """Train an objective as planned, by `air_recsys.training.train`."""
    how, rules = planned
    return train_trainee(GradientDescent(objective, how, validation), **rules, **options)


def same(first, second):
    """Whether two states are equal to the bit."""
    return all(torch.equal(*pair) for pair in zip(tree_leaves(first), tree_leaves(second), strict=True))
