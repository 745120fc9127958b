"""Dense and sparse adaptive Laplacians: one interface, the same numbers, and what a refresh keeps."""

import numpy as np
import pytest
import torch
from nn_references import CPU, F64

from air_recsys.graphs.candidates import nearest_rows
from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.nn import adaptive_laplacian
from air_recsys.nn.adaptive_laplacian import DenseLaplacian, SparseLaplacian

M, K = 9, 3


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def dense(adjacency="row_softmin", size=M):
    return DenseLaplacian(size, adjacency, generator=generator(), dtype=F64, device=CPU)


def sparse(n_neighbors=K, size=M):
    graph = SparseLaplacian(size, n_neighbors, generator=generator(), dtype=F64, device=CPU)
    graph.logits.copy_(normal(size, n_neighbors + 1, seed=5))
    return graph


def kinds():
    return [pytest.param(lambda name=name: dense(name), id=name) for name in ADJACENCIES] + [
        pytest.param(sparse, id="sparse")
    ]


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def as_logits(graph, full):
    """Entries of an (m, m) matrix at the edges of a sparse graph."""
    return full.gather(1, graph.neighbors)


# -------------------------------------------------------------------- both kinds


@pytest.mark.parametrize("make", kinds())
def test_adjacency_is_a_graph(make):
    graph = make()
    graph.refresh(normal(M, 2), normal(M, 2))
    matrix = graph.adjacency()
    assert matrix.shape == (M, M)
    assert matrix.data.min() >= 0
    assert not matrix.diagonal().any()
    np.testing.assert_allclose(matrix.toarray(), matrix.T.toarray(), atol=1e-15)


@pytest.mark.parametrize("make", kinds())
def test_apply_is_the_laplacian_of_the_adjacency(make):
    graph, left, right = make(), normal(M, 3), normal(5, 3, seed=1)
    weighted, completed = left @ (right.T @ right), left @ right.T
    energy, smoothed = graph.apply(left, weighted, 0.5)
    adjacency = torch.as_tensor(graph.adjacency().toarray())
    matrix = torch.diag(adjacency.sum(dim=1)) - adjacency
    close(smoothed, matrix @ left)
    close(energy, torch.trace(completed.T @ matrix @ completed))
    assert not graph.apply(torch.ones(M, 1, dtype=F64), torch.ones(M, 1, dtype=F64), 1.0)[1].abs().max() > 1e-14


@pytest.mark.parametrize("make", kinds())
def test_gradient_is_multiplied_by_the_strength_and_replaced_at_each_call(make):
    graph, points = make(), normal(M, 3)
    graph.apply(points, points, 1.0)
    once = graph.logits.grad.clone()
    graph.apply(points, points, 0.25)
    close(graph.logits.grad, once / 4)


@pytest.mark.parametrize("make", kinds())
def test_weighing_a_graph_gives_the_energy_and_the_gradient_of_applying_it(make):
    graph, other, points = make(), make(), normal(M, 3)
    energy, _ = graph.apply(points, 2 * points, 3.0)
    assert torch.equal(other.weigh(points, 2 * points, 3.0), energy)
    assert torch.equal(other.logits.grad, graph.logits.grad)


@pytest.mark.parametrize("make", kinds())
def test_state_is_a_copy_and_brings_the_graph_back(make):
    graph = make()
    points, elsewhere = normal(M, 3), normal(M, 3, seed=9)
    graph.refresh(points, points)
    before, state = graph.adjacency().toarray(), graph.state()
    graph.refresh(elsewhere, elsewhere)
    graph.logits.add_(normal(*graph.logits.shape, seed=3))
    assert not np.allclose(graph.adjacency().toarray(), before)
    for _ in range(2):
        graph.load_state(state)
        np.testing.assert_array_equal(graph.adjacency().toarray(), before)
        graph.logits.zero_()


@pytest.mark.parametrize("make", [dense, sparse])
def test_starting_logits_are_uniform_in_one_over_the_root_of_m(make):
    graph = make(size=400) if make is dense else SparseLaplacian(400, 50, generator=generator(), dtype=F64, device=CPU)
    bound = 1 / 20
    assert graph.logits.abs().max() <= bound
    assert float(graph.logits.std()) == pytest.approx(bound / np.sqrt(3), rel=0.05)


