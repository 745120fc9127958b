"""The Laplacian and the Dirichlet energy: null vector, symmetry, sign, scaling, isolated nodes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.graphs.laplacian import (
    dirichlet_energy,
    laplacian,
    laplacian_product,
    squared_distances,
    squared_norms,
)

fast = settings(max_examples=25)
sizes = st.integers(1, 9)
seeds = st.integers(0, 2**16)
F64 = torch.float64


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def graph(size, seed, density=0.5):
    """A random adjacency with isolated nodes now and then, and points (m, 3)."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(size, size, dtype=F64, generator=generator)
    upper = (weights * (torch.rand(size, size, generator=generator) < density)).triu(1)
    return upper + upper.T, torch.randn(size, 3, dtype=F64, generator=generator)


@fast
@given(sizes, seeds, st.sampled_from([0.0, 0.2, 0.8]))
def test_null_vector_symmetry_and_no_negative_eigenvalue(size, seed, density):
    adjacency, _ = graph(size, seed, density)
    matrix = laplacian(adjacency)
    close(matrix @ torch.ones(size, dtype=F64), torch.zeros(size, dtype=F64))
    close(matrix, matrix.T)
    assert torch.linalg.eigvalsh(matrix).min() > -1e-12


@fast
@given(sizes, seeds)
def test_product_and_energy_are_those_of_the_matrix(size, seed):
    adjacency, points = graph(size, seed)
    matrix = laplacian(adjacency)
    close(laplacian_product(adjacency, points), matrix @ points)
    close(dirichlet_energy(adjacency, points), torch.trace(points.T @ matrix @ points))
    close(dirichlet_energy(adjacency, points), (adjacency * squared_distances(points, points)).sum() / 2)


@fast
@given(sizes, seeds, st.floats(0, 10), st.floats(-3, 3))
def test_energy_scales_with_the_graph_and_with_the_square_of_the_points(size, seed, weight, factor):
    adjacency, points = graph(size, seed)
    energy = dirichlet_energy(adjacency, points)
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


def test_a_graph_without_edges_has_no_energy():
    points = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    assert dirichlet_energy(torch.zeros(4, 4), points) == 0


def test_components_are_the_null_space():
    first, _ = graph(3, 1, density=1.0)
    second, _ = graph(4, 2, density=1.0)
    matrix = laplacian(torch.block_diag(first, second))
    eigenvalues = torch.linalg.eigvalsh(matrix)
    assert (eigenvalues.abs() < 1e-12).sum() == 2
    membership = torch.tensor([1.0] * 3 + [0.0] * 4, dtype=F64)
    close(matrix @ membership, torch.zeros(7, dtype=F64))


# -------------------------------------------------------------------- distances


@fast
@given(sizes, seeds)
def test_distances_are_those_of_the_rows(size, seed):
    _, points = graph(size, seed)
    expected = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist").square()
    close(squared_distances(points, points), expected)
    close(squared_norms(points, points), points.square().sum(dim=1))


@fast
@given(sizes, st.integers(1, 6), seeds)
def test_distances_under_the_gram_metric_are_those_of_the_product(size, columns, seed):
    _, left = graph(size, seed)
    right = torch.randn(columns, 3, dtype=F64, generator=torch.Generator().manual_seed(seed + 1))
    completed = left @ right.T
    weighted = left @ (right.T @ right)
    close(squared_distances(left, weighted), squared_distances(completed, completed), 1e-10)
    close(squared_norms(left, weighted), squared_norms(completed, completed), 1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_are_never_negative_and_zero_on_the_diagonal(dtype):
    generator = torch.Generator().manual_seed(0)
    points = 1e3 + 1e-3 * torch.randn(40, 7, dtype=dtype, generator=generator)  # cancellation
    distances = squared_distances(points, points)
    assert (distances >= 0).all()
    assert not distances.diagonal().any()
