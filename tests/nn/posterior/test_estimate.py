"""What estimates make of their sweeps, against the sweeps themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from posterior_cases import constant, drawn, observed

from air_recsys.nn.posterior.estimate import LangevinEstimate, RunningMean, VariationalEstimate
from air_recsys.nn.posterior.exchange import OwnEntries
from air_recsys.nn.posterior.posterior import Posterior


class Sweep(NamedTuple):
    before: Any  # columns
    drawn: list[Any]
    means: list[Any]
    variance: float
    scales: list[Any]
    priors: list[Any]  # W of both sides, S^-1 of both


def estimate_of(kind, n_sweeps, m=20, n=15, dtype=torch.float64):
    entries = observed(drawn(m=m, n=n, density=0.5), dtype)
    state = Posterior(
        OwnEntries.of(entries), constant(entries), 2, np.random.default_rng(0), sample=kind is LangevinEstimate
    )
    return kind(state, n_sweeps), state


def watched(n_sweeps, times, **options):
    """A chain after some of its sweeps, and what those were."""
    chain, state = estimate_of(LangevinEstimate, n_sweeps, **options)
    sweeps = []
    for _ in range(times):
        before = state.sides[1].mean
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


# -------------------------------------------------------------------- variational


def test_the_spread_of_the_approximation_is_that_of_its_gaussians():
    estimate, state = estimate_of(VariationalEstimate, 3)
    for _ in range(3):
        estimate.sweep()
    found, noise = estimate.uncertainty(), state.noise
    assert found.noise == noise.variance
    for side, (of_entries, mean, triangles) in enumerate(
        (
            (found.of_rows, found.rows, found.row_covariances),
            (found.of_columns, found.columns, found.column_covariances),
        )
    ):
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
    tensors = [
        *estimate.scores(),
        *(part for part in rest if isinstance(part, torch.Tensor)),
        *estimate.uncertainty().priors,
    ]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}


# -------------------------------------------------------------------- langevin


def test_a_chain_that_keeps_nothing_yet_has_the_scores_of_its_last_draw():
    chain, sweeps = watched(10, 2)
    assert not chain.ready
    torch.testing.assert_close(matrix(chain), product(*sweeps[-1].drawn))


@pytest.mark.parametrize("kept", [1, 2])
def test_scores_are_the_mean_of_both_halves_of_each_sweep_that_is_kept(kept):
    chain, sweeps = watched(10, 2 + kept)
    pairs = [
        pair for it in sweeps[2:] for pair in ((it.means[0], it.before), (it.drawn[0], it.means[1]))
    ]  # of rank 4 together, so that the sketch is exact
    expected = torch.stack([product(*pair) for pair in pairs]).mean(dim=0)
    torch.testing.assert_close(matrix(chain), expected)
    _, _, rows, columns = chain.scores()
    torch.testing.assert_close(rows, torch.stack([left[:, -1] for left, _ in pairs]).mean(dim=0))
    torch.testing.assert_close(columns, torch.stack([right[:, -1] for _, right in pairs]).mean(dim=0))


def test_the_scores_of_a_chain_have_five_times_the_rank_of_its_factors():
    left, right, _, _ = watched(10, 9)[0].scores()
    assert left.shape == (20, 10)
    assert right.shape == (15, 10)


def test_the_noise_is_the_mean_over_the_sweeps_that_are_kept():
    chain, sweeps = watched(10, 6)
    found = chain.uncertainty()
    assert found.noise == pytest.approx(np.mean([it.variance for it in sweeps[2:]]))
    for side, of_entries in enumerate((found.of_rows, found.of_columns)):
        expected = torch.stack([1 / it.scales[side] for it in sweeps[2:]]).mean(dim=0)
        torch.testing.assert_close(of_entries, expected)
    assert found.row_covariances is None
    assert found.column_covariances is None


@pytest.mark.parametrize(("n_sweeps", "first", "every"), [(4, 0, 1), (10, 2, 1), (98, 19, 3), (99, 19, 4)])
def test_about_twenty_draws_are_kept_at_equal_distances(n_sweeps, first, every):
    chain, sweeps = watched(n_sweeps, n_sweeps, m=6, n=5)
    kept, found = sweeps[first::every], chain.uncertainty()
    for side, draws in enumerate((found.rows, found.columns)):
        torch.testing.assert_close(draws, torch.stack([it.drawn[side] for it in kept], dim=1))
    for place, draws in enumerate(found.priors):
        torch.testing.assert_close(draws, torch.stack([it.priors[place] for it in kept]))


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
