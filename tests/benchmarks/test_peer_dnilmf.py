"""DNILMF against its equations, pair by pair, and its steps against those of its program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy.peers.dnilmf import (
    Objective,
    dnilmf_scores,
    from_neighbors,
    fused_network,
    interaction_network,
)

SIZE = 3
ALPHA, BETA, GAMMA, C, LAMBDAS = 0.5, 0.3, 0.2, 4.0, (2.0, 0.5)
SETTINGS: dict[str, Any] = {
    "n_factors": 3,
    "importance": C,
    "drug_share": BETA,
    "target_share": GAMMA,
    "drug_decay": LAMBDAS[0],
    "target_decay": LAMBDAS[1],
    "n_neighbors": SIZE,
}


def case() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first drug and the last target have no interaction; no similarity is semi-definite."""
    rng = np.random.default_rng(0)
    pairs = (rng.random((8, 7)) < 0.4).astype(float)
    pairs[0], pairs[:, -1] = 0, 0
    similarities = [(each + each.T) / 2 for each in (rng.random((8, 8)), rng.random((7, 7)))]
    for each in similarities:
        np.fill_diagonal(each, 0.3)
    return pairs, similarities[0], similarities[1]


def score(u: np.ndarray, v: np.ndarray, drugs: np.ndarray, targets: np.ndarray, i: int, j: int) -> float:
    """The logit of a pair: its own factors, those of the drug's neighbours, those of the target's."""
    near = sum(drugs[i, k] * (u[k] @ v[j]) for k in range(len(u)))
    around = sum(targets[k, j] * (u[i] @ v[k]) for k in range(len(v)))
    return ALPHA * (u[i] @ v[j]) + BETA * near + GAMMA * around


def likelihood(pairs: np.ndarray, u: np.ndarray, v: np.ndarray, drugs: np.ndarray, targets: np.ndarray) -> float:
    found = -(LAMBDAS[0] * np.sum(u**2) + LAMBDAS[1] * np.sum(v**2)) / 2
    for i, j in np.ndindex(*pairs.shape):
        logit = score(u, v, drugs, targets, i, j)
        found += C * pairs[i, j] * logit - (1 + (C - 1) * pairs[i, j]) * math.log1p(math.exp(logit))
    return float(found)


def nearest_mean(rows: np.ndarray, similarity: np.ndarray, row: int, known: list[int]) -> np.ndarray:
    nearest = sorted(known, key=lambda other: -similarity[row, other])[:SIZE]
    total = sum(similarity[row, other] for other in nearest)
    return np.asarray(sum(similarity[row, other] * rows[other] for other in nearest) / total)


