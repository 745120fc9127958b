"""The yardstick computes what the engine computes, and times are tables of positive numbers and their quotients."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.nn.build import Settings, build_objective, observations
from benchmarks.paper import steps as module
from benchmarks.paper.recipes import content_of
from benchmarks.paper.steps import bench_step, table2
from benchmarks.plain_autograd import PlainAIR, plain_optimizers, plain_step, program_step

STRENGTH = 0.03


def pair(m, n, depth):
    """The engine's objective and the plain model at the same parameters, with the plain model's data."""
    rng = np.random.default_rng(0)
    targets, mask = rng.normal(size=(m, n)), rng.random((m, n)) < 0.6
    rows, columns = np.nonzero(mask)
    ratings = sp.csr_array((targets[rows, columns], (rows, columns)), shape=(m, n))
    observed = observations(ratings, lambda values: values, torch.float64, torch.device("cpu"))
    settings = Settings(depth=depth, init=(0.1, 0.4), strengths=(STRENGTH, STRENGTH))
    objective = build_objective(observed, settings, rng)
    generator = torch.Generator().manual_seed(0)
    plain = PlainAIR(m, n, depth, STRENGTH, generator).double()
    with torch.no_grad():
        *left, right = objective.factorization.weights
        for parameter, weight in zip(plain.layers, [*left, right.T], strict=True):
            parameter.copy_(weight)
        for parameter, logits in zip((plain.row_logits, plain.column_logits), objective.logits(), strict=True):
            logits.normal_(generator=generator)
            parameter.copy_(logits)
    return objective, plain, torch.as_tensor(targets), torch.as_tensor(mask, dtype=torch.float64)


def parameters(plain):
    """In the order and the shape of the engine's."""
    *left, right = plain.layers
    return [*left, right.T, plain.row_logits, plain.column_logits]


@pytest.mark.parametrize(("m", "n", "depth"), [(7, 7, 2), (8, 5, 3), (5, 9, 4)])
def test_the_plain_objective_and_its_gradient_are_the_engines(m, n, depth):
    objective, plain, targets, mask = pair(m, n, depth)
    expected = plain(targets, mask)
    found = objective.evaluate()
    assert abs(float(found.objective) - expected.item()) < 1e-10
    energy = float(found.row_energy + found.column_energy)
    assert STRENGTH * energy > 1e-3  # the graphs count here
    expected.backward()
    *left, right = plain.layers
    assert right.grad is not None
    gradients = [*(layer.grad for layer in left), right.grad.T, plain.row_logits.grad, plain.column_logits.grad]
    for parameter, gradient in zip(objective.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=0, atol=1e-10)


def test_steps_of_both_go_the_same_way():
    objective, plain, targets, mask = pair(8, 6, 3)
    start = copy.deepcopy(plain)
    optimizer = torch.optim.Adam(objective.parameters(), lr=1e-3)
    optimizers = plain_optimizers(plain, 1e-3)
    for _ in range(10):
        expected = plain_step(plain, optimizers, targets, mask)
        with torch.no_grad():
            found = objective.evaluate().objective
            optimizer.step()
        assert float(found) == pytest.approx(float(expected), rel=1e-8)
    for parameter, other, before in zip(objective.parameters(), parameters(plain), parameters(start), strict=True):
        torch.testing.assert_close(parameter, other.detach(), rtol=0, atol=1e-7)
        assert (other - before).abs().max() > 1e-3


def test_the_program_makes_the_same_steps():
    rng = np.random.default_rng(0)
    targets, mask = (
        torch.as_tensor(array, dtype=torch.float32) for array in (rng.random((6, 5)), rng.random((6, 5)) > 0.3)
    )
    results = []
    for step in (plain_step, program_step):
        model = PlainAIR(6, 5, 3, 1e-2, torch.Generator().manual_seed(0))
        optimizers = plain_optimizers(model, 1e-2)
        results.append(torch.stack([step(model, optimizers, targets, mask) for _ in range(20)]))
    torch.testing.assert_close(*results)
    assert results[0][-1] < results[0][0]


def test_bench_step_is_a_table_of_positive_times():
    rows = {row["contender"]: row for row in bench_step(16, 3, 1, steps=2)}
    names = {"engine, AIR", "engine, DMF", "plain autograd, AIR", "authors' program, AIR", "matrix products of AIR"}
    assert names < set(rows)
    assert all(row["milliseconds"] > 0 for row in rows.values())
    assert rows["plain autograd, AIR"]["plain / this"] == 1
    assert rows["matrix products of AIR"]["this / products"] == 1
    assert rows["matrix products of AIR, fast"]["this / fast"] == 1
    ratio = rows["plain autograd, AIR"]["milliseconds"] / rows["engine, AIR"]["milliseconds"]
    assert rows["engine, AIR"]["plain / this"] == pytest.approx(ratio)


# ---------------------------------------------------------------- table 2


def test_seconds_ratios_and_verdict(monkeypatch):
    asked = []

    def median_times(contenders, *how):
        asked.append((*contenders, *how[:3]))
        return {"DMF": 1e-3, "RDMF": 2e-3, "AIR": 1.83e-3}

    monkeypatch.setattr(module, "median_times", median_times)
    (report,) = table2(rounds=3, steps=5, device="cpu")
    printed = content_of("table2")
    assert asked == [("DMF", "RDMF", "AIR", 3, 5, "cpu")] * len(printed["rows"])
    assert "device cpu; median of 3 rounds of 5 steps" in report.protocol
    for row, seconds in zip(report.rows, printed["rows"], strict=True):
        assert (row["m"], row["L"]) == (seconds["size"], seconds["depth"])
        assert row["DMF, s for 10,000 steps"] == pytest.approx(10)
        assert (row["RDMF/DMF"], row["AIR/DMF"]) == (2, 1.83)
        for name in ("RDMF", "AIR"):
            assert row[f"{name}/DMF, published"] == seconds[name] / seconds["DMF"]
            assert row[f"{name}, published"] == seconds[name]
    # As printed in the paper, to two decimals.
    assert [round(row["AIR/DMF, published"], 2) for row in report.rows[:3]] == [1.89, 1.81, 1.69]
    smaller = sum(row["AIR/DMF, published"] >= 1.83 for row in report.rows)
    assert report.notes == [f"AIR/DMF no larger than published in {smaller} of 9 rows", printed["note"]]


def test_the_contenders_differ_in_their_regularization_alone():
    settings = module._SYSTEMS
    assert settings["DMF"]["strengths"] == settings["RDMF"]["strengths"] == (0.0, 0.0)
    assert settings["RDMF"]["tv_strength"] > 0
    assert min(settings["AIR"]["strengths"]) > 0
