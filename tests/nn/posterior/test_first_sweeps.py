"""Variational sweeps before those that draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from posterior_cases import drawn, observed, posterior

from air_recsys.nn.build import Settings
from air_recsys.nn.memory import Sizes, holds_covariances, posterior_bytes, posterior_plan

BEFORE = 3


def swept(number, **options):
    state = posterior(observed(drawn()), width=3, **options)
    for _ in range(number):
        state.sweep()
    return state


def drawing(number):
    return swept(number, sample=True, n_variational=BEFORE)


@pytest.mark.parametrize("number", range(1, BEFORE + 1))
def test_the_first_sweeps_are_those_of_the_variational_posterior(number):
    expected, found = swept(number), drawing(number)
    for one, other in zip(expected.sides, found.sides, strict=True):
        assert one.covariance is not None
        assert other.covariance is not None
        torch.testing.assert_close(one.mean, other.mean)
        torch.testing.assert_close(one.covariance, other.covariance)
    assert float(found.noise.variance) == pytest.approx(float(expected.noise.variance))


def test_draws_follow_without_covariances():
    found, before = drawing(BEFORE + 1), drawing(BEFORE)
    assert all(side.covariance is None for side in found.sides)
    assert not torch.equal(found.sides[0].mean, found.means[0])  # a draw is not the mean that it is drawn around
    other = drawing(BEFORE + 1)
    assert torch.equal(found.sides[1].mean, other.sides[1].mean)
    assert not torch.equal(before.sides[1].mean, other.sides[1].mean)


@pytest.mark.parametrize("number", [1, BEFORE, BEFORE + 2])
@pytest.mark.parametrize("of_other", [0, BEFORE + 1])
def test_a_state_of_either_kind_is_gone_on_from(number, of_other):
    whole, other = drawing(number), drawing(of_other)
    other.load_state(whole.state())
    for _ in range(BEFORE + 1):
        whole.sweep()
        other.sweep()
    for one, two in zip(whole.sides, other.sides, strict=True):
        assert torch.equal(one.mean, two.mean)


def test_the_start_does_not_change_what_is_drawn():
    data = drawn(m=120, n=90, density=0.4)
    means = []
    for before in (0, BEFORE):
        state = posterior(observed(data), width=2, sample=True, n_variational=before)
        total = np.zeros(data.truth.shape)
        for sweep in range(120):
            state.sweep()
            if sweep >= 40:
                rows, columns = (side.mean.numpy() for side in state.sides)
                total += rows[:, :-1] @ columns[:, :-1].T + rows[:, -1:] + columns[:, -1]
        means.append(total / 80)
    assert np.sqrt(np.mean((means[0] - means[1]) ** 2)) < 0.2 * np.sqrt(np.mean((means[0] - data.truth) ** 2)) + 0.02


def test_the_covariances_of_many_rows_are_not_held():
    settings = Settings(width=40, depth=2, strengths=(0.0, 0.0), n_neighbors=10, biases=True)
    few, many = Sizes(1000, 1000, 50_000), Sizes(1_000_000, 1000, 50_000)
    assert holds_covariances(few, settings)
    assert not holds_covariances(many, settings)
    more = posterior_bytes(few, 40, 0, sample=True, from_covariances=True)
    assert more > posterior_bytes(few, 40, 0, sample=True)
    plans = [posterior_plan(many, settings, 0, sample=True, from_covariances=it).total for it in (None, False, True)]
    assert plans[0] == plans[1] < plans[2]
