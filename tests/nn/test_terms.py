"""Laws of the further terms: total variation, blocks, and energies of transformations."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_references import CPU, F64, close, normal

from air_recsys.graphs.laplacian import dirichlet_energy
from air_recsys.nn.adaptive_laplacian import DenseLaplacian
from air_recsys.nn.terms import TotalVariation, TransformedEnergy, blocks

fast = settings(max_examples=25)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
seeds = st.integers(0, 2**16)


def whole(shape, seed):
    """Whole numbers of few values, so that many neighbours are equal."""
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed)).to(F64)


def variation(completed, strength=1.0):
    """Value and subgradient of the total variation."""
    gradient = torch.zeros_like(completed)
    value = TotalVariation(strength).add(completed, gradient)
    return float(value), gradient


# -------------------------------------------------------------------- total variation


@pytest.mark.parametrize(
    ("matrix", "total", "slopes"),
    [
        ([[1, 3], [0, 0]], 6, [[0, 2], [-1, -1]]),
        ([[1, 4, 2]], 5, [[-1, 2, -1]]),
        ([[0, 0, 0], [0, 1, 0], [0, 0, 0]], 4, [[0, -1, 0], [-1, 4, -1], [0, -1, 0]]),
        ([[7]], 0, [[0]]),
        ([[2, 2], [2, 2]], 0, [[0, 0], [0, 0]]),
    ],
)
def test_total_variation_by_hand(matrix, total, slopes):
    completed = torch.tensor(matrix, dtype=F64)
    value, gradient = variation(completed, strength=0.5)
    assert value == pytest.approx(0.5 * total / completed.numel())
    close(gradient, 0.5 / completed.numel() * torch.tensor(slopes, dtype=F64))


@fast
@given(sizes, seeds, seeds, st.floats(-5, 5))
def test_total_variation_is_a_seminorm_whose_slopes_are_a_subgradient_even_where_neighbours_are_equal(
    shape, seed, other_seed, factor
):
    here, there = whole(shape, seed), whole(shape, other_seed)
    (value, gradient), (elsewhere, _) = variation(here), variation(there)
    assert elsewhere >= value + float(torch.sum(gradient * (there - here))) - 1e-12
    assert float(torch.sum(gradient * here)) == pytest.approx(value)  # Euler, for a function of degree 1
    assert variation(factor * here)[0] == pytest.approx(abs(factor) * value)
    shifted, same = variation(here + 3)
    assert shifted == pytest.approx(value)
    close(same, gradient)
    turned, gradient_of_turned = variation(here.T)
    assert turned == pytest.approx(value)
    close(gradient_of_turned, gradient.T)


# -------------------------------------------------------------------- blocks


@st.composite
def cuts(draw):
    """(shape, height, width, stride) where the last blocks end at the edges."""
    (height, width), (more_down, more_right) = draw(sizes), draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    stride = draw(st.integers(1, 7))
    m, n = height + more_down * min(stride, height), width + more_right * min(stride, width)
    return (m, n), height, width, stride


@fast
@given(cuts(), seeds)
def test_blocks_are_the_windows_of_the_matrix_row_by_row_and_their_pull_back_is_the_adjoint(cut, seed):
    (m, n), height, width, stride = cut
    matrix = normal(m, n, seed=seed)
    points, pull_back, *_ = torch.func.vjp(blocks(height, width, stride), matrix)
    dual, windows = normal(*points.shape, seed=seed + 1), []
    adjoint = torch.zeros(m, n, dtype=F64)
    for i in range(0, m - height + 1, min(stride, height)):
        for j in range(0, n - width + 1, min(stride, width)):
            adjoint[i : i + height, j : j + width] += dual[len(windows)].view(height, width)
            windows.append(matrix[i : i + height, j : j + width].flatten())
    close(points, torch.stack(windows), 0)
    close(pull_back(dual)[0], adjoint)


# -------------------------------------------------------------------- energies of transformations


def test_the_energy_of_a_transformation_is_that_of_its_rows():
    matrix, transform, strength = normal(5, 4), blocks(2, 2, 1), 0.3
    points = transform(matrix)
    graph = DenseLaplacian(len(points), "row_softmin", generator=torch.Generator(), dtype=F64, device=CPU)
    term = TransformedEnergy(transform, graph, strength)
    close(term.rows(matrix), points, 0)
    adjacency = torch.as_tensor(graph.adjacency().toarray())
    leaf = matrix.clone().requires_grad_()
    energy = dirichlet_energy(adjacency, transform(leaf))
    energy.backward()
    before = normal(5, 4, seed=1)
    gradient = before.clone()
    close(term.add(matrix, gradient), strength * energy.detach())
    assert leaf.grad is not None
    close(gradient - before, strength * leaf.grad, 1e-10)