def test_energy_of_rows_that_nearly_agree_is_not_negative():
    for seed in range(20):
        points = (1e3 + 1e-3 * normal(2, 7, seed=seed)).float()  # cancellation
        graph = SparseLaplacian(2, 1, generator=generator(), dtype=torch.float32, device=CPU)
        assert graph.apply(points, points, 1.0)[0] >= 0


# -------------------------------------------------------------------- sparse with all neighbours is dense


def test_sparse_with_all_neighbors_is_the_dense_row_softmin():
    whole, part = dense(), sparse(M - 1)
    whole.logits.copy_(normal(M, M, seed=4))
    part.logits.copy_(as_logits(part, whole.logits))
    left, weighted = normal(M, 2), normal(M, 2) @ torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=F64)
    for found, expected in zip(part.apply(left, weighted, 0.3), whole.apply(left, weighted, 0.3), strict=True):
        close(found, expected)
    close(part.logits.grad, as_logits(part, whole.logits.grad))
    np.testing.assert_allclose(part.adjacency().toarray(), whole.adjacency().toarray(), atol=1e-15)


def test_a_dense_graph_chooses_no_edges():
    assert dense().refresh(normal(M, 2), normal(M, 2)) is None


# -------------------------------------------------------------------- refresh


def test_the_start_has_k_other_rows_in_ascending_order():
    graph = SparseLaplacian(5, 4, generator=generator(), dtype=F64, device=CPU)
    assert graph.neighbors.tolist() == [[row, *(other for other in range(5) if other != row)] for row in range(5)]
    ring = sparse().neighbors
    assert torch.equal(ring[:, 0], torch.arange(M))
    assert (ring[:, 1:].diff(dim=1) > 0).all()
    assert not (ring[:, 1:] == torch.arange(M)[:, None]).any()


def applied(every, n_times):
    """(energy, L X, gradient of the logits) at every application of a graph to points that move."""
    graph = DenseLaplacian(M, "row_softmin", generator=generator(), dtype=F64, device=CPU, every=every)
    found = []
    for time in range(n_times):
        points = normal(M, 4, seed=time)
        energy, smoothed = graph.apply(points, points, 0.5)
        gradient = graph.logits.grad
        found.append((energy, smoothed, gradient))
        if gradient is not None:
            graph.logits.sub_(gradient)
    return graph, found


def test_logits_are_due_at_every_so_manieth_application():
    for every in (1, 2, 3):
        _, found = applied(every, 7)
        assert [gradient is not None for *_, gradient in found] == [time % every == 0 for time in range(7)]


def test_in_between_the_graph_stays_and_the_energy_is_its_own():
    graph, found = applied(3, 3)
    assert graph.logits.grad is None
    still = dense()
    for time, (energy, smoothed, _) in enumerate(found):
        points = normal(M, 4, seed=time)
        expected_energy, expected = still.apply(points, points, 0.5)
        close(energy, expected_energy)
        close(smoothed, expected)


def test_a_graph_that_went_back_is_due():
    graph, _ = applied(3, 2)
    state, points = dense().state(), normal(M, 4)
    graph.load_state(state)
    energy, _ = graph.apply(points, points, 0.5)
    assert graph.logits.grad is not None
    close(energy, dense().apply(points, points, 0.5)[0])


@pytest.mark.parametrize("stop", [0, 1, 2, 3, 5])
def test_a_graph_goes_on_from_a_state_as_if_uninterrupted(stop):
    first, _ = applied(3, stop)
    again, _ = applied(3, 4)
    again.load_state({name: value.clone() for name, value in first.state().items()})
    for time in range(7):
        points = normal(M, 4, seed=time)
        for found, expected in zip(again.apply(points, points, 0.5), first.apply(points, points, 0.5), strict=True):
            assert torch.equal(found, expected)
        assert (again.logits.grad is None) == (first.logits.grad is None)


def test_a_state_without_a_graph_that_stays_is_due_once():
    graph, _ = applied(3, 2)
    graph.load_state({"logits": dense().logits})
    due = []
    for time in range(5):
        graph.apply(normal(M, 4, seed=time), normal(M, 4, seed=time), 0.5)
        due.append(graph.logits.grad is not None)
    assert due == [True, False, False, True, False]


