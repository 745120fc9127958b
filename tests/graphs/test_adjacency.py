"""The three adjacencies: laws of the graph, its energy, and the gradient against autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.graphs.laplacian import ADJACENCIES, laplacian, softmin_rows, squared_distances

fast = settings(max_examples=25)
names = st.sampled_from(sorted(ADJACENCIES))
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)


def problem(size, seed, spread=1.0):
    """Points (m, 3), their distances and logits (m, m), in float64."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(size, 3, dtype=torch.float64, generator=generator)
    logits = spread * torch.randn(size, size, dtype=torch.float64, generator=generator)
    return points, squared_distances(points, points), logits


def by_definition(name, logits):
    """The adjacency as the table of the module writes it."""
    everything = torch.exp(logits).sum()
    if name == "row_softmin":
        weights = torch.exp(-logits) / torch.exp(-logits).sum(dim=1, keepdim=True)
        full = (weights + weights.T) / 2
    elif name == "global_sum":
        full = (torch.exp(logits) + torch.exp(logits).T) / everything
    else:
        full = torch.exp(logits + logits.T) / everything
    return full * (1 - torch.eye(len(logits), dtype=logits.dtype))


def close(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@fast
@given(names, sizes, seeds)
def test_adjacency_is_symmetric_non_negative_without_loops_and_as_defined(name, size, seed):
    _, distances, logits = problem(size, seed)
    adjacency = ADJACENCIES[name](logits, distances).adjacency
    assert torch.equal(adjacency.diagonal(), torch.zeros(size, dtype=torch.float64))
    assert (adjacency >= 0).all()
    close(adjacency, adjacency.T, 1e-15)
    close(adjacency, by_definition(name, logits))


@fast
@given(names, sizes, seeds)
def test_energy_is_the_trace_and_half_the_weighted_distances(name, size, seed):
    points, distances, logits = problem(size, seed)
    term = ADJACENCIES[name](logits, distances)
    close(term.energy, torch.trace(points.T @ laplacian(term.adjacency) @ points))
    close(term.energy, (term.adjacency * distances).sum() / 2)
    assert term.energy >= 0


@fast
@given(names, sizes, seeds)
def test_gradient_is_that_of_autograd(name, size, seed):
    points, distances, logits = problem(size, seed)
    leaf = logits.clone().requires_grad_()
    torch.trace(points.T @ laplacian(by_definition(name, leaf)) @ points).backward()
    close(ADJACENCIES[name](logits, distances).gradient, leaf.grad)


@fast
@given(names, st.integers(2, 9), seeds)
def test_permuting_the_rows_permutes_the_graph(name, size, seed):
    _, distances, logits = problem(size, seed)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    term = ADJACENCIES[name](logits, distances)
    moved = ADJACENCIES[name](logits[order][:, order], distances[order][:, order])
    close(moved.energy, term.energy)
    close(moved.adjacency, term.adjacency[order][:, order])
    close(moved.gradient, term.gradient[order][:, order])


@pytest.mark.parametrize("name", ADJACENCIES)
def test_arguments_stay_untouched(name):
    _, distances, logits = problem(5, 0)
    given_distances, given_logits = distances.clone(), logits.clone()
    ADJACENCIES[name](logits, distances)
    assert torch.equal(distances, given_distances)
    assert torch.equal(logits, given_logits)


# -------------------------------------------------------------------- what is true of one adjacency only


@fast
@given(sizes, seeds)
def test_rows_of_the_softmin_sum_to_one_whatever_is_added_to_a_row(size, seed):
    _, distances, logits = problem(size, seed, spread=20.0)
    weights, row_energy, gradient = softmin_rows(logits, distances)
    close(weights.sum(dim=1), torch.ones(size, dtype=torch.float64))
    close(row_energy.squeeze(1), (weights * distances).sum(dim=1))
    shift = torch.linspace(-50, 50, size, dtype=torch.float64)[:, None]
    for found, expected in zip(softmin_rows(logits + shift, distances), (weights, row_energy, gradient), strict=True):
        close(found, expected)


def test_a_gradient_of_the_softmin_sums_to_zero_along_rows():
    _, distances, logits = problem(6, 1)
    close(ADJACENCIES["row_softmin"](logits, distances).gradient.sum(dim=1), torch.zeros(6, dtype=torch.float64))


def test_self_edge_takes_part_in_the_softmin():
    _, distances, logits = problem(5, 2)
    before = ADJACENCIES["row_softmin"](logits, distances)
    logits.diagonal().fill_(-60)  # all weight flows to the self-edges
    after = ADJACENCIES["row_softmin"](logits, distances)
    assert before.energy > 0.1
    assert after.energy < 1e-20
    assert after.adjacency.max() < 1e-20


def test_self_edge_of_one_row_leaves_the_weights_of_the_others():
    _, distances, logits = problem(4, 3)
    whole, _, _ = softmin_rows(logits, distances)
    logits[1, 1] = -60
    switched, _, _ = softmin_rows(logits, distances)
    assert switched[1, [0, 2, 3]].max() < 1e-20
    close(switched[[0, 2, 3]], whole[[0, 2, 3]])


@fast
@given(st.integers(2, 9), seeds)
def test_global_sum_keeps_twice_what_the_diagonal_does_not_take(size, seed):
    _, distances, logits = problem(size, seed)
    shares = torch.softmax(logits.flatten(), dim=0).view(size, size)
    term = ADJACENCIES["global_sum"](logits, distances)
    close(term.adjacency.sum(), 2 * (1 - torch.trace(shares)))
    shifted = ADJACENCIES["global_sum"](logits + 7, distances)
    close(shifted.adjacency, term.adjacency)


def test_global_product_grows_with_a_constant_added_to_all_logits():
    _, distances, logits = problem(4, 5)
    factor = torch.exp(torch.tensor(1.5, dtype=torch.float64))
    close(
        ADJACENCIES["global_product"](logits + 1.5, distances).adjacency,
        ADJACENCIES["global_product"](logits, distances).adjacency * factor,
    )


def test_float32_agrees_with_float64():
    _, distances, logits = problem(8, 6)
    for term in ADJACENCIES.values():
        single, double = term(logits.float(), distances.float()), term(logits, distances)
        for found, expected in zip(single, double, strict=True):
            assert found.dtype == torch.float32
            close(found.double(), expected, 1e-5)
