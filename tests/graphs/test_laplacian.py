"""The Laplacian, the Dirichlet energy, and the adjacencies that are learned: their laws, and gradients by autograd."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.graphs.laplacian import (
    ADJACENCIES,
    dirichlet_energy,
    laplacian,
    laplacian_product,
    softmin_rows,
    squared_distances,
    squared_norms,
)

fast = settings(max_examples=25)
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)
names = st.sampled_from(sorted(ADJACENCIES))
F64 = torch.float64


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def graph(size, seed, density=0.5):
    """A random adjacency with isolated nodes now and then, and points (m, 3)."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(size, size, dtype=F64, generator=generator)
    upper = (weights * (torch.rand(size, size, generator=generator) < density)).triu(1)
    return upper + upper.T, torch.randn(size, 3, dtype=F64, generator=generator)


# -------------------------------------------------------------------- a graph that is given


@fast
@given(sizes, seeds, st.sampled_from([0.0, 0.2, 0.8]))
def test_null_vector_symmetry_and_no_negative_eigenvalue(size, seed, density):
    adjacency, _ = graph(size, seed, density)
    matrix = laplacian(adjacency)
    close(matrix @ torch.ones(size, dtype=F64), torch.zeros(size, dtype=F64))
    close(matrix, matrix.T)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-12


@fast
@given(sizes, seeds, st.floats(0, 10), st.floats(-3, 3))
def test_product_and_energy_are_those_of_the_matrix_and_scale_with_graph_and_points(size, seed, weight, factor):
    adjacency, points = graph(size, seed)
    matrix, energy = laplacian(adjacency), dirichlet_energy(adjacency, points)
    close(laplacian_product(adjacency, points), matrix @ points)
    close(energy, torch.trace(points.T @ matrix @ points))
    close(energy, (adjacency * squared_distances(points, points)).sum() / 2)
    close(dirichlet_energy(weight * adjacency, points), weight * energy)
    close(dirichlet_energy(adjacency, factor * points), factor**2 * energy)
    close(dirichlet_energy(adjacency, points + 5), energy, 1e-10)


@fast
@given(st.integers(2, 9), seeds)
def test_gradient_of_the_energy_in_the_points_is_twice_the_product(size, seed):
    adjacency, points = graph(size, seed)
    leaf = points.clone().requires_grad_()
    (adjacency * (leaf[:, None] - leaf).square().sum(dim=2)).sum().div(2).backward()
    close(2 * laplacian_product(adjacency, points), leaf.grad)


def test_isolated_nodes_have_empty_rows_and_no_energy():
    adjacency, points = graph(5, 0, density=1.0)
    adjacency[2], adjacency[:, 2] = 0, 0
    assert not laplacian(adjacency)[2].any()
    assert not laplacian_product(adjacency, points)[2].any()
    moved = points.clone()
    moved[2] += 100
    close(dirichlet_energy(adjacency, moved), dirichlet_energy(adjacency, points))
    assert dirichlet_energy(torch.zeros_like(adjacency), points) == 0


# -------------------------------------------------------------------- distances


