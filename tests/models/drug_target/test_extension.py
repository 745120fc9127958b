"""Rows of which nothing is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.models.drug_target.completion import _leave_one_out, affinity, extension_weights, softmin_neighbors


@pytest.mark.parametrize("effective", [2.0, 3.0, 5.0])
def test_every_row_has_the_effective_number_of_neighbors(effective: float) -> None:
    weights = softmin_neighbors(np.random.default_rng(0).random((4, 20)), effective)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=1)
    np.testing.assert_allclose(np.exp(entropy), effective, rtol=1e-3)


def test_fewer_neighbors_than_wanted_share_alike() -> None:
    np.testing.assert_allclose(softmin_neighbors(np.array([[0.2, 0.6]])), [[0.5, 0.5]], atol=1e-3)


def test_nearer_rows_weigh_more_and_infinite_ones_nothing() -> None:
    weights = softmin_neighbors(np.array([[0.1, 0.2, 0.3, 0.4, np.inf]]))[0]
    assert (np.diff(weights) < 0).all()
    assert weights[-1] == 0


def test_leaving_one_out_in_closed_form_is_fitting_without_it() -> None:
    rng = np.random.default_rng(0)
    kernel, rows, decay = affinity(torch.from_numpy(rng.random((6, 3))), None, 0.0).numpy(), rng.random((6, 4)), 0.3
    values, vectors = np.linalg.eigh(kernel)
    found = _leave_one_out(values, vectors, decay, rows, vectors.T @ rows)
    for row in range(6):
        rest = np.delete(np.arange(6), row)
        inner = kernel[np.ix_(rest, rest)] + decay * np.eye(5)
        np.testing.assert_allclose(found[row], kernel[row, rest] @ np.linalg.solve(inner, rows[rest]))


def test_an_unknown_row_is_predicted_like_its_twins() -> None:
    rows = np.kron(np.eye(2), np.ones((4, 3)))
    similarity = np.kron(np.eye(2), np.full((4, 4), 0.9)) + 0.1 * np.eye(8)
    known = np.ones(8, dtype=bool)
    known[0] = False
    weights = extension_weights(similarity, known, rows[known], rows[known], np.ones((7, 6), dtype=bool))
    assert weights.shape == (1, 7)
    predicted = (weights @ rows[known])[0]
    assert predicted[:3].min() > 0.8
    assert abs(predicted[3:]).max() < 0.1


def test_one_known_row_is_enough() -> None:
    known = np.array([True, False])
    weights = extension_weights(
        np.array([[1, 0.3], [0.3, 1]]), known, np.ones((1, 2)), np.ones((1, 2)), np.ones((1, 2), dtype=bool)
    )
    np.testing.assert_allclose(weights, [[1.0]])
