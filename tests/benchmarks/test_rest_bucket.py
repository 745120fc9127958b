"""The bucket for all other rows: against autograd, against the dense graph, and what a refresh must keep."""

import math

import numpy as np
import pytest
import torch

from air_recsys.benchmarks.rest_bucket import RestBucketLaplacian
from air_recsys.graphs.candidates import nearest_rows
from air_recsys.nn.adaptive_laplacian import DenseLaplacian

M, K = 9, 3
F64, CPU = torch.float64, torch.device("cpu")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=generator(seed))


def bucket(k=K, size=M, dtype=F64, seed=0):
    return RestBucketLaplacian(size, k, generator=generator(seed), dtype=dtype, device=CPU)


def trained(k=K, size=M):
    """A graph with the neighbours of some place and logits that are not small."""
    graph, points = bucket(k, size), normal(size, 2, seed=5)
    graph.refresh(points, points)
    graph.logits.copy_(normal(size, k + 2, seed=6))
    return graph


def gradient_of(tensor):
    assert tensor.grad is not None
    return tensor.grad


def whole_weights(graph, logits):
    """P as a full matrix, (m, m), differentiable by the logits."""
    weights = torch.softmax(-logits, dim=1)
    m = len(weights)
    full = (weights[:, -1:] / graph.n_rest).expand(m, m).scatter(1, graph.neighbors, weights[:, 1:-1])
    return full.scatter(1, torch.arange(m)[:, None], weights[:, :1])


def whole_energy(graph, logits, rows):
    weights = whole_weights(graph, logits)
    adjacency = (weights + weights.T) / 2 * (1 - torch.eye(len(rows), dtype=rows.dtype))
    return torch.trace(rows.T @ (torch.diag(adjacency.sum(dim=1)) - adjacency) @ rows)


@pytest.mark.parametrize("k", [1, K, M - 2])
def test_energy_and_gradients_are_those_of_autograd(k):
    graph, rows, strength = trained(k), normal(M, 4), 0.3
    logits, leaf = graph.logits.clone().requires_grad_(), rows.clone().requires_grad_()
    expected = whole_energy(graph, logits, leaf)
    expected.backward()
    energy, smoothed = graph.apply(rows, rows, strength)
    torch.testing.assert_close(energy, expected.detach())
    torch.testing.assert_close(2 * smoothed, leaf.grad)
    torch.testing.assert_close(graph.logits.grad, strength * gradient_of(logits))


def test_gradients_hold_under_a_gram_matrix():
    graph, left, right = trained(), normal(M, 2), normal(5, 2, seed=1)
    weighted = left @ (right.T @ right)
    logits = graph.logits.clone().requires_grad_()
    expected = whole_energy(graph, logits, left @ right.T)
    expected.backward()
    energy, smoothed = graph.apply(left, weighted, 1.0)
    torch.testing.assert_close(energy, expected.detach())
    torch.testing.assert_close(energy, torch.sum(weighted * smoothed))
    torch.testing.assert_close(graph.logits.grad, logits.grad)


@pytest.mark.parametrize("n_parts", [2, 4])
def test_parts_are_the_whole_in_the_mean(n_parts):
    whole, rows = trained(), normal(M, 4)
    parts = RestBucketLaplacian(M, K, generator=generator(), dtype=F64, device=CPU, n_parts=n_parts)
    parts.load_state(whole.state())
    energy, smoothed = whole.apply(rows, rows, 0.3)
    seen = [parts.apply(rows, rows, 0.3, part) for part in range(n_parts)]
    torch.testing.assert_close(sum(each[0] for each in seen) / n_parts, energy)
    torch.testing.assert_close(sum(each[1] for each in seen) / n_parts, smoothed)
    torch.testing.assert_close(torch.cat([gradient_of(part) for part in parts.parts]), whole.logits.grad)


