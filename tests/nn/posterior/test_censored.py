"""Normal numbers that are cut off: against SciPy, and far out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from air_recsys.nn.posterior.censored import cut_draws, cut_moments


@pytest.mark.parametrize("sign", [1, -1])
def test_moments_are_those_of_scipy(sign: int) -> None:
    means, deviations = np.linspace(-20, 20, 81), np.linspace(0.3, 2, 81)
    ends = (-means / deviations, np.inf) if sign > 0 else (-np.inf, -means / deviations)
    known = (torch.from_numpy(each) for each in (means, deviations, np.zeros(81), np.full(81, float(sign))))
    found = cut_moments(*known)
    arrays = cut_moments(means, deviations, np.zeros(81), np.full(81, float(sign)))
    np.testing.assert_allclose(np.stack(arrays), np.stack(found), rtol=1e-9, atol=1e-12)
    expected = stats.truncnorm(*ends, loc=means, scale=deviations)
    np.testing.assert_allclose(found[0], expected.mean(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found[1], expected.var(), rtol=1e-4, atol=1e-6)


def test_far_beyond_a_limit_numbers_stay_finite_and_on_their_side() -> None:
    means = torch.tensor([-1e4, -60.0, 60.0, 1e4], dtype=torch.float64)
    one, limits = torch.ones_like(means), torch.zeros_like(means)
    for sign in (one, -one):
        drawn = cut_draws(means, one, limits, sign, torch.full_like(means, 0.3))
        mean, variance = cut_moments(means, one, limits, sign)
        assert bool((sign * drawn >= -1e-6).all())
        assert bool((sign * mean >= -1e-6).all())
        assert bool(((variance >= 0) & (variance <= 1)).all())


@pytest.mark.parametrize("mean", [-12.0, -5.5, -4.5, 0.0, 3.0])
def test_draws_have_the_distribution_of_scipy(mean: float) -> None:
    uniform = torch.linspace(0.0005, 0.9995, 1000, dtype=torch.float64)
    drawn = cut_draws(torch.full_like(uniform, mean), torch.ones_like(uniform), 0 * uniform, 0 * uniform + 1, uniform)
    expected = stats.truncnorm(-mean, np.inf, loc=mean).isf(uniform.numpy())
    np.testing.assert_allclose(drawn.numpy(), expected, rtol=1e-6, atol=1e-9)
