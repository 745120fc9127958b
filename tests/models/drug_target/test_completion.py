"""Laws of the completion under learned graphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.models.drug_target.completion import affinity, complete, spectrum


@pytest.fixture
def values() -> np.ndarray:
    return (np.random.default_rng(0).random((7, 5)) < 0.4).astype(float)


def symmetric(n: int, seed: int) -> torch.Tensor:
    points = np.random.default_rng(seed).random((n, 3))
    return affinity(torch.from_numpy(points), None, 0.0)


def smooth(values: np.ndarray, drugs: torch.Tensor, targets: torch.Tensor, noise: float) -> torch.Tensor:
    return spectrum(drugs, targets, noise).smooth(torch.from_numpy(values))


def test_smoothing_is_the_minimum_of_its_energy(values: np.ndarray) -> None:
    drugs, targets, noise = symmetric(7, 1), symmetric(5, 2), 0.3
    found = smooth(values, drugs, targets, noise).ravel()
    kernel = np.kron(drugs.numpy(), targets.numpy())
    expected = kernel @ np.linalg.solve(kernel + noise * np.eye(35), values.ravel())
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_smoothing_without_noise_keeps_what_is_recorded(values: np.ndarray) -> None:
    found = smooth(values, symmetric(7, 1), symmetric(5, 2), 1e-12)
    np.testing.assert_allclose(found, values, atol=1e-5)


def test_affinities_are_symmetric_with_unit_diagonal_and_at_most_one(values: np.ndarray) -> None:
    for weight in (0.0, 0.5, 1.0):
        graph = affinity(torch.from_numpy(values), symmetric(7, 3), weight).numpy()
        np.testing.assert_allclose(graph, graph.T)
        np.testing.assert_allclose(np.diag(graph), 1)
        assert 0 <= graph.min() <= graph.max() <= 1 + 1e-12


def test_a_share_of_one_leaves_the_similarity_alone(values: np.ndarray) -> None:
    similarity = symmetric(7, 3)
    np.testing.assert_array_equal(affinity(torch.from_numpy(values), similarity, 1.0), similarity)


def test_values_that_are_not_recorded_do_not_matter(values: np.ndarray) -> None:
    weights = (np.random.default_rng(1).random(values.shape) < 0.8).astype(float)
    other = np.where(weights > 0, values, 1 - values)
    np.testing.assert_array_equal(complete(values, weights).scores, complete(other, weights).scores)


def test_recorded_values_are_kept_and_missing_ones_stay_in_range(values: np.ndarray) -> None:
    weights = (np.random.default_rng(1).random(values.shape) < 0.8).astype(float)
    filled = complete(values, weights).filled.numpy()
    np.testing.assert_array_equal(filled[weights == 1], values[weights == 1])
    assert 0 <= filled.min() <= filled.max() <= 1


def test_half_a_weight_lies_between_recorded_and_completed(values: np.ndarray) -> None:
    weights = np.ones_like(values)
    weights[0] = 0.5
    found = complete(values, weights, n_rounds=1)
    expected = (values[0] + found.scores[0].clamp(0, 1).numpy()) / 2
    # The first round starts from the weighted record.
    np.testing.assert_allclose(found.filled[0], expected)


def test_rows_permute_with_their_scores(values: np.ndarray) -> None:
    order = np.random.default_rng(2).permutation(7)
    similarity, weights = symmetric(7, 3).numpy(), np.ones_like(values)
    weights[1, 2] = weights[3, 3] = 0
    found = complete(values, weights, (similarity, None)).scores
    permuted = complete(values[order], weights[order], (similarity[np.ix_(order, order)], None)).scores
    np.testing.assert_allclose(permuted, found[order], atol=1e-10)


def test_the_transpose_has_transposed_scores(values: np.ndarray) -> None:
    weights = np.ones_like(values)
    weights[0, 0] = 0
    found, other = complete(values, weights).scores, complete(values.T, weights.T).scores
    np.testing.assert_allclose(found, other.T, atol=1e-10)


def test_further_rounds_change_nothing_where_nothing_is_missing(values: np.ndarray) -> None:
    once, often = (complete(values, np.ones_like(values), n_rounds=n) for n in (1, 10))
    np.testing.assert_array_equal(once.scores, often.scores)


def test_single_precision_is_kept_and_close(values: np.ndarray) -> None:
    weights = np.ones_like(values)
    weights[0, 0] = 0
    single = complete(values.astype(np.float32), weights.astype(np.float32)).scores
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, complete(values, weights).scores, atol=1e-4)
