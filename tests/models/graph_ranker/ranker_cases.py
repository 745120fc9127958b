"""Likes of groups of users, what a small ranker of them costs, and its scores by the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys import Interactions
from air_recsys.metrics.checks import Csr
from air_recsys.models import GraphRanker
from air_recsys.models.graph_ranker.factors import FactorTraining
from air_recsys.models.graph_ranker.inputs import counted, interaction_pattern, interaction_times, log_trend
from air_recsys.training.softmax import SoftmaxTraining

SMALL: dict[str, Any] = {"n_factors": 4, "n_steps": 5, "device": "cpu"}
CPU = torch.device("cpu")


def likes(
    n_users: int = 60, n_items: int = 30, *, own: float = 0.4, other: float = 0.05, n_groups: int = 2, seed: int = 0
) -> Csr:
    """The chances that a user likes items of the own group and of another; users and items take turns in groups."""
    rng = np.random.default_rng(seed)
    alike = np.arange(n_users)[:, None] % n_groups == np.arange(n_items) % n_groups
    return sp.csr_array((rng.random(alike.shape) < np.where(alike, own, other)).astype(np.float32))


def named(pattern: Csr, prefix: str = "u") -> Interactions:
    """The same with ids of users such as u07."""
    return Interactions.from_csr(pattern.astype(float), [f"{prefix}{row:02}" for row in range(pattern.shape[0])])


def training_of(pattern: Csr, width: int, n_steps: int, seed: int = 0, n_neighbors: int = 0) -> FactorTraining:
    """A training of factors that has not begun."""
    return FactorTraining(pattern, width, SoftmaxTraining(n_steps), seed, CPU, n_neighbors)


def assert_scores_of_the_formula(model: GraphRanker, data: Interactions) -> None:
    """The scores of all pairs are those of the docstrings, and so are those of the lists."""
    pattern, s, times = interaction_pattern(data).toarray(), model.settings_, interaction_times(data)
    x = counted(data, s).toarray().astype(float)
    own, gains = x, np.ones(data.n_items)
    if times is not None:
        later = ((times.toarray()[:, None, :] > times.toarray()[:, :, None]) & (pattern[:, None, :] > 0)).sum(axis=2)
        own, gains = x * s.user_half_life / (s.user_half_life + later), np.exp(s.item_trend * log_trend(times))
    weighted = x.T @ (x * np.maximum(pattern.sum(axis=1, keepdims=True), 1.0) ** -s.regression_exponent)
    degrees = weighted.diagonal()
    d = s.regression_share * degrees + (1 - s.regression_share) * degrees[degrees > 0].mean()
    d[degrees == 0] = 1
    m = weighted / np.sqrt(np.outer(d, d))
    h = m @ np.linalg.inv(m + s.regression_penalty * np.eye(len(m)))
    sums = own @ model._fitted().source_factors
    cosines = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-30) @ model.item_factors_.T
    parts = {
        "factor": np.exp(cosines / s.factor_temperature) * gains,
        "regression": own / d**s.regression_source @ h / d**s.regression_target * gains,
    }
    expected = np.zeros_like(x)
    for name, weight in s.weights.items():
        expected += weight * parts[name] / np.maximum(np.linalg.norm(parts[name], axis=1, keepdims=True), 1e-30)
    users, items = (side.ravel() for side in np.indices(x.shape))
    found = model.predict(data.user_ids[users], data.item_ids[items]).reshape(x.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    lists = model.recommend(data.user_ids, 5)
    best = np.sort(np.where(pattern > 0, -np.inf, expected), axis=1)[:, ::-1][:, :5]
    np.testing.assert_allclose(lists["score"].to_numpy().reshape(-1, 5), best, rtol=1e-4, atol=1e-6)
    assert not pattern[data.users.lookup(lists["user"]), data.items.lookup(lists["item"])].any()


def all_scores(model: GraphRanker) -> np.ndarray:
    """The score of each user for each item."""
    data = model.interactions_
    users, items = (side.ravel() for side in np.indices((data.n_users, data.n_items)))
    return model.predict(data.user_ids[users], data.item_ids[items]).reshape(data.n_users, data.n_items)
