"""The mean of products against the stack of them."""

from __future__ import annotations

import pytest
import torch

from air_recsys.nn.posterior.estimate import RunningMean


def products(n_products, rank, m=30, n=20, seed=0):
    generator = torch.Generator().manual_seed(seed)
    normal = {"generator": generator, "dtype": torch.float64}
    return [(torch.randn(m, rank, **normal), torch.randn(n, rank, **normal)) for _ in range(n_products)]


def mean_of(pairs, rank, seed=1):
    mean = RunningMean(30, 20, rank, torch.Generator().manual_seed(seed), pairs[0][0])
    for left, right in pairs:
        mean.add(left, right)
    return mean.factors()


def test_a_mean_of_small_rank_is_exact():
    pairs = products(3, 2)
    exact = sum(left @ right.T for left, right in pairs) / 3
    left, right = mean_of(pairs, 6)
    assert left.shape == (30, 6)
    torch.testing.assert_close(left @ right.T, exact)


def test_a_mean_of_larger_rank_keeps_its_largest_directions():
    (left, right), *small = products(21, 2)
    pairs = [(left + 0.02 * a, right + 0.02 * b) for a, b in small]
    exact = sum(a @ b.T for a, b in pairs) / len(pairs)
    found = torch.matmul(*(side if number == 0 else side.T for number, side in enumerate(mean_of(pairs, 4))))
    assert (found - exact).norm() < 0.02 * exact.norm()


def test_no_more_factors_than_rows_or_columns():
    left, right = mean_of(products(2, 3), 100)
    assert left.shape == (30, 20)
    assert right.shape == (20, 20)


@pytest.mark.parametrize(("m", "n", "rank", "kept"), [(30, 20, 6, 6), (30, 20, 100, 20), (10, 20, 100, 10)])
def test_sketches_have_the_rank_and_no_more_than_the_matrix_has(m, n, rank, kept):
    mean = RunningMean(m, n, rank, torch.Generator().manual_seed(0), torch.zeros(1))
    state = mean.state()
    assert state["_range"].shape == (m, kept)
    assert state["_corange"].shape == (n, min(2 * kept + 1, m))


def test_factors_are_of_the_type_wanted():
    mean = RunningMean(5, 4, 2, torch.Generator().manual_seed(0), torch.zeros(1))
    mean.add(torch.ones(5, 1), torch.ones(4, 1))
    assert [factor.dtype for factor in mean.factors()] == [torch.float32] * 2
