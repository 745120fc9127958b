"""From settings to an objective: the form, the graphs, and where chance comes from."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from nn_references import CPU, random_observations

from air_recsys.nn.adaptive_laplacian import DenseLaplacian, SparseLaplacian
from air_recsys.nn.build import Settings, build_objective, observations
from air_recsys.nn.objective import FactorWidthObjective, FullWidthObjective


def build(m=7, n=5, seed=0, **settings):
    return build_objective(random_observations(m, n), Settings(**settings), np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("width", "form", "columns"),
    [
        (None, FullWidthObjective, 5),
        (4, FactorWidthObjective, 4),
        (5, FullWidthObjective, 5),
        (9, FullWidthObjective, 9),
    ],
)
def test_the_width_chooses_the_form(width, form, columns):
    objective = build(width=width)
    assert type(objective) is form
    left, right = objective.factorization.factors()
    assert (left.shape, right.shape) == ((7, columns), (5, columns))


def test_graphs_are_dense_or_sparse_with_at_most_all_other_nodes():
    assert [type(graph.laplacian) for graph in build().graphs] == [DenseLaplacian] * 2
    sparse = build(n_neighbors=5)
    assert [type(graph.laplacian) for graph in sparse.graphs] == [SparseLaplacian] * 2
    assert [tuple(logits.shape) for logits in sparse.logits()] == [(7, 6), (5, 5)]


@pytest.mark.parametrize(("m", "n", "sizes"), [(1, 4, [4]), (4, 1, [4]), (1, 1, [])])
@pytest.mark.parametrize("n_neighbors", [None, 3])
def test_a_side_of_one_row_has_no_graph(m, n, sizes, n_neighbors):
    observed = observations(sp.csr_array(np.ones((m, n))), lambda values: values, torch.float64, CPU)
    objective = build_objective(observed, Settings(n_neighbors=n_neighbors), np.random.default_rng(0))
    assert [len(logits) for logits in objective.logits()] == sizes
    assert torch.isfinite(objective.evaluate().objective)


def test_observations_are_sorted_transformed_and_cast():
    unsorted = sp.csr_array((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2, 2])), shape=(2, 3))
    observed = observations(unsorted, lambda values: values / 2, torch.float32, CPU)
    assert observed.values.tolist() == [0.5, 1.5]
    assert observed.values.dtype == torch.float32
    assert observed.pattern.columns.tolist() == [0, 2]
    assert observed.pattern.row_starts.tolist() == [0, 2, 2]
    assert observed.pattern.shape == (2, 3)


def test_the_same_seed_gives_the_same_start_and_no_global_state_moves():
    torch_state = torch.get_rng_state()
    first, again, other = build(seed=1, biases=True), build(seed=1, biases=True), build(seed=2, biases=True)
    assert all(torch.equal(*pair) for pair in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.parameters()[0], other.parameters()[0])
    assert torch.equal(torch.get_rng_state(), torch_state)
