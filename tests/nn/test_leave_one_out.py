"""Weights by errors on entries that are left out: the closed form is that of models without each entry."""

import numpy as np
import pytest

from air_recsys.nn.leave_one_out import LeftOut, weighed


def a_row(seed: int, n: int = 8) -> tuple[LeftOut, np.ndarray, np.ndarray]:
    """What a Gaussian process with the covariance K, and noise 1, leaves of values; these; and K."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, 3)) / 2
    covariance, values = root @ root.T, rng.standard_normal(n)
    influence = covariance @ np.linalg.inv(covariance + np.eye(n))
    kernel = np.exp(-np.abs(np.arange(n)[:, None] - np.arange(n)))
    return LeftOut(1.5 * np.eye(n), kernel[None], influence, values - influence @ values), values, covariance


@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_errors_are_those_of_models_that_never_saw_the_entry(weight: float) -> None:
    row, values, covariance = a_row(0)
    expected = np.empty(values.size)
    for left in range(values.size):
        others = np.arange(values.size) != left
        of_others = (covariance + np.eye(values.size))[others][:, others]
        told = covariance[:, others] @ np.linalg.solve(of_others, values[others])
        rest = (values - told)[others]
        process = row.base + weight * row.kernels[0]
        carried = process[left, others] @ np.linalg.solve(process[others][:, others], rest)
        expected[left] = values[left] - told[left] - carried
    np.testing.assert_allclose(row.errors(np.array([weight]))[0], expected, atol=1e-10)


def test_slopes_are_those_of_small_changes() -> None:
    row, step = a_row(1)[0], 1e-6
    up, down = (row.errors(np.array([0.3 + each]))[0] for each in (step, -step))
    np.testing.assert_allclose(row.errors(np.array([0.3]))[1][:, 0], (up - down) / (2 * step), atol=1e-6)


def test_a_covariance_that_is_there_is_found_and_another_is_not() -> None:
    rng, n = np.random.default_rng(2), 20
    there, other = np.ones((n, n)), np.diag(np.r_[1.0, np.zeros(n - 1)]) + np.eye(n)[::-1]
    other = other @ other.T
    rows = [
        LeftOut(np.eye(n), np.array([there, other]), np.zeros((n, n)), rng.standard_normal() + rng.standard_normal(n))
        for _ in range(200)
    ]
    found = weighed(rows)
    assert 0.2 < found.weights[0] < 3
    assert found.weights[1] < 0.05
    assert found.gain > 5


def test_without_covariances_there_is_nothing_to_weigh() -> None:
    assert weighed([]).gain == 0
