"""From settings to an objective: the form, the graphs, and where chance comes from."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from nn_references import CPU, random_observations

from air_recsys.nn.adaptive_laplacian import DenseLaplacian, FixedLaplacian, SparseLaplacian
from air_recsys.nn.build import Settings, TransformedGraph, build_objective, observations, random_batches
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


@pytest.mark.parametrize(
    ("m", "n", "n_neighbors", "kind", "shapes"),
    [
        (7, 5, None, DenseLaplacian, [(7, 7), (5, 5)]),
        (7, 5, 5, SparseLaplacian, [(7, 6), (5, 5)]),  # at most all other nodes
        (2, 5, None, DenseLaplacian, [(2, 2), (5, 5)]),
        (1, 4, 3, SparseLaplacian, [(4, 4)]),  # a side of one row has no graph
        (4, 1, None, DenseLaplacian, [(4, 4)]),
        (1, 1, None, DenseLaplacian, []),
    ],
)
def test_graphs_are_dense_or_sparse_as_far_as_there_are_pairs(m, n, n_neighbors, kind, shapes):
    observed = observations(sp.csr_array(np.ones((m, n))), lambda values: values, torch.float64, CPU)
    objective = build_objective(observed, Settings(n_neighbors=n_neighbors), np.random.default_rng(0))
    assert {type(graph.laplacian) for graph in objective.graphs} <= {kind}
    assert [tuple(logits.shape) for logits in objective.logits()] == shapes
    assert torch.isfinite(objective.evaluate().objective)


@pytest.mark.parametrize(
    ("size", "n_neighbors", "kind", "shapes"),
    [
        (1, None, FixedLaplacian, []),
        (2, None, DenseLaplacian, [(2, 2)]),
        (5, 2, SparseLaplacian, [(5, 3)]),
    ],
)
def test_the_graph_of_a_transformation_is_learned_where_there_are_pairs(size, n_neighbors, kind, shapes):
    objective = build(transforms=(TransformedGraph(lambda completed: completed[:size], 0.5, n_neighbors),))
    (term,) = objective.terms  # no total variation
    assert type(term.laplacian) is kind
    assert [tuple(part.shape) for part in term.laplacian.parts] == shapes
    assert torch.isfinite(objective.evaluate().objective)


def test_observations_are_sorted_transformed_and_cast():
    unsorted = sp.csr_array((np.array([3.0, 1.0]), np.array([2, 0]), np.array([0, 2, 2])), shape=(2, 3))
    observed = observations(unsorted, lambda values: values / 2, torch.float32, CPU)
    assert observed.values.tolist() == [0.5, 1.5]
    assert observed.values.dtype == torch.float32
    assert observed.pattern.columns.tolist() == [0, 2]
    assert observed.pattern.row_starts.tolist() == [0, 2, 2]
    assert observed.pattern.shape == (2, 3)


def test_weights_are_of_the_type_asked_for_and_go_with_their_entries():
    values = np.arange(1.0, 13.0).reshape(3, 4)
    ratings, weights = sp.csr_array(values), sp.csr_array(10 * values)
    whole = observations(ratings, lambda values: values, torch.float32, CPU, weights)
    assert whole.weights is not None
    assert whole.weights.dtype == torch.float32
    for part in random_batches(whole, 3, np.random.default_rng(0)):
        assert part.weights is not None
        assert torch.equal(part.weights, 10 * part.values)


@pytest.mark.parametrize(("m", "n", "parts"), [(2, 9, 2), (9, 2, 2), (9, 9, 5)])
def test_there_are_no_more_batches_than_rows_columns_or_entries(m, n, parts):
    places = np.arange(5) % m, np.arange(5) % n
    ratings = sp.csr_array((np.ones(5), places), shape=(m, n))
    observed = observations(ratings, lambda values: values, torch.float64, CPU)
    objective = build_objective(observed, Settings(width=1, n_batches=8), np.random.default_rng(0))
    assert len(objective.batches) == parts


@pytest.mark.parametrize("n_neighbors", [None, 2])
def test_a_seed_gives_its_own_start_always_and_no_global_state_moves(n_neighbors):
    torch_state = torch.get_rng_state()
    first, again = (build(seed=1, biases=True, n_neighbors=n_neighbors) for _ in range(2))
    assert all(torch.equal(*pair) for pair in zip(first.parameters(), again.parameters(), strict=True))
    starts = {float(build(m=2, n=2, seed=seed).factorization.weights[0][0, 0]) for seed in range(60)}
    assert len(starts) == 60
    assert torch.equal(torch.get_rng_state(), torch_state)


def test_the_start_has_the_mean_and_the_deviation_asked_for():
    for weight in build(m=200, n=150, width=149, init=(3.0, 0.1)).factorization.weights:
        assert float(weight.mean()) == pytest.approx(3.0, rel=0.01)
        assert float(weight.std()) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_everything_is_of_the_type_of_the_entries(dtype):
    graph = sp.csr_array(np.ones((7, 7)) - np.eye(7))
    transforms = (TransformedGraph(lambda completed: completed[:1], 0.5),)
    settings = Settings(given=(graph, None), biases=True, transforms=transforms)
    objective = build_objective(random_observations(7, 5, dtype=dtype), settings, np.random.default_rng(0))
    assert {value.dtype for value in (*objective.parameters(), *objective.evaluate())} == {dtype}
