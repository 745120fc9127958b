"""Processes of rows over a graph of the columns: their equations solved densely, and the laws of the kernel."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys.nn.residuals import RowProcesses, ranges, reduced, solved_by_rows
from air_recsys.nn.row_kernels import Lasting, wave_features


def graph_of(n: int = 12, seed: int = 0) -> sp.csr_array:
    """A symmetric graph whose last column is isolated."""
    dense = np.random.default_rng(seed).random((n, n)) * (np.random.default_rng(seed + 1).random((n, n)) < 0.3)
    dense = np.triu(dense, 1)
    dense[:, -1] = 0
    return sp.csr_array(dense + dense.T)


def residuals_of(m: int = 9, n: int = 12, seed: int = 2) -> sp.csr_array:
    """Residuals of rows, of which the first has none and the second all."""
    rng = np.random.default_rng(seed)
    observed = rng.random((m, n)) < 0.5
    observed[:2] = [[False], [True]]
    row, column = np.nonzero(observed)
    return sp.csr_array((rng.standard_normal(row.size), (row, column)), shape=(m, n))


def kernel_of(processes: RowProcesses) -> np.ndarray:
    return (np.eye(processes.edges.shape[0]) + processes.edges.toarray()) / 2


def solved_densely(
    processes: RowProcesses, residuals: sp.csr_array, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """a and f of each row, by dense equations."""
    kernel, t = kernel_of(processes), processes.strength
    coefficients, found = np.zeros(residuals.shape), np.zeros(residuals.shape)
    for row in range(residuals.shape[0]):
        entries = slice(*residuals.indptr[row : row + 2])
        own, values = residuals.indices[entries], residuals.data[entries]
        matrix = np.diag(1 / weights[entries]) + t * kernel[np.ix_(own, own)]
        coefficients[row, own] = np.linalg.solve(matrix, values)
        found[row] = t * (kernel - np.diag(kernel.diagonal())) @ coefficients[row]
    return coefficients, found


@pytest.mark.parametrize("strength", [0.0, 0.5, 8.0, 200.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_and_processes_are_those_of_dense_equations(strength: float, weighted: bool) -> None:
    processes, residuals = RowProcesses.of_graph(graph_of(), strength), residuals_of()
    weights = np.random.default_rng(3).uniform(0.2, 5, residuals.nnz) if weighted else np.ones(residuals.nnz)
    expected, everywhere = solved_densely(processes, residuals, weights)
    found = processes.coefficients(residuals, weights if weighted else None)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-6)
    np.testing.assert_allclose(processes.of(found), everywhere, atol=1e-6)
    rows, columns = (each.ravel() for each in np.indices(residuals.shape))
    np.testing.assert_allclose(processes.at(found, rows, columns), processes.of(found).ravel(), atol=1e-12)


def test_the_kernel_is_a_low_pass_with_eigenvalues_from_0_to_1() -> None:
    values = np.linalg.eigvalsh(kernel_of(RowProcesses.of_graph(graph_of(), 1.0)))
    assert values.min() >= -1e-12
    assert values.max() == pytest.approx(1)


def test_a_value_of_weight_0_says_nothing() -> None:
    processes, residuals = RowProcesses.of_graph(graph_of(), 8.0), residuals_of()
    weights = np.ones(residuals.nnz)
    weights[3] = 0.0
    found = processes.coefficients(residuals, weights)
    assert found.data[3] == 0
    without = sp.coo_array(residuals)
    kept = np.arange(residuals.nnz) != 3
    fewer = sp.csr_array((without.data[kept], (without.row[kept], without.col[kept])), shape=residuals.shape)
    np.testing.assert_allclose(found.toarray(), processes.coefficients(fewer).toarray(), atol=1e-7)


def test_blocks_of_different_spectra_are_solved_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    root = 10 * rng.standard_normal((4, 4))
    matrix = np.block([[np.eye(4) + root @ root.T, np.zeros((4, 2))], [np.zeros((2, 4)), np.eye(2)]])
    right = np.append(rng.standard_normal(4), [0.0, 0.0])
    found = solved_by_rows(lambda x: matrix @ x, right, np.array([4, 2, 0]))
    np.testing.assert_allclose(found, np.linalg.solve(matrix, right), atol=1e-6)


def all_parts(residuals: sp.csr_array) -> tuple[RowProcesses, np.ndarray]:
    """Processes with features and what lasts, and the times of the residuals, some of them equal."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((residuals.shape[1], 3))
    processes = replace(RowProcesses.of_graph(graph_of(), 8.0), features=features, lasting=Lasting(2.0, 3.0))
    return processes, rng.integers(0, 9, residuals.nnz).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_and_features_have_their_part_of_dense_equations(weighted: bool) -> None:
    residuals = residuals_of()
    processes, times = all_parts(residuals)
    weights = np.random.default_rng(3).uniform(0.2, 5, residuals.nnz) if weighted else np.ones(residuals.nnz)
    assert processes.features is not None
    of_columns = processes.strength * kernel_of(processes) + processes.features @ processes.features.T
    found = processes.coefficients(residuals, weights if weighted else None, times)
    asked = np.indices(residuals.shape).reshape(2, -1)
    moments = np.random.default_rng(6).uniform(-5, 15, asked.shape[1])
    at = processes.at(found, *asked, (times, moments)).reshape(residuals.shape)
    steady, everywhere = processes.at(found, *asked).reshape(residuals.shape), processes.of(found)
    np.testing.assert_allclose(everywhere, steady, atol=1e-10)
    for row in range(residuals.shape[0]):
        entries = slice(*residuals.indptr[row : row + 2])
        own, when = residuals.indices[entries], times[entries]
        lasting = 2.0 * np.exp(-np.abs(when[:, None] - when) / 3.0)
        matrix = np.diag(1 / weights[entries]) + of_columns[np.ix_(own, own)] + lasting
        solved = np.linalg.solve(matrix, residuals.data[entries])
        np.testing.assert_allclose(found.data[entries], solved, atol=1e-6)
        of_others = of_columns - processes.strength / 2 * np.eye(residuals.shape[1])
        asked_at = moments.reshape(residuals.shape)[row][:, None]
        np.testing.assert_allclose(steady[row], of_others[:, own] @ solved, atol=1e-5)
        lasts = 2.0 * np.exp(-np.abs(asked_at - when) / 3.0)
        np.testing.assert_allclose(at[row], (of_others[:, own] + lasts) @ solved, atol=1e-5)
        shares = [processes.between(column, own) @ found.data[entries] for column in range(residuals.shape[1])]
        np.testing.assert_allclose(shares, steady[row], atol=1e-10)


