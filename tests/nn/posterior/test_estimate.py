"""What estimates make of their sweeps, against the sweeps themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.nn.posterior.estimate import LangevinEstimate, RunningMean, VariationalEstimate


class Sweep(NamedTuple):
    before: Any  # means of the columns
    drawn: list[Any]
    means: list[Any]
    variance: float
    scales: list[Any]
    priors: list[Any]  # W of both sides, S^-1 of both


def estimate_of(kind, n_sweeps, m=20, n=15, dtype=torch.float64):
    state = posterior(observed(drawn(m=m, n=n, density=0.5), dtype), sample=kind is LangevinEstimate)
    return kind(state, n_sweeps), state


def watched(n_sweeps, times, **options):
    """A chain after some of its sweeps, and what those were."""
    chain, state = estimate_of(LangevinEstimate, n_sweeps, **options)
    sweeps = []
    for _ in range(times):
        before = state.means[1]
        chain.sweep()
        sides, scales = [side.mean for side in state.sides], [scales.clone() for scales in state.noise.scales]
        priors = [prior.weights for prior in state.priors] + [prior.precision for prior in state.priors]
        sweeps.append(Sweep(before, sides, list(state.means), state.noise.variance, scales, priors))
    return chain, sweeps


def product(rows, columns):
    return rows[:, :-1] @ columns[:, :-1].T + rows[:, -1:] + columns[:, -1]


def matrix(estimate):
    left, right, rows, columns = estimate.scores()
    return left @ right.T + rows[:, None] + columns


def test_the_spread_of_the_approximation_is_that_of_its_gaussians():
    estimate, state = estimate_of(VariationalEstimate, 3)
    for _ in range(3):
        estimate.sweep()
    found, noise = estimate.uncertainty(), state.noise
    assert found.noise == noise.variance
    sides = (
        (found.of_rows, found.rows, found.row_covariances),
        (found.of_columns, found.columns, found.column_covariances),
    )
    for side, (of_entries, mean, triangles) in enumerate(sides):
        np.testing.assert_allclose(of_entries * noise.scales[side], 1.0)
        np.testing.assert_array_equal(mean, state.sides[side].mean)
        covariance = state.sides[side].covariance
        assert covariance is not None
        assert triangles is not None
        np.testing.assert_array_equal(triangles, covariance)
        weights, precisions = found.priors[side], found.priors[2 + side]
        np.testing.assert_array_equal(weights[0], state.priors[side].weights)
        np.testing.assert_array_equal(precisions[0], state.priors[side].precision)
        assert len(weights) == len(precisions) == 1


@pytest.mark.parametrize("kind", [VariationalEstimate, LangevinEstimate])
def test_everything_of_a_spread_is_of_the_type_of_the_entries(kind):
    estimate, _ = estimate_of(kind, 2, dtype=torch.float32)
    for _ in range(2):
        estimate.sweep()
    noise, *rest = estimate.uncertainty()
    assert isinstance(noise, float)
    parts = [part for part in rest if isinstance(part, torch.Tensor)]
    tensors = [*parts, *estimate.scores(), *estimate.uncertainty().priors]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


# -------------------------------------------------------------------- draws


def test_a_chain_that_keeps_nothing_yet_has_the_scores_of_its_last_draw():
    chain, sweeps = watched(20, 2)
    assert not chain.ready
    torch.testing.assert_close(matrix(chain), product(*sweeps[-1].drawn))


@pytest.mark.parametrize("kept", [1, 2])
def test_scores_are_the_mean_of_the_means_of_each_sweep_that_is_kept(kept):
    chain, sweeps = watched(20, 2 + kept)
    pairs = [
        pair for it in sweeps[2:] for pair in ((it.means[0], it.before), (it.means[0], it.means[1]))
    ]  # of rank 4 together, so that the sketch is exact
    torch.testing.assert_close(matrix(chain), torch.stack([product(*pair) for pair in pairs]).mean(dim=0))
    left, right, rows, columns = chain.scores()
    assert (left.shape, right.shape) == ((20, 10), (15, 10))  # five times the rank of a draw
    torch.testing.assert_close(rows, torch.stack([left[:, -1] for left, _ in pairs]).mean(dim=0))
    torch.testing.assert_close(columns, torch.stack([right[:, -1] for _, right in pairs]).mean(dim=0))


@pytest.mark.parametrize(("n_sweeps", "first", "every"), [(4, 0, 1), (20, 2, 1), (88, 8, 4), (87, 8, 3)])
def test_the_noise_is_the_mean_and_about_twenty_draws_are_kept_at_equal_distances(n_sweeps, first, every):
    chain, sweeps = watched(n_sweeps, n_sweeps, m=6, n=5)
    counted, kept, found = sweeps[first:], sweeps[first::every], chain.uncertainty()
    assert found.noise == pytest.approx(np.mean([it.variance for it in counted]))
    assert found.row_covariances is found.column_covariances is None
    for side, (of_entries, draws) in enumerate(((found.of_rows, found.rows), (found.of_columns, found.columns))):
        torch.testing.assert_close(of_entries, torch.stack([1 / it.scales[side] for it in counted]).mean(dim=0))
        torch.testing.assert_close(draws, torch.stack([it.drawn[side] for it in kept], dim=1))
    for place, draws in enumerate(found.priors):
        torch.testing.assert_close(draws, torch.stack([it.priors[place] for it in kept]))


# -------------------------------------------------------------------- the mean of many products


def mean_of(pairs, rank):
    mean = RunningMean(30, 20, rank, torch.Generator().manual_seed(1), pairs[0][0])
    for left, right in pairs:
        mean.add(left, right)
    return mean.factors()


def products(n_products):
    normal: dict[str, Any] = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    return [(torch.randn(30, 2, **normal), torch.randn(20, 2, **normal)) for _ in range(n_products)]


def test_a_mean_of_small_rank_is_exact_and_has_no_more_factors_than_rows_or_columns():
    pairs = products(3)
    exact = sum(left @ right.T for left, right in pairs) / 3
    for rank, kept in ((6, 6), (100, 20)):
        left, right = mean_of(pairs, rank)
        assert (left.shape, right.shape) == ((30, kept), (20, kept))
        torch.testing.assert_close(left @ right.T, exact)


def test_a_mean_of_larger_rank_keeps_its_largest_directions():
    (left, right), *small = products(21)
    pairs = [(left + 0.02 * a, right + 0.02 * b) for a, b in small]
    exact = sum(a @ b.T for a, b in pairs) / len(pairs)
    rows, columns = mean_of(pairs, 4)
    assert (rows @ columns.T - exact).norm() < 0.02 * exact.norm()
