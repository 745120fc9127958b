"""The trained factors of a `GraphRanker`: the same for the same seed, of the items a user has, spread over a graph."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.models.graph_ranker import factors as module
from air_recsys.models.graph_ranker import ranker
from air_recsys.models.graph_ranker.factors import (
    FactorTraining,
    ItemFactors,
    factor_graph,
    item_axes,
    trained_factors,
    user_factors,
)
from air_recsys.models.graph_ranker.scorers import FactorScorer
from air_recsys.training import train
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


# -------------------------------------------------------------------- the graph that targets are spread over


@pytest.fixture
def pattern() -> sp.csr_array:
    return sp.csr_array(np.random.default_rng(0).random((60, 25)) < 0.2, dtype=np.float32)


def test_weights_are_normalised_cooccurrences(pattern: sp.csr_array) -> None:
    dense = cooccurrence_neighbors(sp.csr_array(pattern.T), 5).toarray().astype(np.float64)
    degrees = dense.sum(axis=1)
    expected = np.eye(25) + 2 * dense / np.sqrt(np.outer(degrees, degrees))
    found = factor_graph(pattern, 5, 0, CPU).spread(torch.eye(25)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found, found.T, atol=1e-6)  # gradients take it for its own transpose


def test_items_without_users_stay_as_they_are() -> None:
    one = sp.csr_array(np.array([[1, 1, 0], [1, 1, 0]], dtype=np.float32))
    vectors = torch.arange(6.0).reshape(3, 2)
    assert factor_graph(one, 3, 0, CPU).spread(vectors)[2].tolist() == [4.0, 5.0]


def test_of_many_interactions_those_of_some_users_are_read(
    monkeypatch: pytest.MonkeyPatch, pattern: sp.csr_array
) -> None:
    whole = factor_graph(pattern, 5, 0, CPU)
    monkeypatch.setattr(module, "_MOST_READ", pattern.nnz // 2)
    assert not torch.equal(factor_graph(pattern, 5, 0, CPU).spread(torch.eye(25)), whole.spread(torch.eye(25)))


def test_a_ranker_of_many_items_spreads_its_targets(monkeypatch: pytest.MonkeyPatch, pattern: sp.csr_array) -> None:
    found = []
    for few in (24, 25):
        monkeypatch.setattr(ranker, "_FEW", few)
        model = ranker.GraphRanker(n_factors=3, n_steps=4, settings={}, device="cpu").fit(sp.csr_matrix(pattern))
        training = FactorTraining(pattern, 3, SoftmaxTraining(4), 0, CPU, n_neighbors=50 if few < 25 else 0)
        train(training.trainer(4))
        np.testing.assert_array_equal(model.item_factors_, training.factors().targets)
        found.append(model.item_factors_)
    assert np.abs(found[0] - found[1]).max() > 0.01


def test_a_rare_item_learns_from_those_like_it() -> None:
    blocks = np.kron(np.eye(2), np.ones((40, 6))) * (np.random.default_rng(1).random((80, 12)) < 0.6)
    blocks[:, 0] = 0
    blocks[3, 0] = 1  # one user has item 0, with items of the first group
    spread = FactorTraining(sp.csr_array(blocks.astype(np.float32)), 4, SoftmaxTraining(5), 0, CPU, n_neighbors=3)
    alone = FactorTraining(sp.csr_array(blocks.astype(np.float32)), 4, SoftmaxTraining(5), 0, CPU)
    near = []
    for each in (spread, alone):
        train(each.trainer(5))
        targets = each.factors().targets
        near.append(float(targets[1:6].mean(axis=0) @ targets[0]))
    assert near[0] > near[1] + 0.05