def test_the_energy_of_a_graph_that_stays_is_not_raised():
    graph, _ = applied(3, 1)
    points = 1e-3 * normal(M, 4)
    energy, smoothed = graph.apply(points, points, 0.5)
    assert graph.logits.grad is None
    close(energy, torch.sum(points * smoothed))


def test_the_start_of_a_sparse_graph_is_its_generators():
    torch.manual_seed(0)
    first, again = (SparseLaplacian(M, K, generator=generator(), dtype=F64, device=CPU) for _ in range(2))
    assert torch.equal(first.logits, again.logits)


def test_small_graphs_are_found_by_all_pairs_and_large_ones_by_clusters(monkeypatch):
    def searched(name):
        return lambda points, weighted, k: asked.append(name) or nearest_rows(points, weighted, k)

    for name in ("nearest_rows", "near_rows"):
        monkeypatch.setattr(adaptive_laplacian, name, searched(name))
    monkeypatch.setattr(adaptive_laplacian, "_COMPARED_BY_PAIRS", M)
    asked: list[str] = []
    for size in (M - 1, M, M + 1):
        points = normal(size, 2)
        sparse(size=size).refresh(points, points)
    assert asked == ["nearest_rows", "nearest_rows", "near_rows"]


def test_refresh_takes_the_nearest_rows_under_the_metric():
    graph, left, right = sparse(), normal(M, 3), normal(4, 3, seed=1)
    weighted = left @ (right.T @ right)
    graph.refresh(left, weighted)
    assert torch.equal(graph.neighbors[:, 1:], nearest_rows(left, weighted, K))
    assert torch.equal(graph.neighbors[:, 0], torch.arange(M))


def edges(graph, values):
    """{(row, neighbour): value}."""
    pairs = zip(graph.neighbors.tolist(), values.tolist(), strict=True)
    return {
        (row, other): value
        for row, (others, line) in enumerate(pairs)
        for other, value in zip(others, line, strict=True)
    }


@pytest.mark.parametrize("n_neighbors", [1, 3, M - 1])
def test_survivors_keep_logit_and_state_and_new_edges_enter_last_with_none(n_neighbors):
    graph, points, moved = sparse(n_neighbors), normal(M, 2), normal(M, 2, seed=1)
    graph.refresh(points, points)
    graph.logits.copy_(normal(M, n_neighbors + 1, seed=2))
    state = normal(M, n_neighbors + 1, seed=3)
    old_logits, old_state, largest = edges(graph, graph.logits), edges(graph, state), graph.logits.amax(dim=1).tolist()
    carry = graph.refresh(moved, moved)
    logits, carried = edges(graph, graph.logits), edges(graph, carry(state))
    for edge in logits:
        assert logits[edge] == old_logits.get(edge, largest[edge[0]])
        assert carried[edge] == old_state.get(edge, 0)
    survivors = sum(edge in old_logits for edge in logits)
    assert M < survivors < len(logits) or n_neighbors == M - 1  # the points were moved enough to see both kinds


def test_refresh_at_the_same_place_changes_nothing():
    graph, points = sparse(), normal(M, 2)
    graph.refresh(points, points)
    logits, neighbors = graph.logits.clone(), graph.neighbors.clone()
    state = normal(M, K + 1)
    assert torch.equal(graph.refresh(points, points)(state), state)
    assert torch.equal(graph.logits, logits)
    assert torch.equal(graph.neighbors, neighbors)


def test_refresh_keeps_the_tensor_that_the_optimiser_holds():
    graph, points = sparse(), normal(M, 2)
    held = graph.logits
    graph.refresh(points, points)
    graph.load_state(graph.state())
    assert graph.logits is held


def test_absent_edges_are_absent_from_the_adjacency():
    graph, points = sparse(), normal(M, 2)
    graph.refresh(points, points)
    chosen = torch.zeros(M, M, dtype=torch.bool).scatter(1, graph.neighbors[:, 1:], True)
    np.testing.assert_array_equal(graph.adjacency().toarray() > 0, (chosen | chosen.T).numpy())
