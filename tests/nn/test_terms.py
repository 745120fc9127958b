"""Laws of the further terms: total variation, blocks, energies of transformations, and graphs that are given."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nn_references import CPU, F64, random_observations

from air_recsys.graphs.laplacian import dirichlet_energy, laplacian
from air_recsys.nn.adaptive_laplacian import DenseLaplacian, FixedLaplacian
from air_recsys.nn.build import Settings, build_objective
from air_recsys.nn.terms import TotalVariation, TransformedEnergy, blocks
from air_recsys.training import GradientDescent, Plan, train

fast = settings(max_examples=40)
sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
seeds = st.integers(0, 2**16)


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def whole(shape, seed):
    """Whole numbers of few values, so that many neighbours are equal."""
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed)).to(F64)


def close(found, expected, tolerance=1e-12):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


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
        ([[1], [4], [2]], 5, [[-1], [2], [-1]]),
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
@given(sizes, seeds, st.floats(-5, 5))
def test_total_variation_is_a_seminorm_that_ignores_constants(shape, seed, factor):
    completed = whole(shape, seed)
    value, gradient = variation(completed)
    assert value >= 0
    assert variation(torch.full(shape, factor, dtype=F64))[0] == 0
    assert variation(factor * completed)[0] == pytest.approx(abs(factor) * value)
    shifted, same = variation(completed + 3)
    assert shifted == pytest.approx(value)
    close(same, gradient)
    turned, gradient_of_turned = variation(completed.T)
    assert turned == pytest.approx(value)
    close(gradient_of_turned, gradient.T)


@fast
@given(sizes, seeds, seeds)
def test_the_slopes_are_a_subgradient_even_where_neighbours_are_equal(shape, seed, other_seed):
    here, there = whole(shape, seed), whole(shape, other_seed)
    (value, gradient), (elsewhere, _) = variation(here), variation(there)
    assert elsewhere >= value + float(torch.sum(gradient * (there - here))) - 1e-12
    assert float(torch.sum(gradient * here)) == pytest.approx(value)  # Euler, for a function of degree 1
    assert float(gradient.sum()) == pytest.approx(0, abs=1e-12)


@fast
@given(sizes, seeds)
def test_away_from_kinks_the_slopes_are_those_of_finite_differences(shape, seed):
    completed, step = normal(*shape, seed=seed), 1e-7
    _, gradient = variation(completed, 2.0)
    for place in np.ndindex(*shape):
        change = torch.zeros(shape, dtype=F64)
        change[place] = step
        slope = (variation(completed + change, 2.0)[0] - variation(completed - change, 2.0)[0]) / (2 * step)
        assert float(gradient[place]) == pytest.approx(slope, abs=1e-6)


def test_total_variation_adds_to_the_gradient_and_moves_nothing_else():
    completed, before = normal(4, 5), normal(4, 5, seed=1)
    kept, gradient = completed.clone(), before.clone()
    TotalVariation(0.3).add(completed, gradient)
    close(gradient - before, variation(kept, 0.3)[1])
    close(completed, kept, 0)
    assert TotalVariation(0.3).laplacian is None


# -------------------------------------------------------------------- blocks


def windows(shape, height, width, stride):
    """The corners of all blocks that lie inside."""
    steps = min(stride, height), min(stride, width)
    return [
        (i, j) for i in range(0, shape[0] - height + 1, steps[0]) for j in range(0, shape[1] - width + 1, steps[1])
    ]


@st.composite
def cuts(draw):
    """(shape, height, width, stride) where the last blocks end at the edges."""
    (height, width), (more_down, more_right) = draw(sizes), draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    stride = draw(st.integers(1, 7))
    m, n = height + more_down * min(stride, height), width + more_right * min(stride, width)
    return (m, n), height, width, stride


@fast
@given(cuts())
def test_blocks_are_the_windows_of_the_matrix_row_by_row(cut):
    shape, height, width, stride = cut
    matrix = normal(*shape)
    expected = [matrix[i : i + height, j : j + width].flatten() for i, j in windows(*cut)]
    close(blocks(height, width, stride)(matrix), torch.stack(expected), 0)


@fast
@given(cuts(), seeds)
def test_the_pull_back_of_blocks_is_their_adjoint(cut, seed):
    shape, height, width, stride = cut
    matrix = normal(*shape, seed=seed)
    points, pull_back, *_ = torch.func.vjp(blocks(height, width, stride), matrix)
    dual = normal(*points.shape, seed=seed + 1)
    (pulled,) = pull_back(dual)
    assert float(torch.sum(points * dual)) == pytest.approx(float(torch.sum(matrix * pulled)))


@fast
@given(cuts())
def test_an_entry_is_seen_by_the_windows_around_it(cut):
    shape, height, width, stride = cut
    points, pull_back, *_ = torch.func.vjp(blocks(height, width, stride), normal(*shape))
    (counts,) = pull_back(torch.ones_like(points))
    expected = torch.zeros(shape, dtype=F64)
    for i, j in windows(*cut):
        expected[i : i + height, j : j + width] += 1
    close(counts, expected, 0)


@pytest.mark.parametrize(
    ("shape", "height", "width", "stride", "counts"),
    [
        ((4, 6), 2, 3, 3, {1}),
        ((4, 6), 2, 2, 1, {1, 2, 4}),
        ((4, 6), 4, 6, 6, {1}),
        ((4, 6), 1, 1, 9, {1}),
    ],
)
def test_blocks_see_every_entry(shape, height, width, stride, counts):
    points, pull_back, *_ = torch.func.vjp(blocks(height, width, stride), normal(*shape))
    (found,) = pull_back(torch.ones_like(points))
    assert set(found.flatten().tolist()) == counts


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


# -------------------------------------------------------------------- given graphs


def random_graph(size, share, seed=0):
    rng = np.random.default_rng(seed)
    upper = np.triu(np.where(rng.random((size, size)) < share, rng.uniform(0.1, 2, (size, size)), 0), k=1)
    return sp.csr_array(upper + upper.T)


def fixed(graph, dtype=F64):
    return FixedLaplacian(graph, dtype=dtype, device=CPU)


GRAPHS: dict[str, Any] = {  # stored sparse below 5 % of all pairs
    "sparse": random_graph(40, 0.03),
    "dense": random_graph(40, 0.5),
    "full": sp.csr_array(np.ones((9, 9)) - np.eye(9)),
    "empty": sp.csr_array((9, 9)),
    "two": sp.csr_array([[0.0, 0.5], [0.5, 0.0]]),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def test_the_cases_lie_on_both_sides_of_the_threshold():
    shares = {name: graph.nnz / graph.shape[0] ** 2 for name, graph in GRAPHS.items()}
    assert 0 < shares["sparse"] < 0.05 < shares["dense"]


@every_graph
def test_a_given_graph_has_the_energy_and_the_laplacian_of_its_formula(graph):
    size = graph.shape[0]
    left, right = normal(size, 3), normal(5, 3, seed=1)
    weighted, completed = left @ (right.T @ right), left @ right.T  # (m, 3), (m, 5)
    matrix = laplacian(torch.as_tensor(graph.toarray()))
    energy, smoothed = fixed(graph).apply(left, weighted, 0.5)
    close(smoothed, matrix @ left)
    close(energy, torch.trace(completed.T @ matrix @ completed), 1e-10)


@every_graph
def test_a_given_graph_is_symmetric_positive_and_free_for_constant_columns(graph):
    size, term = graph.shape[0], fixed(graph)
    one, other = normal(size, 2, seed=2), normal(size, 2, seed=3)
    close(torch.sum(other * term.apply(one, one, 1.0)[1]), torch.sum(one * term.apply(other, other, 1.0)[1]), 1e-10)
    for seed in range(5):
        points = normal(size, 2, seed=seed)
        assert term.apply(points, points, 1.0)[0] >= 0
    constant = torch.tensor([[3.0, -2.0]], dtype=F64).expand(size, 2).contiguous()
    energy, smoothed = term.apply(constant, constant, 1.0)
    assert float(energy) == pytest.approx(0, abs=1e-10)
    close(smoothed, torch.zeros_like(constant))


def test_isolated_rows_feel_nothing():
    graph = sp.csr_array(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]]))
    points = normal(3, 2)
    assert not fixed(graph).apply(points, points, 1.0)[1][2].any()


@pytest.mark.parametrize("share", [0.03, 0.5])
def test_the_energy_of_rows_that_nearly_agree_is_not_negative(share):
    term = fixed(random_graph(40, share), torch.float32)
    for seed in range(20):
        points = (1e3 + 1e-3 * normal(40, 7, seed=seed)).float()  # cancellation
        assert term.apply(points, points, 1.0)[0] >= 0


@every_graph
def test_a_given_graph_learns_nothing(graph):
    term, points = fixed(graph), normal(graph.shape[0], 2)
    before = graph.toarray()
    assert term.parts == []
    assert term.refresh(points, points) is None
    assert term.state() == {}
    term.load_state({})
    term.apply(points, points, 1.0)
    np.testing.assert_array_equal(term.adjacency().toarray(), before)


@pytest.mark.parametrize("width", [None, 2], ids=["full", "factor"])
def test_training_leaves_given_graphs_as_they_are(width):
    rows, columns = random_graph(8, 0.5), random_graph(6, 0.5, seed=1)
    options = Settings(width=width, init=(0.1, 0.5), given=(rows, columns), strengths=(0.1, 0.1))
    objective = build_objective(random_observations(8, 6), options, np.random.default_rng(0))
    assert objective.logits() == []
    start = [weight.clone() for weight in objective.model_parameters()]
    result = train(
        GradientDescent(objective, Plan(n_epochs=20, learning_rate=0.05, graph_refresh=5, evaluate_every=10))
    )
    assert all(not torch.equal(one, other) for one, other in zip(start, objective.model_parameters(), strict=True))
    assert result.records[-1].objective < result.records[0].objective
    for term, graph in zip(objective.laplacians, (rows, columns), strict=True):
        np.testing.assert_array_equal(term.adjacency().toarray(), graph.toarray())
