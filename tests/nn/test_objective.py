"""Both forms of the objective: their gradients against autograd, against each other, and what they allocate."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from covering import covering
from nn_references import autograd_objective, dense, gradient_of, random_objective, random_observations
from torch.utils._python_dispatch import TorchDispatchMode

from air_recsys.graphs.laplacian import ADJACENCIES
from air_recsys.nn.build import Settings, TransformedGraph
from air_recsys.nn.objective import FactorWidthObjective, FullWidthObjective, Penalties
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.terms import blocks

M, N = 7, 6
WIDE: dict[str, Any] = {"init": (0.1, 0.6), "strengths": (0.05, 0.02)}
DECAYS = Penalties(weight_decay=0.7, bias_decay=0.3)
GRAPHS = [*({"adjacency": name} for name in ADJACENCIES), {"n_neighbors": 2}, {"n_neighbors": M - 2}]
TERMS = [
    {},
    {"penalties": DECAYS},
    {"biases": True},
    {"biases": True, "penalties": DECAYS},
    {"penalties": Penalties(unobserved_weight=0.4)},
    {"penalties": Penalties(weight_decay=0.5, unobserved_weight=1.0)},
]
# Every fifth of them has each graph and each term.
CASES = [graph | terms for graph, terms in product(GRAPHS, TERMS)]


def close(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def check_against_autograd(objective, settings):
    terms = objective.evaluate()._asdict()
    expected, gradients = autograd_objective(objective, settings)
    assert {name: float(value) for name, value in terms.items()} == pytest.approx(expected, rel=1e-10, abs=1e-10)
    for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
        assert gradient.abs().max() > 1e-6  # a term left out would show
        close(parameter.grad, gradient)


@pytest.mark.parametrize(("width", "options"), [*covering([None, 3], CASES), *covering([3, None], CASES[::5])])
def test_terms_and_gradients_are_those_of_autograd(width, options):
    settings = Settings(width=width, **WIDE, **options)
    objective = random_objective(random_observations(M, N), settings)
    assert type(objective) is (FullWidthObjective if width is None else FactorWidthObjective)
    check_against_autograd(objective, settings)


@pytest.mark.parametrize(("width", "options"), covering([None, 3], CASES[::5]))
def test_weights_of_observations_have_the_gradients_of_autograd(width, options):
    settings = Settings(width=width, **WIDE, **options)
    observed = random_observations(M, N)
    generator = torch.Generator().manual_seed(1)
    weights = 3 * torch.rand(observed.values.shape, generator=generator, dtype=torch.float64)
    check_against_autograd(random_objective(observed._replace(weights=weights), settings), settings)


@pytest.mark.parametrize(("depth", "width"), [(2, None), (3, 2), (5, None), (5, 2)])
def test_every_depth_has_the_gradients_of_autograd(width, depth):
    settings = Settings(width=width, depth=depth, **WIDE)
    check_against_autograd(random_objective(random_observations(M, N), settings), settings)


@pytest.mark.parametrize("strengths", [(0.3, 0.0), (0.0, 0.3), (0.0, 0.0)])
@pytest.mark.parametrize("width", [None, 3], ids=["full", "factor"])
def test_a_graph_of_no_strength_is_left_out(width, strengths):
    settings = Settings(width=width, init=(0.1, 0.6), strengths=strengths)
    objective = random_objective(random_observations(M, N), settings)
    assert [graph.strength for graph in objective.graphs] == [value for value in strengths if value]
    check_against_autograd(objective, settings)


def ring(size):
    """A graph that is given: every row with the next two."""
    weights = np.zeros((size, size))
    for step, weight in ((1, 0.7), (2, 0.2)):
        index = np.arange(size)
        weights[index, (index + step) % size] = weights[(index + step) % size, index] = weight
    return sp.csr_array(weights)


FURTHER = {
    "given": {"given": (ring(M), ring(N))},
    "given rows": {"given": (ring(M), None), "n_neighbors": 2},
    "blocks": {"transforms": (TransformedGraph(blocks(2, 2, 1), 0.2, None),)},
    "two transforms": {
        "transforms": (
            TransformedGraph(blocks(3, 2, 3), 0.2, 2),
            TransformedGraph(lambda completed: torch.sin(completed[:, :3]) * completed[:, 1:4], 0.1, None),
        )
    },
    "total variation": {"tv_strength": 0.3},
    "all": {
        "given": (None, ring(N)),
        "transforms": (TransformedGraph(blocks(2, 3, 2), 0.2, 1),),
        "tv_strength": 0.3,
        "biases": True,
        "penalties": DECAYS,
    },
}


@pytest.mark.parametrize("options", FURTHER.values(), ids=FURTHER)
def test_further_terms_have_the_gradients_of_autograd(options):
    settings = Settings(**WIDE, **options)
    check_against_autograd(random_objective(random_observations(M, N), settings), settings)


def test_given_graphs_cost_the_same_at_factor_width():
    settings = Settings(width=3, **WIDE, given=(ring(M), ring(N)))
    check_against_autograd(random_objective(random_observations(M, N), settings), settings)


def test_rows_as_a_transform_is_the_row_graph():
    observed = random_observations(M, N)
    plain = random_objective(observed, Settings(init=(0.1, 0.6), strengths=(0.3, 0.0)))
    settings = Settings(init=(0.1, 0.6), strengths=(0.0, 0.0), transforms=(TransformedGraph(lambda x: x, 0.3),))
    transformed = random_objective(observed, settings)
    first, second = plain.evaluate(), transformed.evaluate()
    close(second.objective, first.objective)
    close(second.further, 0.3 * first.row_energy)
    for left, right in zip(plain.parameters(), transformed.parameters(), strict=True):
        close(right.grad, left.grad)


@pytest.mark.parametrize("options", CASES[::5])
def test_both_forms_agree_at_full_width(options):
    full = random_objective(random_observations(M, N), Settings(**WIDE, **options))
    factor = FactorWidthObjective(
        full.batches, full.factorization, full.row_graph, full.column_graph, full.biases, full.penalties
    )
    expected = full.evaluate()
    gradients = [gradient_of(parameter) for parameter in full.parameters()]
    close(factor.evaluate(), expected)
    for parameter, gradient in zip(factor.parameters(), gradients, strict=True):
        close(parameter.grad, gradient)


def test_both_forms_choose_the_same_neighbors():
    full = random_objective(random_observations(M, N), Settings(n_neighbors=2, **WIDE))
    factor = FactorWidthObjective(full.batches, full.factorization, full.row_graph, full.column_graph)
    chosen = []
    for objective in (full, factor):
        full.factorization.weights[0].normal_(generator=torch.Generator().manual_seed(7))
        objective.refresh_graphs()
        chosen.append([graph.laplacian.state()["neighbors"] for graph in objective.graphs])
    assert all(torch.equal(*pair) for pair in zip(*chosen, strict=True))


def test_evaluating_twice_gives_the_same_and_moves_nothing():
    for width in (None, 3):
        objective = random_objective(random_observations(M, N), Settings(width=width, **WIDE, penalties=DECAYS))
        state, first = objective.state(), objective.evaluate()
        gradients = [gradient_of(parameter) for parameter in objective.parameters()]
        close(objective.evaluate(), first, 0)
        for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
            close(parameter.grad, gradient, 0)
        close(objective.state()[0], state[0], 0)


@pytest.mark.parametrize("width", [None, 3], ids=["full", "factor"])
@pytest.mark.parametrize("biases", [False, True])
def test_predictions_are_the_completed_matrix_at_the_pairs(width, biases):
    objective = random_objective(random_observations(M, N), Settings(width=width, biases=biases, **WIDE))
    pairs = random_observations(M, N, seed=1).pattern
    left, right = objective.factorization.factors()
    completed = left @ right.T
    if objective.biases is not None:
        completed = completed + objective.biases[0][:, None] + objective.biases[1]
    _, mask = dense(random_observations(M, N, seed=1))
    close(objective.predict_pairs(pairs), completed[mask])


@pytest.mark.parametrize("options", [{}, {"n_neighbors": 2, "biases": True}])
def test_state_is_a_copy_and_brings_everything_back(options):
    objective = random_objective(random_observations(M, N), Settings(width=3, **WIDE, **options))
    state, expected = objective.state(), objective.evaluate()
    for _ in range(2):
        for parameter in objective.parameters():
            parameter.mul_(1.5).add_(0.1)
        objective.refresh_graphs()
        assert not torch.allclose(objective.evaluate().objective, expected.objective)
        objective.load_state(state)
        close(objective.evaluate(), expected, 0)


# -------------------------------------------------------------------- batches


def cut(options, n_batches):
    """The same objective whole and in batches, at the same point."""
    observed = random_observations(M, N)
    options = {**WIDE, "width": 3, **options}
    whole = random_objective(observed, Settings(**options))
    parts = random_objective(observed, Settings(**options, n_batches=n_batches))
    for graph, other in zip(parts.graphs, whole.graphs, strict=True):
        graph.laplacian.load_state(other.laplacian.state())
    for parameter, other in zip(parts.model_parameters(), whole.model_parameters(), strict=True):
        parameter.copy_(other)
    return whole, parts


BATCHED = [{"n_neighbors": 2}, {"n_neighbors": 3, "biases": True, "penalties": DECAYS}, {"strengths": (0.0, 0.0)}, {}]


@pytest.mark.parametrize("options", [*BATCHED, {"n_neighbors": 2, "penalties": Penalties(unobserved_weight=0.3)}])
@pytest.mark.parametrize("n_batches", [2, 5])
def test_batches_are_the_whole_on_average(options, n_batches):
    whole, parts = cut(options, n_batches)
    expected = whole.evaluate()
    close(parts.evaluate_all(), expected)
    sums = [torch.zeros_like(parameter) for parameter in whole.model_parameters()]
    logits = []
    for batch in range(n_batches):
        parts.evaluate(batch)
        for total, parameter in zip(sums, parts.model_parameters(), strict=True):
            total += gradient_of(parameter) / n_batches
        logits += [gradient_of(part) for part in parts.logits() if part.grad is not None]
    for total, parameter in zip(sums, whole.model_parameters(), strict=True):
        close(total, gradient_of(parameter))
    if "n_neighbors" in options:
        rows, columns = logits[::2], logits[1::2]
        close(torch.cat(rows), gradient_of(whole.logits()[0]))
        close(torch.cat(columns), gradient_of(whole.logits()[1]))


def test_batches_hold_every_entry_once():
    _, parts = cut({}, 4)
    whole, mask = dense(random_observations(M, N))
    together = [dense(batch) for batch in parts.batches]
    close(sum(targets for targets, _ in together), whole)
    assert torch.equal(sum(observed.int() for _, observed in together), mask.int())
    sizes = [batch.values.numel() for batch in parts.batches]
    assert max(sizes) - min(sizes) <= 1


def test_there_are_no_more_batches_than_rows_or_entries():
    objective = random_objective(random_observations(4, 9), Settings(width=2, n_batches=100))
    assert len(objective.batches) == 4
    assert len(objective.logits()) == 2  # dense graphs stay whole


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: [1.0, *state[1:]], r"expected a tensor of shape \(\d+, \d+\)"),
        (lambda state: [state[0][:1], *state[1:]], "expected a tensor of shape"),
        (lambda state: [*state[:-1], state[0]], "expected the state of a graph by names"),
        (lambda state: state[:-1], "shorter"),
        (lambda state: [*state, state[-1]], "longer"),
    ],
    ids=["a number", "another shape", "no graph", "too few", "too many"],
)
def test_a_state_of_something_else_is_refused(spoil, message):
    objective = random_objective(random_observations(M, N), Settings(width=3, **WIDE))
    with pytest.raises(ValueError, match=message):
        objective.load_state(spoil(objective.state()))


def test_a_state_of_fewer_factors_is_refused():
    objective = random_objective(random_observations(M, N), Settings(width=3, strengths=(0.0, 0.0)))
    with pytest.raises(ValueError, match="shorter"):
        objective.load_state(objective.state()[:-1])


def test_refresh_moves_the_state_of_every_part():
    whole, parts = cut({"n_neighbors": 2, "biases": True}, 3)
    whole.factorization.weights[0].normal_(generator=torch.Generator().manual_seed(7))
    parts.factorization.weights[0].copy_(whole.factorization.weights[0])
    state = [logits.clone() for logits in whole.logits()]
    moved = [carry(old) for old, (_, carry) in zip(state, whole.refresh_graphs(), strict=True)]
    state = [logits.clone() for logits in parts.logits()]
    pieces = [carry(old) for old, (_, carry) in zip(state, parts.refresh_graphs(), strict=True)]
    close(torch.cat(pieces[:3]), moved[0])
    close(torch.cat(pieces[3:]), moved[1])


# -------------------------------------------------------------------- after optimiser steps


@pytest.mark.parametrize("options", GRAPHS)
@pytest.mark.parametrize("width", [None, 3], ids=["full", "factor"])
def test_graphs_stay_graphs_after_optimiser_steps(width, options):
    objective = random_objective(random_observations(M, N), Settings(width=width, **WIDE, **options))
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.1)
    before = [logits.clone() for logits in objective.logits()]
    for step in range(12):
        if step % 4 == 0:
            objective.refresh_graphs()
        objective.evaluate()
        optimizer.step()
        for graph in objective.graphs:
            adjacency = torch.as_tensor(graph.laplacian.adjacency().toarray())
            close(adjacency, adjacency.T, 1e-15)
            assert not adjacency.diagonal().any()
            assert (adjacency >= 0).all()
            ones = torch.ones(len(adjacency), 1, dtype=torch.float64)
            energy, smoothed = graph.laplacian.apply(ones, ones, 1.0)
            assert float(energy) == pytest.approx(0, abs=1e-14)
            assert smoothed.abs().max() < 1e-14
    assert not any(torch.equal(*pair) for pair in zip(before, objective.logits(), strict=True))


# -------------------------------------------------------------------- memory


class LargestOutput(TorchDispatchMode):
    """Records the largest number of entries that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else [result]:
            if isinstance(value, torch.Tensor) and value.layout == torch.strided:
                self.numel = max(self.numel, value.numel())
        return result


@pytest.mark.parametrize(
    "options", [{"biases": True, "penalties": DECAYS}, {"penalties": Penalties(unobserved_weight=0.1)}]
)
def test_factor_width_holds_nothing_larger_than_its_data(options):
    m, n, width, neighbors = 300, 400, 3, 4
    observed = random_observations(m, n, density=0.05)
    objective = random_objective(observed, Settings(width=width, n_neighbors=neighbors, **WIDE, **options))
    objective.evaluate()
    with LargestOutput() as largest:
        objective.evaluate()
    nnz = observed.values.numel()
    assert nnz <= largest.numel <= max(nnz, n * (neighbors + 1)) < m * n / 10
    with LargestOutput() as largest:
        objective.predict_pairs(SparsePattern(*_first_pairs(m), n))
    assert largest.numel <= max(m, n) * (width + 2)


def _first_pairs(m):
    return torch.arange(m + 1), torch.zeros(m, dtype=torch.int64)
