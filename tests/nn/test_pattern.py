"""`SparsePattern` against dense matrices, empty rows and columns included."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from air_recsys.nn.pattern import SparsePattern, symmetric_graph


def problem(mask, width, dtype):
    """The pattern, values on it, the dense matrix they make, and a left and a right factor."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(mask.shape[0], width, dtype=dtype, generator=generator)
    right = torch.randn(mask.shape[1], width, dtype=dtype, generator=generator)
    values = torch.randn(int(mask.sum()), dtype=dtype, generator=generator)
    matrix = torch.zeros(mask.shape, dtype=dtype)
    matrix[torch.as_tensor(mask)] = values
    stored = sp.csr_array(mask)
    starts, columns = (torch.as_tensor(array.astype(np.int64)) for array in (stored.indptr, stored.indices))
    return SparsePattern(starts, columns, mask.shape[1]), values, matrix, left, right


def close(found, expected):
    tolerance = 1e-5 if expected.dtype == torch.float32 else 1e-13
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@settings(max_examples=40)
@example(np.zeros((1, 1), dtype=bool), 2, torch.float64)
@example(np.zeros((3, 5), dtype=bool), 2, torch.float32)
@given(
    hnp.arrays(np.bool_, st.tuples(st.integers(1, 7), st.integers(1, 7))),
    st.integers(1, 5),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_products_are_those_of_the_dense_matrix_and_arguments_stay_untouched(mask, width, dtype):
    pattern, values, matrix, left, right = problem(mask, width, dtype)
    before = [tensor.clone() for tensor in (values, left, right)]
    sampled = (left @ right.T)[torch.as_tensor(mask)]
    close(pattern.sampled_product(left, right), sampled)
    close(pattern.sampled_product(left, right, minus=values), sampled - values)
    close(pattern.matmul(values, right), matrix @ right)
    close(pattern.transpose_matmul(values, left), matrix.T @ left)
    np.testing.assert_array_equal(pattern.rows, np.nonzero(mask)[0])
    assert all(torch.equal(*pair) for pair in zip(before, (values, left, right), strict=True))


def test_one_pattern_serves_both_precisions():
    pattern, _, _, left, right = problem(np.eye(3, dtype=bool), 2, torch.float64)
    for dtype in (torch.float32, torch.float64, torch.float32):
        found = pattern.sampled_product(left.to(dtype), right.to(dtype))
        assert found.dtype == dtype
        close(found, (left * right).sum(dim=1).to(dtype))


def test_small_patterns_are_held_in_32_bits():
    pattern = SparsePattern(torch.arange(101), torch.arange(100), 100)
    held = [value for value in vars(pattern).values() if isinstance(value, torch.Tensor)]
    assert {value.dtype for value in [*held, pattern.rows]} == {torch.int32}


@pytest.mark.parametrize("k", [1, 2, 4])
def test_an_edge_weighs_what_both_of_its_ends_give(k):
    others = torch.tensor([sorted({(row + step) % 5 for step in range(1, k + 1)}) for row in range(5)])
    halves = torch.rand(5, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = np.zeros((5, 5))
    for row, line in enumerate(others.tolist()):
        for place, other in enumerate(line):
            expected[row, other] += halves[row, place]
            expected[other, row] += halves[row, place]
    np.testing.assert_allclose(symmetric_graph(halves, others).toarray(), expected)
