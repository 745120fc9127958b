"""The trained factors of a `GraphRanker`: the same for the same seed, and those of the items a user has."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from air_recsys.models.graph_ranker.factors import ItemFactors, item_axes, trained_factors, user_factors
from air_recsys.models.graph_ranker.scorers import FactorScorer
from air_recsys.training.softmax import SoftmaxTraining

CPU = torch.device("cpu")


def two_groups(n_users: int = 60, n_items: int = 20, seed: int = 0) -> sp.csr_array:
    """Users of either half like the items of theirs, with a little noise."""
    rng = np.random.default_rng(seed)
    alike = (np.arange(n_users)[:, None] < n_users // 2) == (np.arange(n_items) < n_items // 2)
    return sp.csr_array((rng.random(alike.shape) < np.where(alike, 0.5, 0.03)).astype(np.float32))


def test_items_of_the_same_group_score_higher() -> None:
    pattern = two_groups()
    factors = trained_factors(pattern, 4, SoftmaxTraining(60), 0, CPU)
    cosines = user_factors(pattern, factors.sources) @ factors.targets.T
    assert cosines[:30, :10].mean() > cosines[:30, 10:].mean() + 0.3
    assert cosines[30:, 10:].mean() > cosines[30:, :10].mean() + 0.3


def test_factors_have_length_one_and_the_width_that_the_data_allow() -> None:
    pattern = two_groups()
    pattern = sp.csr_array(sp.vstack([pattern, sp.csr_array((1, 20), dtype=np.float32)]))
    factors = trained_factors(pattern, 64, SoftmaxTraining(5), 0, CPU)
    assert factors.sources.shape == factors.targets.shape == (20, 20)
    users = user_factors(pattern, factors.sources)
    np.testing.assert_allclose(np.linalg.norm(factors.targets, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(users[:-1], axis=1), 1, rtol=1e-5)
    assert not users[-1].any()


def test_the_same_seed_gives_the_same_factors_and_another_another_order() -> None:
    pattern = two_groups(n_users=3000)
    one, again, other = (trained_factors(pattern, 4, SoftmaxTraining(5), seed, CPU) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.sources, again.sources)
    np.testing.assert_array_equal(one.targets, again.targets)
    assert not np.allclose(np.abs(one.targets), np.abs(other.targets), atol=1e-6)


def test_scores_are_exponentials_of_cosines_and_zero_without_items() -> None:
    users, items = np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    expected = np.exp(np.array([1.0, 0.0]) / 0.5)
    warm, cold = (FactorScorer.of(users, ItemFactors(items, items), each, np.zeros(2)) for each in (0.5, 1e-4))
    np.testing.assert_allclose(warm.scores(np.array([0, 1])), [expected / np.linalg.norm(expected), [0, 0]])
    small = cold.scores(np.array([0]))  # e^10000 is not held
    np.testing.assert_allclose(small, [[1, 0]])


def test_axes_are_the_leading_ones() -> None:
    pattern = two_groups()
    products = np.abs(item_axes(pattern, 2, 0).T @ item_axes(pattern, 6, 0))
    np.testing.assert_allclose(products[:, :2], np.eye(2), atol=1e-3)
