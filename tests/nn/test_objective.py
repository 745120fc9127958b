"""Both forms of the objective: their gradients against autograd, their batches, and what they allocate."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from covering import covering
from nn_references import autograd_objective, close, dense, gradient_of, random_objective, random_observations

from air_recsys.graphs.laplacian import ADJACENCIES, laplacian
from air_recsys.nn.build import Settings, TransformedGraph
from air_recsys.nn.objective import FactorWidthObjective, FullWidthObjective, Penalties
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


def ring(size):
    """A graph that is given: every row with the next two."""
    weights = np.zeros((size, size))
    for step, weight in ((1, 0.7), (2, 0.2)):
        index = np.arange(size)
        weights[index, (index + step) % size] = weights[(index + step) % size, index] = weight
    return sp.csr_array(weights)


FURTHER = [
    {"given": (ring(M), None), "n_neighbors": 2},
    {
        "transforms": (
            TransformedGraph(blocks(3, 2, 3), 0.2, 2),
            TransformedGraph(lambda completed: torch.sin(completed[:, :3]) * completed[:, 1:4], 0.1, None),
        )
    },
    {
        "given": (None, ring(N)),
        "transforms": (TransformedGraph(blocks(2, 3, 2), 0.2, 1),),
        "tv_strength": 0.3,
        "biases": True,
        "penalties": DECAYS,
    },
]
# Every fifth of the products has each graph and each term.
EITHER_WIDTH = [
    *(graph | terms for graph, terms in product(GRAPHS, TERMS)),
    *({"depth": depth} for depth in (2, 5)),
    *({"strengths": strengths} for strengths in ((0.3, 0.0), (0.0, 0.3), (0.0, 0.0))),
    {"given": (ring(M), ring(N))},
]
CASES = [
    *covering([None, 3], EITHER_WIDTH),
    *covering([3, None], [*EITHER_WIDTH[:30:5], *EITHER_WIDTH[30:]]),
    *((None, options) for options in FURTHER),
]


@pytest.mark.parametrize(
    ("width", "options", "weighted"),
    [*((*case, False) for case in CASES), *((*case, True) for case in covering([None, 3], EITHER_WIDTH[:30:5]))],
)
def test_terms_and_gradients_are_those_of_autograd(width, options, weighted):
    settings, observed = Settings(**{"width": width} | WIDE | options), random_observations(M, N)
    if weighted:
        generator = torch.Generator().manual_seed(1)
        weights = 3 * torch.rand(observed.values.shape, generator=generator, dtype=torch.float64)
        observed = observed._replace(weights=weights)
    objective = random_objective(observed, settings)
    assert type(objective) is (FullWidthObjective if width is None else FactorWidthObjective)
    assert [graph.strength for graph in objective.graphs] == [value for value in settings.strengths if value]
    terms = objective.evaluate()._asdict()
    expected, gradients = autograd_objective(objective, settings)
    assert {name: float(value) for name, value in terms.items()} == pytest.approx(expected, rel=1e-10, abs=1e-10)
    for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
        assert gradient.abs().max() > 1e-6  # a term left out would show
        close(parameter.grad, gradient, 1e-10)


@pytest.mark.parametrize("width", [None, 3])
@pytest.mark.parametrize("strengths", [(0.05, 0.02), (0.3, 0.0)])
def test_a_graph_beside_adds_its_energy_and_leaves_the_learned_one(width, strengths):
    settings = Settings(**{"width": width, "n_neighbors": 2} | WIDE | {"strengths": strengths})
    both = replace(settings, beside=((ring(M), 0.3), (ring(N), 0.2)))
    plain, joined = (random_objective(random_observations(M, N), each) for each in (settings, both))
    terms, joined_terms = plain.evaluate(), joined.evaluate()
    weights = [weight.detach().clone().requires_grad_() for weight in plain.factorization.weights]
    completed = weights[0] @ weights[1] @ weights[2].T
    traces = [
        strength * torch.trace(rows.T @ laplacian(torch.as_tensor(graph.toarray())) @ rows)
        for (graph, strength), rows in zip(both.beside, (completed, completed.T), strict=True)
    ]
    extra = traces[0] + traces[1]
    extra.backward()
    assert float(joined_terms.objective) == pytest.approx(float(terms.objective + extra.detach()), rel=1e-12)
    for own, other, leaf in zip(plain.factorization.weights, joined.factorization.weights, weights, strict=True):
        close(other.grad, own.grad + leaf.grad, 1e-12)
    for own, other in zip(plain.logits(), joined.logits(), strict=True):
        close(other.grad, own.grad, 1e-12)


def test_both_forms_choose_the_same_neighbors():
    full = random_objective(random_observations(M, N), Settings(n_neighbors=2, **WIDE))
    factor = FactorWidthObjective(full.batches, full.factorization, full.row_graph, full.column_graph)
    chosen = []
    for objective in (full, factor):
        full.factorization.weights[0].normal_(generator=torch.Generator().manual_seed(7))
        objective.refresh_graphs()
        chosen.append([graph.laplacian.state()["neighbors"] for graph in objective.graphs])
    assert all(torch.equal(*pair) for pair in zip(*chosen, strict=True))


@pytest.mark.parametrize(("width", "biases"), [(None, True), (3, True), (3, False)])
def test_predictions_are_the_completed_matrix_at_the_pairs(width, biases):
    objective = random_objective(random_observations(M, N), Settings(width=width, biases=biases, **WIDE))
    pairs = random_observations(M, N, seed=1)
    left, right = objective.factorization.factors()
    completed = left @ right.T
    if objective.biases is not None:
        completed = completed + objective.biases[0][:, None] + objective.biases[1]
    _, mask = dense(pairs)
    close(objective.predict_pairs(pairs.pattern), completed[mask])


@pytest.mark.parametrize("options", [{"width": 3}, {"width": 3, "n_neighbors": 2, "biases": True}, {}])
def test_evaluating_moves_nothing_and_a_state_is_a_copy_that_brings_everything_back(options):
    objective = random_objective(random_observations(M, N), Settings(**WIDE, **options, penalties=DECAYS))
    state, expected = objective.state(), objective.evaluate()
    gradients = [gradient_of(parameter) for parameter in objective.parameters()]
    for change in (False, True, True):
        if change:
            for parameter in objective.parameters():
                parameter.mul_(1.5).add_(0.1)
            objective.refresh_graphs()
            assert not torch.allclose(objective.evaluate().objective, expected.objective)
            objective.load_state(state)
        close(objective.evaluate(), expected, 0)
        for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
            close(parameter.grad, gradient, 0)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: [1.0, *state[1:]], r"expected a tensor of shape \(\d+, \d+\)"),
        (lambda state: [state[0][:1], *state[1:]], "expected a tensor of shape"),
        (lambda state: [*state[:-1], state[0]], "expected the state of a graph by names"),
        (lambda state: state[:-1], "shorter"),
        (lambda state: state[:2], "shorter"),
        (lambda state: [*state, state[-1]], "longer"),
    ],
    ids=["a number", "another shape", "no graph", "too few graphs", "too few factors", "too many"],
)
def test_a_state_of_something_else_is_refused(spoil, message):
    objective = random_objective(random_observations(M, N), Settings(width=3, **WIDE))
    with pytest.raises(ValueError, match=message):
        objective.load_state(spoil(objective.state()))


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


@pytest.mark.parametrize(
    ("options", "n_batches"),
    [
        ({}, 5),
        ({"strengths": (0.0, 0.0)}, 2),
        ({"n_neighbors": 2, "penalties": Penalties(unobserved_weight=0.3)}, 5),
        ({"n_neighbors": 3, "biases": True, "penalties": DECAYS}, 2),
    ],
)
def test_batches_are_the_whole_on_average(options, n_batches):
    whole, parts = cut(options, n_batches)
    expected = whole.evaluate()
    close(parts.evaluate_all(), expected, 1e-10)
    sums = [torch.zeros_like(parameter) for parameter in whole.model_parameters()]
    logits = []
    for batch in range(n_batches):
        parts.evaluate(batch)
        for total, parameter in zip(sums, parts.model_parameters(), strict=True):
            total += gradient_of(parameter) / n_batches
        logits += [gradient_of(part) for part in parts.logits() if part.grad is not None]
    for total, parameter in zip(sums, whole.model_parameters(), strict=True):
        close(total, gradient_of(parameter), 1e-10)
    if "n_neighbors" in options:
        rows, columns = logits[::2], logits[1::2]
        close(torch.cat(rows), gradient_of(whole.logits()[0]), 1e-10)
        close(torch.cat(columns), gradient_of(whole.logits()[1]), 1e-10)


def test_batches_hold_every_entry_once_and_dense_graphs_stay_whole():
    _, parts = cut({}, 4)
    whole, mask = dense(random_observations(M, N))
    together = [dense(batch) for batch in parts.batches]
    close(sum(targets for targets, _ in together), whole)
    assert torch.equal(sum(observed.int() for _, observed in together), mask.int())
    sizes = [batch.values.numel() for batch in parts.batches]
    assert max(sizes) - min(sizes) <= 1
    assert len(parts.logits()) == 2


def test_refresh_moves_the_state_of_every_part():
    whole, parts = cut({"n_neighbors": 2, "biases": True}, 3)
    whole.factorization.weights[0].normal_(generator=torch.Generator().manual_seed(7))
    parts.factorization.weights[0].copy_(whole.factorization.weights[0])
    moved, pieces = (
        [carry(old) for old, (_, carry) in zip(state, objective.refresh_graphs(), strict=True)]
        for objective, state in [(each, [logits.clone() for logits in each.logits()]) for each in (whole, parts)]
    )
    close(torch.cat(pieces[:3]), moved[0])
    close(torch.cat(pieces[3:]), moved[1])