def test_with_all_parts_a_row_has_the_same_bits_alone_and_beside_others() -> None:
    residuals = residuals_of()
    processes, times = all_parts(residuals)
    whole = processes.coefficients(residuals, None, times).toarray()
    for row in range(residuals.shape[0]):
        own = times[slice(*residuals.indptr[row : row + 2])]
        alone = processes.coefficients(sp.csr_array(residuals[[row]]), None, own)
        assert (alone.toarray()[0] == whole[row]).all()


def test_stretches_of_numbers_and_their_sums() -> None:
    assert ranges(np.array([3, 3, 0]), np.array([0, 2, 1])).tolist() == [3, 4, 0]
    assert reduced(np.add, np.arange(4.0), np.array([0, 3, 0, 1, 0])).tolist() == [0, 3, 0, 3, 0]
    assert reduced(np.add, np.zeros(0), np.zeros(3, np.int64)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("weighted", [False, True])
def test_features_alone_have_the_coefficients_of_dense_equations(weighted: bool) -> None:
    features, residuals = np.random.default_rng(5).standard_normal((12, 3)), residuals_of()
    weights = np.random.default_rng(3).uniform(0, 5, residuals.nnz).round() if weighted else np.ones(residuals.nnz)
    found = RowProcesses.of_features(features).coefficients(residuals, weights if weighted else None)
    for row in range(residuals.shape[0]):
        entries = slice(*residuals.indptr[row : row + 2])
        kernel, roots = features[residuals.indices[entries]], np.sqrt(weights[entries])
        matrix = np.eye(roots.size) + np.outer(roots, roots) * (kernel @ kernel.T)
        expected = roots * np.linalg.solve(matrix, roots * residuals.data[entries])
        np.testing.assert_allclose(found[[row]].toarray()[0, residuals.indices[entries]], expected, atol=1e-9)


def test_products_of_waves_are_near_their_kernel_and_depend_on_each_pair_alone() -> None:
    known = np.random.default_rng(6).standard_normal((40, 5))
    squares = np.square(known[:, None] - known).sum(axis=2)
    waves = wave_features(known, 4.0)
    products = waves @ waves.T
    np.testing.assert_allclose(products.diagonal(), 1)
    assert np.abs(products - np.exp(-squares / 4.0)).mean() < 0.1
    assert np.linalg.eigvalsh(products).min() > -1e-12
    order = np.random.default_rng(7).permutation(40)
    np.testing.assert_array_equal(wave_features(known[order], 4.0), waves[order])
    shifted = wave_features(known + 3.0, 4.0)
    np.testing.assert_allclose(shifted @ shifted.T, products, atol=1e-9)
    np.testing.assert_allclose(wave_features(10 * known, 400.0), waves, atol=1e-9)
