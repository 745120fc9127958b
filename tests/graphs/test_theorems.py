"""The theorems of the AIR paper as formulas of the adjacencies; benchmarks/reports/theorems.md has the proofs."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.special import softmax

from air_recsys.graphs.laplacian import ADJACENCIES, dirichlet_energy, laplacian, squared_distances

STRENGTHS = 0.5, 0.3  # of rows and columns, different so that a mix-up shows
SIGMA = torch.tensor([2.0, 1.0, 0.5, 0.1, 0.01], dtype=torch.float64)
SHAPE = 8, 6


def normal(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def balanced(depth, generator):
    """Factors Q_j S^(1/L) Q_(j+1)^T with orthonormal Q: W_j^T W_j = W_(j+1) W_(j+1)^T."""
    k = len(SIGMA)
    bases = [torch.linalg.qr(normal(generator, size, k))[0] for size in (SHAPE[0], *[k] * (depth - 1), SHAPE[1])]
    return [a * SIGMA ** (1 / depth) @ b.T for a, b in pairwise(bases)]


def derivatives(adjacency, depth, factors, generator):
    """The derivatives of the singular values under gradient flow, and those that Theorem 1 states."""
    factors = [factor.requires_grad_() for factor in factors]
    product = torch.linalg.multi_dot(factors)
    x = product.detach()
    sides = [normal(generator, size, size) for size in SHAPE]
    graphs = [ADJACENCIES[adjacency](w, squared_distances(y, y)) for w, y in zip(sides, (x, x.T), strict=True)]
    error = (normal(generator, *SHAPE) > -0.5) * (product - normal(generator, *SHAPE))
    energies = [dirichlet_energy(graph.adjacency, y) for graph, y in zip(graphs, (product, product.T), strict=True)]
    (error.square().sum() / 2 + STRENGTHS[0] * energies[0] + STRENGTHS[1] * energies[1]).backward()
    velocities = tuple(-factor.grad for factor in factors)
    moved = torch.autograd.functional.jvp(lambda *each: torch.linalg.multi_dot(each), tuple(factors), velocities)[1]
    u, sigma, vt = torch.linalg.svd(x, full_matrices=False)
    rows, columns = (laplacian(graph.adjacency) for graph in graphs)
    gamma = STRENGTHS[0] * torch.einsum("ir,ij,jr->r", u, rows, u)
    gamma += STRENGTHS[1] * torch.einsum("ri,ij,rj->r", vt, columns, vt)
    assert gamma.min() > 0  # the graphs shrink every singular value
    pull = torch.einsum("ir,ij,rj->r", u, error.detach(), vt)
    stated = -depth * sigma ** (2 - 2 / depth) * pull - 2 * depth * sigma ** (3 - 2 / depth) * gamma
    return torch.einsum("ir,ij,rj->r", u, moved, vt)[: len(SIGMA)], stated[: len(SIGMA)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_singular_values_move_as_theorem_1_states_where_factors_are_balanced(adjacency, depth):
    generator = torch.Generator().manual_seed(depth)
    torch.testing.assert_close(
        *derivatives(adjacency, depth, balanced(depth, generator), generator), rtol=1e-8, atol=1e-12
    )
    k = len(SIGMA)
    shapes = [(SHAPE[0], k), *[(k, k)] * (depth - 2), (k, SHAPE[1])]
    found, stated = derivatives(adjacency, depth, [normal(generator, *shape) for shape in shapes], generator)
    assert ((found - stated).abs() / stated.abs()).max() > 0.05  # factors as in practice


def flow(adjacency, distances, times):
    """The logits at some times under gradient flow of the energy of rows that stand still, from equal logits."""
    m, fixed = len(distances), torch.from_numpy(distances)

    def velocity(_, logits):
        return -ADJACENCIES[adjacency](torch.from_numpy(logits).view(m, m), fixed).gradient.numpy().ravel()

    return solve_ivp(velocity, (0, times[-1]), np.zeros(m * m), "DOP853", times, rtol=1e-10, atol=1e-12).y.T


@pytest.fixture(scope="module")
def distances():
    """Of seven rows of unit length, three of them repeated."""
    points = np.random.default_rng(0).standard_normal((4, 3))[np.arange(7) % 4]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = np.square(points[:, None] - points).sum(axis=2)
    return np.where(found < 1e-12, 0.0, found)


@pytest.mark.parametrize(("adjacency", "sign", "speed"), [("global_sum", 1, 1.0), ("row_softmin", -1, 0.5)])
def test_weights_have_the_closed_form_of_theorem_2_and_fall_as_its_reciprocal_of_time(
    adjacency, sign, speed, distances
):
    """p = q / (1 + D s) on a clock s, so that no bound exp(-D t) can hold."""
    m = len(distances)
    k = 1 if adjacency == "global_sum" else m
    times, of_softmax = np.geomspace(1e-2, 1e5, 8), distances.reshape(k, -1)
    n, n0 = of_softmax.shape[1], (of_softmax == 0).sum(axis=1, keepdims=True)
    found = softmax(sign * flow(adjacency, distances, times).reshape(-1, k, n), axis=2)

    def rate(_, s):
        return speed * n / (1 / (1 + of_softmax * s[:, None])).sum(axis=1) ** 2

    s = solve_ivp(rate, (0, times[-1]), np.zeros(k), "DOP853", times, rtol=1e-10, atol=1e-12).y.T
    shares = 1 / (1 + of_softmax * s[:, :, None])
    np.testing.assert_allclose(found, shares / shares.sum(axis=2, keepdims=True), rtol=1e-6)
    late = (found[-1] * of_softmax * speed * n * times[-1] / n0)[of_softmax > 0]
    np.testing.assert_allclose(late, 1, rtol=0.02)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_only_equal_rows_stay_connected_and_the_energy_vanishes(adjacency, distances):
    ends = [logits.reshape(distances.shape) for logits in flow(adjacency, distances, np.array([0.0, 1e5]))]
    first, last = (ADJACENCIES[adjacency](torch.from_numpy(w), torch.from_numpy(distances)) for w in ends)
    assert last.energy < 1e-2 * first.energy
    ratios = (last.adjacency / first.adjacency).numpy()
    assert ratios[distances > 0].max() < 1e-2
    assert ratios[(distances == 0) & ~np.eye(len(distances), dtype=bool)].min() >= 1
