"""The graph over which targets are spread: what it weighs, and that it lets rare items learn from those like them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.graphs.cooccurrence import cooccurrence_neighbors
from air_recsys.models.graph_ranker import factors as module
from air_recsys.models.graph_ranker import ranker
from air_recsys.models.graph_ranker.factors import FactorTraining, factor_graph
from air_recsys.training import train
from air_recsys.training.softmax import SoftmaxTraining

CPU = torch.device("cpu")


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
