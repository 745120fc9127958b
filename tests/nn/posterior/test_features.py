"""Features of the pattern of observed entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from air_recsys.nn.objective import Observations
from air_recsys.nn.pattern import SparsePattern
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.features import pattern_features, projection


def pattern(m=40, n=30, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_array(np.where(rng.random((m, n)) < 0.3, rng.random((m, n)), 0.0))


def positions(matrix):
    matrix = sp.csr_array(matrix)
    matrix.sort_indices()
    return SparsePattern(torch.as_tensor(matrix.indptr), torch.as_tensor(matrix.indices), matrix.shape[1])


def seen(matrix):
    pattern = positions(matrix)
    return OwnEntries.of(Observations(pattern, torch.ones(pattern.columns.numel())))


def found(matrix, n_features=5, seed=0):
    features = pattern_features(seen(matrix), n_features, np.random.default_rng(seed))
    return tuple(side.numpy() for side in features)


def projected(matrix, n_features, side, new):
    """What the projection of a trained pattern makes of the pattern of new rows, or columns."""
    observed = seen(matrix)
    features = pattern_features(observed, n_features, np.random.default_rng(0))
    return projection(observed, features, side)(*positions(new).side(0)).numpy()


def test_both_sides_are_singular_vectors_times_what_stands_out_of_their_squared_values():
    entries = pattern().toarray()
    entries[:, 7] = entries[5] = 0
    entries[3, 7] = entries[5, 2] = 1  # a row and a column that are seen once
    dense = (entries != 0) * 1.0
    assert dense.sum(0).min() == dense.sum(1).min() == 1
    for side, transposed in zip(found(entries), (dense, dense.T), strict=True):
        scaled = np.maximum(transposed.sum(1), 1)[:, None] ** (-1 / 3) * transposed * transposed.sum(0) ** (-1 / 3)
        left, values, _ = np.linalg.svd(scaled)
        squares = values[:6] ** 2
        expected = left[:, :3] * (squares[:3] - 0.9 * squares[5]) / (left[:, :5] * squares[:5]).std(axis=0).mean()
        np.testing.assert_allclose(np.abs(side[:, :3]), np.abs(expected), atol=0.03)
        logarithms = np.log(transposed.sum(1))
        np.testing.assert_allclose(side[:, -2], logarithms - logarithms.mean())


@pytest.mark.parametrize(("n_features", "width"), [(0, 1), (1, 3), (29, 31), (500, 31)])
def test_the_last_feature_is_constant_and_there_are_no_more_than_the_pattern_has(n_features, width):
    for side, size in zip(found(pattern(), n_features), (40, 30), strict=True):
        assert side.shape == (size, width)
        assert np.isfinite(side).all()
        np.testing.assert_array_equal(side[:, -1], 1.0)


def test_the_values_of_entries_do_not_matter_and_rows_with_equal_patterns_have_equal_features():
    matrix = pattern().toarray()
    matrix[7] = 2 * matrix[3]
    for one, two in zip(found(matrix), found(-3 * matrix), strict=True):
        np.testing.assert_array_equal(one, two)
    rows = found(matrix)[0]
    np.testing.assert_allclose(rows[7], rows[3], atol=1e-10)


def test_rows_and_columns_without_entries_are_no_trouble_and_patterns_of_low_rank_leave_features_at_zero():
    matrix = pattern().toarray()
    matrix[2] = matrix[:, 4] = 0
    assert all(np.isfinite(side).all() for side in found(matrix))
    assert all(np.isfinite(side).all() for side in found(np.zeros((3, 1)), 4))
    for side in found(np.ones((12, 9)), 4):
        np.testing.assert_allclose(side[:, 1:4], 0, atol=1e-6)


def test_signs_do_not_depend_on_the_start():
    rows, others = (found(pattern(), 3, seed)[0] for seed in (0, 1))
    assert ((rows * others).sum(axis=0) > 0).all()


# -------------------------------------------------------------------- new rows


@pytest.mark.parametrize("n_features", [1, 5, 29])
def test_the_pattern_of_a_trained_row_projects_onto_its_features(n_features):
    matrix = pattern()
    rows, columns = found(matrix, n_features)
    np.testing.assert_allclose(projected(matrix, n_features, 0, matrix), rows, atol=1e-9)
    # Up to how far the iteration has come.
    np.testing.assert_allclose(projected(matrix, n_features, 1, matrix.T), columns, atol=0.05)


def test_features_of_new_rows_follow_from_the_formula_alone_as_in_company():
    matrix, new = pattern().toarray() != 0, pattern(6, seed=1).toarray() != 0
    rows, columns = found(matrix)
    weighted = np.maximum(matrix.sum(0), 1)[:, None] ** (-1 / 3) * columns[:, :-2]
    products = np.maximum(matrix.sum(1), 1)[:, None] ** (-1 / 3) * (matrix @ weighted)
    gains = (products * rows[:, :-2]).sum(axis=0) / (products**2).sum(axis=0)
    degrees = np.maximum(new.sum(1), 1)
    logarithms = np.log(degrees) - np.log(np.maximum(matrix.sum(1), 1)).mean()
    expected = degrees[:, None] ** (-1 / 3) * (new @ (weighted * gains))
    expected = np.column_stack([expected, logarithms, np.ones(6)])
    np.testing.assert_allclose(projected(matrix, 5, 0, new), expected, atol=1e-12)
    np.testing.assert_allclose(projected(matrix, 5, 0, new[[2]])[0], expected[2], atol=1e-12)
    assert np.isfinite(projected(matrix, 5, 0, np.zeros((2, 30)))).all()
