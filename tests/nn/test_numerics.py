"""What rounding, saturation, ill-conditioned data and another order do to the objective and a training."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from nn_references import (
    CPU,
    F64,
    autograd_objective,
    gradient_of,
    normal,
    random_objective,
    random_observations,
)
from torch import Tensor

from air_recsys.graphs.laplacian import ADJACENCIES, squared_distances
from air_recsys.nn.adaptive_laplacian import SparseLaplacian
from air_recsys.nn.build import Settings
from air_recsys.nn.objective import Penalties
from air_recsys.training import GradientDescent, Plan, train

M, N = 7, 6
LARGEST = 1e4  # of a saturated logit: float32 knows exp up to 88, float64 up to 709
GRAPHS = [*({"adjacency": name} for name in ADJACENCIES), {"n_neighbors": 2}]
WIDTHS = pytest.mark.parametrize("width", [None, 3], ids=["full", "factor"])
FORMS = pytest.mark.parametrize("options", GRAPHS, ids=["row_softmin", "global_sum", "global_product", "sparse"])


def settings(**options: Any) -> Settings:
    usual: dict[str, Any] = {"init": (0.1, 0.6), "strengths": (0.05, 0.02), "biases": True}
    return Settings(penalties=Penalties(weight_decay=0.7, bias_decay=0.3), **usual | options)


def relative(found: Tensor, expected: Tensor) -> float:
    """Return the largest error against the largest entry."""
    return float((found.double() - expected.double()).abs().max() / expected.double().abs().max())


# -------------------------------------------------------------------- float32 against float64


@FORMS
@WIDTHS
def test_single_precision_stays_close_to_double_precision_at_a_point_and_through_a_training(width, options):
    twins = [
        random_objective(random_observations(M, N, dtype=dtype), settings(width=width, **options))
        for dtype in (torch.float32, F64)
    ]
    twins[1].load_state(twins[0].state())
    single, double = ([float(term) for term in twin.evaluate()] for twin in twins)
    assert single == pytest.approx(double, rel=1e-5)
    for one, two in zip(*(twin.parameters() for twin in twins), strict=True):
        assert one.dtype == torch.float32
        assert relative(gradient_of(one), gradient_of(two)) < 1e-5
    ends = []
    for twin in twins:
        result = train(
            GradientDescent(twin, Plan(n_epochs=60, learning_rate=0.01, evaluate_every=60, graph_refresh=100))
        )
        left, right = twin.factorization.factors()
        ends.append((left @ right.T, result.records[-1].objective))
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-4)
    assert relative(ends[0][0], ends[1][0]) < 1e-3


# -------------------------------------------------------------------- saturated logits


def corners(size: int) -> dict[str, Tensor]:
    """Logits of +-LARGEST and 0."""
    random = torch.randint(-1, 2, (size, size), generator=torch.Generator().manual_seed(0)).to(F64)
    upper, edge = torch.ones(size, size, dtype=F64).triu(1), torch.zeros(size, size, dtype=F64)
    edge[1, 2] = 1
    cases = {
        "high": torch.ones(size, size, dtype=F64),
        "low": -torch.ones(size, size, dtype=F64),
        "random": random,
        "up and down": upper - upper.T,
        "one edge": edge,
        "one edge out": -edge,
        "one edge in and out": edge - edge.T,
        "a loop": torch.diag(edge[1]),
    }
    return {name: LARGEST * logits for name, logits in cases.items()}


def bounded(name: str, case: str) -> bool:
    """Whether an adjacency has finite weights by its definition: exp(W_ij + W_ji) / sum(exp(W)) has no bound."""
    return name != "global_product" or case not in ("high", "random")


@pytest.mark.parametrize("dtype", [torch.float32, F64])
@pytest.mark.parametrize(
    ("name", "case"), [pair for pair in itertools.product(ADJACENCIES, corners(M)) if bounded(*pair)]
)
def test_saturated_logits_have_finite_weights_energies_and_gradients(name, case, dtype):
    points = normal(M, 3).to(dtype)
    term = ADJACENCIES[name](corners(M)[case].to(dtype), squared_distances(points, points))
    for found in term:
        assert torch.isfinite(found).all()
    assert (term.adjacency >= 0).all()
    torch.testing.assert_close(term.adjacency, term.adjacency.T)


def test_a_product_saturated_on_one_side_is_its_definition():
    distances = squared_distances(*[torch.eye(M, dtype=F64)] * 2)
    logits = corners(M)["one edge"]
    term = ADJACENCIES["global_product"](logits, distances)  # exp(1e4) / exp(1e4)
    assert float(term.adjacency[1, 2]) == 1.0
    assert float(term.adjacency.sum()) == 2.0
    assert not ADJACENCIES["global_product"](corners(M)["one edge in and out"], distances).adjacency.any()


@pytest.mark.parametrize(("n_neighbors", "dtype"), [(2, torch.float32), (2, F64), (M - 1, torch.float32)])
def test_saturated_sparse_graphs_smooth_finitely_and_refresh(n_neighbors, dtype):
    graph = SparseLaplacian(M, n_neighbors, generator=torch.Generator().manual_seed(0), dtype=dtype, device=CPU)
    points = normal(M, 3).to(dtype)
    signs = torch.randint(0, 2, graph.logits.shape, generator=torch.Generator().manual_seed(2))
    graph.logits.copy_(LARGEST * (2 * signs - 1))
    graph.refresh(points, points)
    energy, smoothed = graph.apply(points, points, 1.0)
    assert energy >= 0
    for found in (energy, smoothed, gradient_of(graph.logits)):
        assert torch.isfinite(found).all()


# -------------------------------------------------------------------- ill-conditioned data


@WIDTHS
def test_weights_over_twelve_orders_have_the_gradients_of_autograd(width):
    options, observed = settings(width=width), random_observations(M, N)
    observed = observed._replace(weights=10 ** torch.linspace(-6, 6, len(observed.values), dtype=F64))
    objective = random_objective(observed, options)
    found = float(objective.evaluate().objective)
    terms, gradients = autograd_objective(objective, options)
    assert found == pytest.approx(terms["objective"], rel=1e-10)
    for parameter, expected in zip(objective.parameters(), gradients, strict=True):
        assert relative(gradient_of(parameter), expected) < 1e-10


@FORMS
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_rows_that_are_equal_have_no_energy_and_move_no_logit(options, scale):
    objective = random_objective(random_observations(M, N), settings(width=3, **options))
    first, last = objective.factorization.weights[0], objective.factorization.weights[-1]
    first.copy_(scale * first[:1].expand_as(first))
    last.copy_(last[:1].expand_as(last))
    terms = objective.evaluate()
    size = float((first @ first.T).abs().max() * (last @ last.T).abs().max()) * 10
    assert 0 <= float(terms.row_energy) <= 1e-10 * size
    assert 0 <= float(terms.column_energy) <= 1e-10 * size
    for logits in objective.logits():
        assert float(gradient_of(logits).abs().max()) <= 1e-10 * size
