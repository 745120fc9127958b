"""Processes over pairs and over rows: equal to dense solves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr

from air_recsys.nn.kronecker import (
    PairProcess,
    RowErrors,
    RowRegression,
    mended,
    profiles,
    squared_distances,
    with_unit_diagonal,
)

RNG = np.random.default_rng(0)
NOISES = [4.0, 0.25, 1.0]


def kernel(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, 9))
    return mended(with_unit_diagonal(rows @ rows.T))[0]


ROWS, COLUMNS = kernel(9, 1), kernel(12, 2)
FIRST, SECOND = np.nonzero(RNG.random((9, 12)) < 0.5)
PAIRS = FIRST, SECOND
RESIDUALS = RNG.standard_normal(PAIRS[0].size)


@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2, PAIRS[0].size)])
@pytest.mark.parametrize("process", [PairProcess(ROWS, COLUMNS), PairProcess(None, COLUMNS), PairProcess(ROWS, None)])
def test_all_noises_at_once_equal_dense_solves(process: PairProcess, weights: np.ndarray | None) -> None:
    rows, columns = (np.eye(n) if each is None else np.asarray(each) for each, n in zip(process, (9, 12), strict=True))
    own = rows[np.ix_(PAIRS[0], PAIRS[0])] * columns[np.ix_(PAIRS[1], PAIRS[1])]
    found = process.coefficients((9, 12), PAIRS, RESIDUALS, NOISES, weights)
    for noise, coefficients in zip(NOISES, found, strict=True):
        of_noise = np.diag(noise / (np.ones(RESIDUALS.size) if weights is None else weights))
        expected = np.zeros((9, 12))
        expected[PAIRS] = np.linalg.solve(own + of_noise, RESIDUALS)
        np.testing.assert_allclose(coefficients, expected, atol=1e-5)
        np.testing.assert_allclose(process.of(coefficients), rows @ expected @ columns, atol=1e-5)


def test_a_residual_without_weight_says_nothing() -> None:
    weights = np.ones(RESIDUALS.size)
    weights[3] = 0
    some = np.arange(RESIDUALS.size) != 3
    process, shape = PairProcess(ROWS, COLUMNS), (9, 12)
    found = process.coefficients(shape, PAIRS, RESIDUALS, [1.0], weights)
    without = process.coefficients(shape, (PAIRS[0][some], PAIRS[1][some]), RESIDUALS[some], [1.0])
    np.testing.assert_allclose(found, without, atol=1e-5)


def test_no_residuals_no_process() -> None:
    found = PairProcess(ROWS, COLUMNS).coefficients((9, 12), PAIRS, np.zeros(RESIDUALS.size), NOISES)
    assert not found.any()


@pytest.mark.parametrize("intercept", [False, True])
def test_a_left_out_row_is_as_if_it_had_no_values(intercept: bool) -> None:
    values = RNG.standard_normal((9, 4))
    whole = RowRegression.of(ROWS, 0.5, intercept=intercept).left_out(values)
    for row in range(9):
        others = np.delete(np.arange(9), row)
        without = RowRegression.of(ROWS[np.ix_(others, others)], 0.5, intercept=intercept)
        predicted = without.of_new(ROWS[row : row + 1, others], values[others])
        np.testing.assert_allclose(values[row] - whole[row], predicted[0], atol=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_left_out_row_says_nothing_in_the_profiles_of_others(intercept: bool) -> None:
    values, lengths = RNG.standard_normal((9, 4)), np.linalg.norm(ROWS, axis=1)
    whole = RowRegression.of(ROWS, 0.5, intercept=intercept, by_profiles=True).left_out(values)
    for row in range(9):
        others = np.delete(np.arange(9), row)
        products = ROWS[:, others] @ ROWS[others] / np.outer(lengths, lengths)  # over the others alone
        near = products[row, others] + ROWS[row, others] / (lengths[row] * lengths[others])  # and over itself
        without = RowRegression.of(products[np.ix_(others, others)], 0.5, intercept=intercept)
        np.testing.assert_allclose(values[row] - whole[row], without.of_new(near[None], values[others])[0], atol=1e-8)


def test_a_row_has_the_profile_of_one_that_is_known_and_the_same() -> None:
    found = profiles(ROWS)
    np.testing.assert_allclose(found.diagonal(), 1)
    np.testing.assert_allclose(found, found.T)
    near = profiles(ROWS[:8, :8], ROWS[8:, :8])
    joint = np.hstack([ROWS[8:, :8], [[1]]]), np.hstack([ROWS[:8, :8], ROWS[:8, 8:]])
    lengths = [np.linalg.norm(each, axis=1) for each in (joint[0], ROWS[:8, :8])]
    expected = joint[0] @ joint[1].T / np.outer(*lengths)
    np.testing.assert_allclose(near, expected)


def test_an_intercept_takes_a_constant_for_itself() -> None:
    found = RowRegression.of(ROWS[:8, :8], 0.5, intercept=True).of_new(ROWS[8:, :8], np.full((8, 2), 7.0))
    np.testing.assert_allclose(found, 7)


def test_what_is_positive_semidefinite_stays_to_the_bit() -> None:
    found, share = mended(ROWS)
    assert share == 0
    np.testing.assert_array_equal(mended(found)[0], found)
    ones, share = mended(np.ones((5, 5)))
    assert share == 0
    np.testing.assert_array_equal(ones, 1)


def test_the_rest_is_mended() -> None:
    matrix = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1.0]])
    found, share = mended(matrix)
    assert 0 < share < 0.2
    assert np.linalg.eigvalsh(found)[0] > -1e-12
    np.testing.assert_allclose(found.diagonal(), 1)


def test_similarities_without_a_diagonal_get_the_largest_one() -> None:
    np.testing.assert_allclose(with_unit_diagonal(np.array([[0, 2.0], [2.0, 0]])), np.ones((2, 2)))
    np.testing.assert_allclose(with_unit_diagonal(np.zeros((2, 2))), np.eye(2))


def test_squared_distances() -> None:
    factors = np.array([[0, 0], [3, 4], [3, 0]], dtype=np.float32) + 1e3
    np.testing.assert_allclose(squared_distances(factors), [[0, 25, 9], [25, 0, 16], [9, 16, 0]], atol=1e-6)


def test_a_noise_that_is_solved_long_before_the_smallest_stays_solved() -> None:
    rng = np.random.default_rng(4)
    root = rng.standard_normal((60, 60))
    process, rows = PairProcess(root @ root.T, None), np.arange(60)
    residuals, noises = rng.standard_normal(60), [1e-3, 1e9]
    found = process.coefficients((60, 1), (rows, np.zeros(60, dtype=int)), residuals, noises)
    expected = np.linalg.solve(root @ root.T + 1e9 * np.eye(60), residuals)
    np.testing.assert_allclose(found[1, :, 0], expected, rtol=1e-6)
    assert np.isfinite(found).all()


def test_limits_of_a_row_are_where_their_likelihood_is_largest() -> None:
    errors, places, signs = RowErrors(COLUMNS, 0.3), np.array([1, 4, 6]), np.array([0, -1, 1])
    given = np.array([0.5, -1.0, 0.8])
    values, weights = errors.of_limits(places, given, np.ones(3), signs)
    assert (values[0], weights[0]) == (0.5, 1.0)
    assert (weights[1:] < 1).all()
    found = errors.given(places, values, weights)[0][places]

    def lost(row: np.ndarray) -> float:
        apart = (row - given) / np.sqrt(errors.noise)
        likelihood = -np.square(apart[0]) / 2 + log_ndtr(signs[1:] * apart[1:]).sum()
        return float(row @ np.linalg.solve(COLUMNS[np.ix_(places, places)], row) / 2 - likelihood)

    assert all(lost(found) < lost(found + step) for step in 0.01 * np.vstack([np.eye(3), -np.eye(3)]))


def test_deviations_hold_measured_values_of_rows_with_any_number_of_them() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 12)) @ np.linalg.cholesky(COLUMNS + 1e-9 * np.eye(12)).T
    rows = rows + 0.3 * rng.standard_normal((60, 12))
    seen = np.ones(rows.shape, dtype=bool)
    errors = RowErrors.of(rows[:40], seen[:40], seen[:40], COLUMNS)
    for number in (0, 3, 6):
        given = [errors.given(np.arange(number), row[:number]) for row in rows[40:]]
        inside = [abs(row - mean) < 1.645 * each for row, (mean, each) in zip(rows[40:], given, strict=True)]
        assert np.mean([each[number:] for each in inside]) == pytest.approx(0.9, abs=0.06)
