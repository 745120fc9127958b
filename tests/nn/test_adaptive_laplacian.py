"""Graphs in the objective, learned or given: one interface, the same numbers, and what a refresh keeps."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from nn_references import CPU, F64, close, normal

from air_recsys.graphs.candidates import near_rows, nearest_rows
from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.nn.adaptive_laplacian import DenseLaplacian, FixedLaplacian, SparseLaplacian

M, K = 9, 3


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def dense(adjacency="row_softmin", every=1):
    return DenseLaplacian(M, adjacency, generator=generator(), dtype=F64, device=CPU, every=every)


def sparse(n_neighbors=K):
    graph = SparseLaplacian(M, n_neighbors, generator=generator(), dtype=F64, device=CPU)
    graph.logits.copy_(normal(M, n_neighbors + 1, seed=5))
    return graph


def given(share, size=M, dtype=F64):
    """A graph that stays; below 5 % of all pairs it is held sparse."""
    rng = np.random.default_rng(0)
    upper = np.triu(np.where(rng.random((size, size)) < share, rng.uniform(0.1, 2, (size, size)), 0), k=1)
    return FixedLaplacian(sp.csr_array(upper + upper.T), dtype=dtype, device=CPU)


LEARNED = [
    *(pytest.param(lambda name=name: dense(name), id=name) for name in ADJACENCIES),
    pytest.param(sparse, id="sparse"),
]
GIVEN = [pytest.param(lambda share=share: given(share, 40), id=f"given {share}") for share in (0.0, 0.03, 0.5, 1.0)]


def as_logits(graph, full):
    """Entries of an (m, m) matrix at the edges of a sparse graph."""
    return full.gather(1, graph.neighbors)


# -------------------------------------------------------------------- all kinds


@pytest.mark.parametrize("make", [*LEARNED, *GIVEN])
def test_apply_is_the_laplacian_of_an_adjacency_that_is_a_graph(make):
    graph = make()
    size = graph.adjacency().shape[0]
    graph.refresh(normal(size, 2), normal(size, 2))
    adjacency = torch.as_tensor(graph.adjacency().toarray())
    assert (adjacency >= 0).all()
    assert not adjacency.diagonal().any()
    close(adjacency, adjacency.T, 1e-15)
    left, right, ones = normal(size, 3), normal(5, 3, seed=1), torch.ones(size, 1, dtype=F64)
    completed = left @ right.T
    energy, smoothed = graph.apply(left, left @ (right.T @ right), 0.5)
    matrix = torch.diag(adjacency.sum(dim=1)) - adjacency
    close(smoothed, matrix @ left)
    close(energy, torch.trace(completed.T @ matrix @ completed), 1e-10)
    close(graph.apply(ones, ones, 1.0)[1], torch.zeros_like(ones))


def test_the_energy_of_rows_that_nearly_agree_is_not_negative():
    for seed in range(20):
        learned = SparseLaplacian(2, 1, generator=generator(), dtype=torch.float32, device=CPU)
        for graph, size in ((learned, 2), (given(0.03, 40, torch.float32), 40), (given(0.5, 40, torch.float32), 40)):
            points = (1e3 + 1e-3 * normal(size, 7, seed=seed)).float()  # cancellation
            assert graph.apply(points, points, 1.0)[0] >= 0


# -------------------------------------------------------------------- learned ones


@pytest.mark.parametrize("make", LEARNED)
def test_state_is_a_copy_and_brings_the_graph_back_into_the_tensor_that_the_optimiser_holds(make):
    graph = make()
    points, elsewhere, held = normal(M, 3), normal(M, 3, seed=9), graph.logits
    graph.refresh(points, points)
    before, state = graph.adjacency().toarray(), graph.state()
    graph.refresh(elsewhere, elsewhere)
    graph.logits.add_(normal(*graph.logits.shape, seed=3))
    assert not np.allclose(graph.adjacency().toarray(), before)
    for _ in range(2):
        graph.load_state(state)
        np.testing.assert_array_equal(graph.adjacency().toarray(), before)
        graph.logits.zero_()
    assert graph.logits is held


@pytest.mark.parametrize("kind", [DenseLaplacian, SparseLaplacian])
def test_starting_logits_are_the_generators_and_uniform_in_one_over_the_root_of_m(kind):
    options = "row_softmin" if kind is DenseLaplacian else 50
    graph, again = (kind(400, options, generator=generator(), dtype=F64, device=CPU) for _ in range(2))
    assert torch.equal(graph.logits, again.logits)
    bound = 1 / 20
    assert graph.logits.abs().max() <= bound
    assert float(graph.logits.std()) == pytest.approx(bound / np.sqrt(3), rel=0.05)


def test_sparse_with_all_neighbors_is_the_dense_row_softmin():
    whole, part = dense(), sparse(M - 1)
    whole.logits.copy_(normal(M, M, seed=4))
    part.logits.copy_(as_logits(part, whole.logits))
    left, weighted = normal(M, 2), normal(M, 2) @ torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=F64)
    for found, expected in zip(part.apply(left, weighted, 0.3), whole.apply(left, weighted, 0.3), strict=True):
        close(found, expected)
    close(part.logits.grad, as_logits(part, whole.logits.grad))
    np.testing.assert_allclose(part.adjacency().toarray(), whole.adjacency().toarray(), atol=1e-15)


# -------------------------------------------------------------------- dense graphs that stay for some steps


def applied(every, n_times):
    """(energy, L X, gradient of the logits) at every application of a graph to points that move."""
    graph, found = dense(every=every), []
    for time in range(n_times):
        points = normal(M, 4, seed=time)
        energy, smoothed = graph.apply(points, points, 0.5)
        gradient = graph.logits.grad
        found.append((energy, smoothed, gradient))
        if gradient is not None:
            graph.logits.sub_(gradient)
    return graph, found


@pytest.mark.parametrize("every", [1, 2, 3])
def test_logits_are_due_at_every_so_manieth_application_and_in_between_the_graph_stays(every):
    _, found = applied(every, 7)
    assert [gradient is not None for *_, gradient in found] == [time % every == 0 for time in range(7)]
    still = dense()
    for time, (energy, smoothed, _) in enumerate(found[:every]):
        points = normal(M, 4, seed=time)
        expected_energy, expected = still.apply(points, points, 0.5)
        close(energy, expected_energy)
        close(smoothed, expected)


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


# -------------------------------------------------------------------- the edges of sparse graphs


def test_the_start_has_k_other_rows_in_ascending_order():
    graph = SparseLaplacian(5, 4, generator=generator(), dtype=F64, device=CPU)
    assert graph.neighbors.tolist() == [[row, *(other for other in range(5) if other != row)] for row in range(5)]
    ring = sparse().neighbors
    assert torch.equal(ring[:, 0], torch.arange(M))
    assert (ring[:, 1:].diff(dim=1) > 0).all()
    assert not (ring[:, 1:] == torch.arange(M)[:, None]).any()


def test_refresh_takes_the_nearest_rows_under_the_metric_and_no_other_edges_are_there():
    graph, left, right = sparse(), normal(M, 3), normal(4, 3, seed=1)
    weighted = left @ (right.T @ right)
    graph.refresh(left, weighted)
    assert torch.equal(graph.neighbors[:, 1:], nearest_rows(left, weighted, K))
    assert torch.equal(graph.neighbors[:, 0], torch.arange(M))
    chosen = torch.zeros(M, M, dtype=torch.bool).scatter(1, graph.neighbors[:, 1:], True)
    np.testing.assert_array_equal(graph.adjacency().toarray() > 0, (chosen | chosen.T).numpy())
    logits, state = graph.logits.clone(), normal(M, K + 1)
    assert torch.equal(graph.refresh(left, weighted)(state), state)
    assert torch.equal(graph.logits, logits)


def test_beyond_twenty_thousand_rows_near_ones_are_taken():
    points = normal(20_001, 6)
    graph = SparseLaplacian(len(points), 1, generator=generator(), dtype=F64, device=CPU)
    graph.refresh(points, points)
    assert torch.equal(graph.neighbors[:, 1:], near_rows(points, points, 1))


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


@pytest.mark.parametrize(
    "spoil",
    [
        lambda neighbors: neighbors[:, :-1],
        lambda neighbors: neighbors[:-1].clamp(max=M - 2),
        lambda neighbors: neighbors.masked_fill(neighbors == neighbors[0, 1], -1),
        lambda neighbors: neighbors.masked_fill(neighbors == neighbors[0, 1], M),
    ],
    ids=["narrow", "short", "below", "beyond"],
)
def test_neighbors_that_are_no_rows_are_refused(spoil):
    graph = sparse()
    state = graph.state()
    with pytest.raises(ValueError, match=f"expected the neighbours of {M} rows, found others"):
        graph.load_state(state | {"neighbors": spoil(state["neighbors"])})