def test_rows_in_the_bucket_with_one_logit_are_the_dense_graph():
    graph, rows = trained(), normal(M, 4)
    dense = DenseLaplacian(M, "row_softmin", generator=generator(), dtype=F64, device=CPU)
    tied = (graph.logits[:, -1:] + math.log(graph.n_rest)).expand(M, M).contiguous()
    tied.scatter_(1, graph.neighbors, graph.logits[:, 1:-1])
    dense.logits.copy_(tied.scatter(1, torch.arange(M)[:, None], graph.logits[:, :1]))
    for found, expected in zip(graph.apply(rows, rows, 1.0), dense.apply(rows, rows, 1.0), strict=True):
        torch.testing.assert_close(found, expected)
    assert dense.logits.grad is not None
    assert graph.logits.grad is not None
    torch.testing.assert_close(graph.logits.grad[:, 1:-1], dense.logits.grad.gather(1, graph.neighbors))


def test_a_constant_has_neither_energy_nor_laplacian():
    ones = torch.ones(M, 2, dtype=F64)
    energy, smoothed = trained().apply(ones, ones, 1.0)
    assert abs(float(energy)) < 1e-13
    assert float(smoothed.abs().max()) < 1e-13


def test_energy_is_not_negative_where_rows_nearly_agree():
    for seed in range(20):
        points = (1e3 + 1e-3 * normal(6, 7, seed=seed)).float()  # cancellation
        graph = bucket(2, 6, torch.float32)
        assert graph.apply(points, points, 1.0)[0] >= 0


def test_the_start_weighs_all_rows_nearly_alike():
    graph = bucket(10, 400)
    weights = whole_weights(graph, graph.logits)
    assert float(weights.max() * 400) < math.exp(2 / math.sqrt(400) * 1.01)
    assert float(weights.min() * 400) > math.exp(-2 / math.sqrt(400) * 1.01)


def test_refresh_takes_the_nearest_rows_and_keeps_the_sum_of_every_row():
    graph, moved = trained(), normal(M, 2, seed=1)
    before, old = graph.logits.clone(), graph.neighbors
    share = whole_weights(graph, before)
    graph.refresh(moved, moved)
    assert torch.equal(graph.neighbors, nearest_rows(moved, moved, K))
    torch.testing.assert_close(torch.logsumexp(-graph.logits, 1), torch.logsumexp(-before, 1))
    after = whole_weights(graph, graph.logits)
    torch.testing.assert_close(after.gather(1, graph.neighbors), share.gather(1, graph.neighbors))
    assert not torch.equal(old, graph.neighbors)


def test_survivors_keep_state_and_new_edges_have_none():
    graph, moved, state = trained(), normal(M, 2, seed=1), normal(M, K + 2, seed=3)
    old = graph.neighbors
    carried = graph.refresh(moved, moved)(state, 0)
    torch.testing.assert_close(carried[:, [0, -1]], state[:, [0, -1]])
    for row in range(M):
        kept = dict(zip(old[row].tolist(), state[row, 1:-1].tolist(), strict=True))
        expected = [kept.get(other, 0.0) for other in graph.neighbors[row].tolist()]
        assert carried[row, 1:-1].tolist() == expected


def test_refresh_at_the_same_place_changes_nothing():
    graph, points = bucket(), normal(M, 2)
    graph.refresh(points, points)
    logits, state, held = graph.logits.clone(), normal(M, K + 2), graph.logits
    assert torch.equal(graph.refresh(points, points)(state, 0), state)
    torch.testing.assert_close(graph.logits, logits)
    assert graph.logits is held


def test_a_bucket_that_is_emptied_and_filled_stays_finite():
    graph = bucket(M - 2)
    for seed in range(4):
        points = normal(M, 2, seed=seed)
        graph.refresh(points, points)
        assert torch.isfinite(graph.logits).all()


def test_state_comes_back():
    graph, points = trained(), normal(M, 2, seed=1)
    state, before = graph.state(), graph.adjacency().toarray()
    graph.refresh(points, points)
    graph.logits.add_(normal(M, K + 2, seed=3))
    graph.load_state(state)
    np.testing.assert_array_equal(graph.adjacency().toarray(), before)


def test_adjacency_is_symmetric_and_has_the_edges_only():
    graph = trained()
    found = graph.adjacency().toarray()
    chosen = torch.zeros(M, M, dtype=torch.bool).scatter(1, graph.neighbors, True).numpy()
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_array_equal(found > 0, chosen | chosen.T)
    full = whole_weights(graph, graph.logits).numpy()
    both = chosen & chosen.T
    np.testing.assert_allclose(found[both], ((full + full.T) / 2)[both])
