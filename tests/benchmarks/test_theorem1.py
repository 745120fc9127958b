"""The flow is the gradient's, the formula is Theorem 1's, and a wrong formula would be seen."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from air_recsys.exceptions import ParameterError
from air_recsys.graphs.laplacian import ADJACENCIES
from benchmarks.paper import theorem1 as module
from benchmarks.paper.checks import Check, worst_rows
from benchmarks.paper.theorem1 import (
    Flow,
    Stated,
    balanced_start,
    gaussian_start,
    order,
    start_state,
    theorem1,
    trace,
)

few = settings(max_examples=15)
depths = st.integers(2, 4)
seeds = st.integers(0, 2**16)


def flow(seed, depth, adjacency="row_softmin"):
    rng = np.random.default_rng(seed)
    truth, observed = rng.standard_normal((12, 10)), (rng.random((12, 10)) < 0.6).astype(float)
    return Flow(torch.from_numpy(truth), torch.from_numpy(observed), depth, adjacency=adjacency), rng


def energy(points, logits, adjacency):
    """The Dirichlet energy written out, for automatic differentiation."""
    distances = (points[:, None] - points[None]).square().sum(dim=2)
    if adjacency == "row_softmin":
        return (torch.softmax(-logits, dim=1) * distances).sum() / 2
    total = torch.exp(logits).sum()
    if adjacency == "global_sum":
        return (torch.exp(logits) / total * distances).sum()
    return (torch.exp(logits + logits.T) / total * distances).sum() / 2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_velocity_is_minus_the_gradient(depth, adjacency):
    one, rng = flow(0, depth, adjacency)
    state = start_state(gaussian_start(depth, 0.4, rng), rng)
    leaves = [part.clone().requires_grad_() for part in one.unpack(state)]
    *factors, rows, columns = leaves
    product = torch.linalg.multi_dot(factors)
    objective = (one.observed * (product - one.truth).square()).sum() / 2
    objective = objective + one.strengths[0] * energy(product, rows, adjacency)
    objective = objective + one.strengths[1] * energy(product.T, columns, adjacency)
    objective.backward()
    expected = torch.cat([leaf.grad.flatten() for leaf in leaves])  # type: ignore[union-attr]
    torch.testing.assert_close(torch.from_numpy(-one.velocity(state)), expected, rtol=1e-10, atol=1e-12)


@few
@given(seeds, depths, st.sampled_from(list(ADJACENCIES)))
def test_the_formula_gives_the_derivative_at_balanced_factors(seed, depth, adjacency):
    one, rng = flow(seed, depth, adjacency)
    state = start_state(balanced_start(depth, rng), rng)
    stated = one.stated(state)
    np.testing.assert_allclose(one.measured(state), stated.data + stated.regularizer, rtol=1e-4, atol=1e-6)
    assert stated.gamma.min() > 0


@few
@given(seeds, depths)
def test_balanced_and_gaussian_starts(seed, depth):
    one, rng = flow(seed, depth)
    balanced, gaussian = (
        start_state(factors, rng) for factors in (balanced_start(depth, rng), gaussian_start(depth, 0.2, rng))
    )
    assert max(np.abs(part).max() for part in one.imbalance(balanced)) < 1e-14
    assert max(np.abs(part).max() for part in one.imbalance(gaussian)) > 0.01
    np.testing.assert_allclose(one.stated(balanced).sigma, np.geomspace(1, 1e-3, 10), rtol=1e-10)


def test_the_flow_keeps_even_an_imbalance():
    one, rng = flow(1, 3)
    found = trace(one, start_state(gaussian_start(3, 0.2, rng), rng), 3)
    assert found.imbalance_drift < 1e-8
    assert np.nanmedian(found.errors()) > 0.1
    assert found.measured.shape == found.stated.sigma.shape == (3, 10)


def test_a_power_law_is_found():
    sigma, force = np.geomspace(1e-3, 1, 20), np.linspace(-1, 2, 20)
    slope, factor = order(sigma, 4 * sigma**1.5 * force, force, sigma > 0)
    assert slope == pytest.approx(1.5)
    assert factor == pytest.approx(4)


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [
        *[("<=", 1.0, True), ("<=", 1.1, False), (">=", 1.0, True), (">=", 0.9, False)],
        *[("=", 1.009, True), ("=", 0.98, False)],
        *[(relation, float("nan"), False) for relation in ("<=", ">=", "=")],
    ],
)
def test_a_check_can_fail(relation, measured, holds):
    (row,) = worst_rows([Check("s", {"depth": 2}, relation, 1.0, measured)])
    assert row["holds"] is holds
    assert row["expected"] == f"{relation} 1"


def test_the_worst_of_a_statement_is_shown():
    checks = [Check("s", {"depth": 2}, ">=", 1.0, value) for value in (3.0, float("nan"), 0.5)]
    assert np.isnan(worst_rows(checks)[0]["measured"])
    assert worst_rows(checks[::2])[0]["measured"] == 0.5
    assert len(worst_rows([*checks, Check("s", {"depth": 3}, ">=", 1.0, 2.0)])) == 2


@pytest.fixture(scope="module")
def result():
    return theorem1(seed=3, quick=True)


def test_the_theorem_holds_from_balanced_starts_only(result):
    rows = result.rows
    balanced = [row for row in rows if row["start"] == "balanced"]
    assert all(row["holds"] for row in balanced)
    medians = [row for row in rows if row not in balanced and row["statement"].endswith("median error")]
    assert len(medians) == 6
    assert not any(row["holds"] for row in medians)
    errors = [row["measured"] for row in balanced if row["statement"].startswith("derivative")]
    assert len(errors) == 12  # three depths; without a regularizer and with each adjacency
    assert max(errors) < 1e-4
    slopes = {(row["statement"][:12], row["depth"]): row["measured"] for row in rows if "order" in row["statement"]}
    assert slopes["order of the", 4] == pytest.approx(2.5, abs=1e-3)


def test_a_wrong_formula_is_seen(monkeypatch):
    right = Flow.stated

    def wrong(self, state):
        stated = right(self, state)
        return Stated(stated.sigma, 1.05 * stated.data, stated.regularizer, stated.pull, stated.gamma)

    monkeypatch.setattr(Flow, "stated", wrong)
    one, rng = flow(0, 2)
    found = trace(one, start_state(balanced_start(2, rng), rng), 3)
    case = {"depth": 2, "start": "balanced", "adjacency": "row_softmin"}
    broken = [row["statement"] for row in worst_rows(module._checks(case, found)) if not row["holds"]]
    assert broken == ["derivative = formula: largest error"]


def test_bad_input_is_told():
    with pytest.raises(ParameterError, match="seed must be an integer >= 0"):
        theorem1(seed=-1)
