"""The Laplacian and the Dirichlet energy: null vector, symmetry, sign, scaling, isolated nodes."""

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


names = st.sampled_from(sorted(ADJACENCIES))


def problem(size, seed, spread=1.0):
    """Points (m, 3), their distances and logits (m, m), in float64."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(size, 3, dtype=torch.float64, generator=generator)
    logits = spread * torch.randn(size, size, dtype=torch.float64, generator=generator)
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
def test_adjacency_is_symmetric_non_negative_without_loops_and_as_defined(name, size, seed):
    _, distances, logits = problem(size, seed)
    adjacency = ADJACENCIES[name](logits, distances).adjacency
    assert torch.equal(adjacency.diagonal(), torch.zeros(size, dtype=torch.float64))
    assert (adjacency >= 0).all()
    near(adjacency, adjacency.T, 1e-15)
    near(adjacency, by_definition(name, logits))


@fast
@given(names, sizes, seeds)
def test_energy_is_the_trace_and_half_the_weighted_distances(name, size, seed):
    points, distances, logits = problem(size, seed)
    term = ADJACENCIES[name](logits, distances)
    near(term.energy, torch.trace(points.T @ laplacian(term.adjacency) @ points))
    near(term.energy, (term.adjacency * distances).sum() / 2)
    assert term.energy >= 0


@fast
@given(names, sizes, seeds)
def test_gradient_is_that_of_autograd(name, size, seed):
    points, distances, logits = problem(size, seed)
    leaf = logits.clone().requires_grad_()
    torch.trace(points.T @ laplacian(by_definition(name, leaf)) @ points).backward()
    near(ADJACENCIES[name](logits, distances).gradient, leaf.grad)


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
    near(weights.sum(dim=1), torch.ones(size, dtype=torch.float64))
    near(row_energy.squeeze(1), (weights * distances).sum(dim=1))
    shift = torch.linspace(-50, 50, size, dtype=torch.float64)[:, None]
    for found, expected in zip(softmin_rows(logits + shift, distances), (weights, row_energy, gradient), strict=True):
        near(found, expected)


def test_a_gradient_of_the_softmin_sums_to_zero_along_rows():
    _, distances, logits = problem(6, 1)
    near(ADJACENCIES["row_softmin"](logits, distances).gradient.sum(dim=1), torch.zeros(6, dtype=torch.float64))


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
    near(switched[[0, 2, 3]], whole[[0, 2, 3]])


@fast
@given(st.integers(2, 9), seeds)
def test_global_sum_keeps_twice_what_the_diagonal_does_not_take(size, seed):
    _, distances, logits = problem(size, seed)
    shares = torch.softmax(logits.flatten(), dim=0).view(size, size)
    term = ADJACENCIES["global_sum"](logits, distances)
    near(term.adjacency.sum(), 2 * (1 - torch.trace(shares)))
    shifted = ADJACENCIES["global_sum"](logits + 7, distances)
    near(shifted.adjacency, term.adjacency)


def test_global_product_grows_with_a_constant_added_to_all_logits():
    _, distances, logits = problem(4, 5)
    factor = torch.exp(torch.tensor(1.5, dtype=torch.float64))
    near(
        ADJACENCIES["global_product"](logits + 1.5, distances).adjacency,
        ADJACENCIES["global_product"](logits, distances).adjacency * factor,
    )


def test_float32_agrees_with_float64():
    _, distances, logits = problem(8, 6)
    for term in ADJACENCIES.values():
        single, double = term(logits.float(), distances.float()), term(logits, distances)
        for found, expected in zip(single, double, strict=True):
            assert found.dtype == torch.float32
            near(found.double(), expected, 1e-5)