def network(rows: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """The steps of the program: tenths on the diagonal, profiles of empty rows, kernel, fusion, no diagonal."""
    while np.linalg.eigvalsh(similarity)[0] < 0:
        similarity = similarity + 0.1 * np.eye(len(similarity))
    known = [i for i, row in enumerate(rows) if row.any()]
    profiles = [row if row.any() else nearest_mean(rows, similarity, i, known) for i, row in enumerate(rows)]
    width = sum(map(sum, profiles)) / len(rows)
    kernel = np.array([[math.exp(-sum((a - b) ** 2) / width) for b in profiles] for a in profiles])
    fused = fused_network(kernel, similarity, 3, 2)
    return fused - np.diag(np.diag(fused))


def program(pairs: np.ndarray, drugs: np.ndarray, targets: np.ndarray, n_epochs: int) -> np.ndarray:
    """What the program does: the slopes of the paper by sums over pairs, steps of AdaGrad, neighbours, scores."""
    rng = np.random.RandomState(0)
    u, v = rng.normal(size=(len(drugs), 3)) / 3, rng.normal(size=(len(targets), 3)) / 3
    sums = np.zeros_like(u), np.zeros_like(v)
    for _ in range(n_epochs):
        slope = slopes(pairs, u, v, drugs, targets)[0]
        sums[0][:] += slope**2
        u = u + slope / np.sqrt(sums[0])
        slope = slopes(pairs, u, v, drugs, targets)[1]
        sums[1][:] += slope**2
        v = v + slope / np.sqrt(sums[1])
    u[0] = nearest_mean(u, drugs, 0, list(range(1, len(u))))
    v[-1] = nearest_mean(v, targets, -1, list(range(len(v) - 1)))
    logits = [score(u, v, drugs, targets, i, j) for i, j in np.ndindex(*pairs.shape)]
    return np.array([1 / (1 + math.exp(-logit)) for logit in logits]).reshape(pairs.shape)


def slopes(
    pairs: np.ndarray, u: np.ndarray, v: np.ndarray, drugs: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    of_drugs, of_targets = -LAMBDAS[0] * u, -LAMBDAS[1] * v
    for i, j in np.ndindex(*pairs.shape):
        share = 1 / (1 + math.exp(-score(u, v, drugs, targets, i, j)))
        rest = C * pairs[i, j] - (1 + (C - 1) * pairs[i, j]) * share
        of_drugs[i] += rest * (ALPHA * v[j] + GAMMA * sum(targets[k, j] * v[k] for k in range(len(v))))
        of_targets[j] += rest * (ALPHA * u[i] + BETA * sum(drugs[i, k] * u[k] for k in range(len(u))))
        for k in range(len(u)):
            of_drugs[k] += rest * BETA * drugs[i, k] * v[j]
        for k in range(len(v)):
            of_targets[k] += rest * GAMMA * targets[k, j] * u[i]
    return of_drugs, of_targets


def objective(pairs: np.ndarray, drugs: np.ndarray, targets: np.ndarray) -> Objective:
    return Objective(pairs, ALPHA * np.eye(len(drugs)) + BETA * drugs, GAMMA * targets, C, LAMBDAS)


def test_networks_are_those_of_the_program() -> None:
    pairs, drugs, targets = case()
    np.testing.assert_allclose(interaction_network(pairs, drugs, SIZE), network(pairs, drugs), atol=1e-12)
    np.testing.assert_allclose(interaction_network(pairs.T, targets, SIZE), network(pairs.T, targets), atol=1e-12)


def test_the_objective_is_that_of_the_paper_and_the_slopes_are_its_derivatives() -> None:
    pairs, drugs, targets = case()
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(8, 3)), rng.normal(size=(7, 3))
    model = objective(pairs, drugs, targets)
    assert model.value(u, v) == pytest.approx(likelihood(pairs, u, v, drugs, targets))
    step = np.zeros_like(u)
    step[2, 1] = 1e-5
    change = likelihood(pairs, u + step, v, drugs, targets) - likelihood(pairs, u - step, v, drugs, targets)
    assert model.slope_of_drugs(u, v)[2, 1] == pytest.approx(change / 2e-5, rel=1e-5)
    step = np.zeros_like(v)
    step[4, 0] = 1e-5
    change = likelihood(pairs, u, v + step, drugs, targets) - likelihood(pairs, u, v - step, drugs, targets)
    assert model.slope_of_targets(u, v)[4, 0] == pytest.approx(change / 2e-5, rel=1e-5)
    for found, expected in zip(
        (model.slope_of_drugs(u, v), model.slope_of_targets(u, v)), slopes(pairs, u, v, drugs, targets), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("n_epochs", [1, 6])
def test_scores_are_those_of_the_program(n_epochs: int) -> None:
    pairs, drugs, targets = case()
    expected = program(pairs, network(pairs, drugs), network(pairs.T, targets), n_epochs)
    values = np.where(np.arange(8)[:, None] == 0, np.nan, pairs)
    np.testing.assert_allclose(
        dnilmf_scores(values, drugs, targets, **SETTINGS, n_epochs=n_epochs), expected, atol=1e-8
    )


def test_steps_end_where_the_likelihood_hardly_grows() -> None:
    pairs, drugs, targets = case()
    scores = [dnilmf_scores(pairs, drugs, targets, **SETTINGS, n_epochs=n) for n in (300, 10_000)]
    np.testing.assert_array_equal(scores[0], scores[1])


def test_rows_unlike_all_known_ones_stay_and_equals_are_neighbors_together() -> None:
    rows, known = np.arange(10.0).reshape(5, 2), np.array([True, True, True, False, False])
    similarity = np.zeros((5, 5))
    similarity[3, :3] = 0.9, 0.4, 0.4
    filled = from_neighbors(rows, known, similarity, 1)
    np.testing.assert_array_equal(filled[[0, 1, 2, 4]], rows[[0, 1, 2, 4]])
    np.testing.assert_array_equal(filled[3], rows[0])
    np.testing.assert_allclose(
        from_neighbors(rows, known, similarity, 2)[3], (0.9 * rows[0] + 0.8 * rows[1:3].mean(0)) / 1.7
    )