@fast
@given(sizes, st.integers(1, 6), seeds)
def test_distances_under_the_gram_metric_are_those_of_the_product(size, columns, seed):
    _, left = graph(size, seed)
    right = torch.randn(columns, 3, dtype=F64, generator=torch.Generator().manual_seed(seed + 1))
    completed, weighted = left @ right.T, left @ (right.T @ right)
    expected = torch.cdist(completed, completed, compute_mode="donot_use_mm_for_euclid_dist").square()
    close(squared_distances(left, weighted), expected, 1e-10)
    close(squared_norms(left, weighted), completed.square().sum(dim=1), 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_are_never_negative_and_zero_on_the_diagonal(dtype):
    generator = torch.Generator().manual_seed(0)
    points = 1e3 + 1e-3 * torch.randn(40, 7, dtype=dtype, generator=generator)  # cancellation
    distances = squared_distances(points, points)
    assert (distances >= 0).all()
    assert not distances.diagonal().any()


# -------------------------------------------------------------------- adjacencies of logits


def problem(size, seed, spread=1.0):
    """Points (m, 3), their distances and logits (m, m), in float64."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(size, 3, dtype=F64, generator=generator)
    logits = spread * torch.randn(size, size, dtype=F64, generator=generator)
    return points, squared_distances(points, points), logits


def near(found, expected, tolerance=1e-10):
    close(found, expected, tolerance)


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


@fast
@given(names, sizes, seeds)
def test_adjacency_energy_and_gradient_are_those_of_the_definition(name, size, seed):
    points, distances, logits = problem(size, seed)
    before = distances.clone(), logits.clone()
    term = ADJACENCIES[name](logits, distances)
    assert torch.equal(distances, before[0])
    assert torch.equal(logits, before[1])
    assert torch.equal(term.adjacency.diagonal(), torch.zeros(size, dtype=F64))
    assert (term.adjacency >= 0).all()
    near(term.adjacency, term.adjacency.T, 1e-15)
    leaf = logits.clone().requires_grad_()
    adjacency = by_definition(name, leaf)
    energy = torch.trace(points.T @ laplacian(adjacency) @ points)
    energy.backward()
    near(term.adjacency, adjacency.detach())
    near(term.energy, energy.detach())
    assert term.energy >= 0
    near(term.gradient, leaf.grad)


@fast
@given(names, st.integers(2, 9), seeds)
def test_permuting_the_rows_permutes_the_graph(name, size, seed):
    _, distances, logits = problem(size, seed)
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    term = ADJACENCIES[name](logits, distances)
    moved = ADJACENCIES[name](logits[order][:, order], distances[order][:, order])
    near(moved.energy, term.energy)
    near(moved.adjacency, term.adjacency[order][:, order])
    near(moved.gradient, term.gradient[order][:, order])


@fast
@given(sizes, seeds)
def test_rows_of_the_softmin_sum_to_one_whatever_is_added_to_a_row(size, seed):
    _, distances, logits = problem(size, seed, spread=20.0)
    weights, row_energy, gradient = softmin_rows(logits, distances)
    near(weights.sum(dim=1), torch.ones(size, dtype=F64))
    near(row_energy.squeeze(1), (weights * distances).sum(dim=1))
    near(gradient.sum(dim=1), torch.zeros(size, dtype=F64))
    shift = torch.linspace(-50, 50, size, dtype=F64)[:, None]
    for found, expected in zip(softmin_rows(logits + shift, distances), (weights, row_energy, gradient), strict=True):
        near(found, expected)


def test_the_self_edge_takes_part_in_the_softmin_of_its_row_alone():
    _, distances, logits = problem(4, 3)
    whole, _, _ = softmin_rows(logits, distances)
    logits[1, 1] = -60  # all weight of the row flows to its self-edge
    switched, energies, _ = softmin_rows(logits, distances)
    assert switched[1, [0, 2, 3]].max() < 1e-20
    assert energies[1] < 1e-20
    near(switched[[0, 2, 3]], whole[[0, 2, 3]])


@fast
@given(st.integers(2, 9), seeds)
def test_what_a_constant_added_to_all_logits_does_to_the_other_adjacencies(size, seed):
    _, distances, logits = problem(size, seed)
    shares = torch.softmax(logits.flatten(), dim=0).view(size, size)
    added, grown = ADJACENCIES["global_sum"], ADJACENCIES["global_product"]
    near(added(logits, distances).adjacency.sum(), 2 * (1 - torch.trace(shares)))  # what the diagonal does not take
    near(added(logits + 7, distances).adjacency, added(logits, distances).adjacency)
    factor = torch.exp(torch.tensor(1.5, dtype=F64))
    near(grown(logits + 1.5, distances).adjacency, grown(logits, distances).adjacency * factor)
