"""Measures by users: their values, intervals that hold, tests that are fair and notice what there is."""

import numpy as np
import pytest
from scipy.stats import kstest

from air_recsys.evaluation import resampling
from air_recsys.evaluation.resampling import ByUsers
from air_recsys.metrics import rmse


def squared(rng, n_users=40, scale=1.0):
    """Squared errors of users with 1 to 9 test ratings each, as habits of users and noise."""
    counts = rng.integers(1, 10, n_users)
    habit = 0.5 * rng.standard_normal(n_users)
    errors = [scale * (habit[user] + rng.standard_normal(count)) for user, count in enumerate(counts)]
    return ByUsers(np.array([[(each**2).sum() for each in errors]]), counts[None], root=True), np.concatenate(errors)


def test_the_value_is_the_measure_over_all():
    measure, errors = squared(np.random.default_rng(0))
    assert measure.value() == pytest.approx(rmse(np.zeros(errors.size), errors))


def test_the_value_of_several_folds_is_their_mean():
    one, other = (squared(np.random.default_rng(seed))[0] for seed in (0, 1))
    both = ByUsers(np.vstack([one.sums, other.sums]), np.vstack([one.counts, other.counts]), root=True)
    assert both.value() == pytest.approx((one.value() + other.value()) / 2)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    truth = np.sqrt(1 + 0.25)
    rng = np.random.default_rng(0)
    found = [squared(rng, n_users=150)[0].interval(seed=0) for _ in range(200)]
    inside = np.mean([low <= truth <= high for low, high in found])
    assert 0.88 <= inside <= 0.99


def test_p_values_of_equal_systems_are_uniform_and_those_of_a_worse_one_small():
    rng = np.random.default_rng(0)
    fair = []
    for _ in range(200):
        first = squared(rng)[0]
        shift = rng.standard_normal(first.sums.shape) * first.counts
        fair.append(ByUsers(first.sums + shift, first.counts, root=True).p_value(first))
    assert kstest(fair, "uniform").pvalue > 0.01
    first = squared(rng)[0]
    worse = ByUsers(1.3 * first.sums, first.counts, root=True)
    assert worse.p_value(first) < 1e-4
    assert worse.p_value(first) == pytest.approx(first.p_value(worse))


def test_paired_differences_are_surer_than_the_intervals():
    first = squared(np.random.default_rng(0))[0]
    worse = ByUsers(1.1 * first.sums, first.counts, root=True)
    low, high = worse.difference(first, seed=0)
    assert 0 < low < worse.value() - first.value() < high
    assert high - low < np.ptp(worse.interval(seed=0)) / 2


def test_a_system_does_not_differ_from_itself():
    first = squared(np.random.default_rng(0))[0]
    assert np.isnan(first.p_value(first))
    assert first.difference(first, seed=0) == (0, 0)


def test_users_without_a_test_change_nothing():
    measure = squared(np.random.default_rng(0))[0]
    zeros = np.zeros((1, 5))
    wider = ByUsers(np.hstack([measure.sums, zeros]), np.hstack([measure.counts, zeros]), root=True)
    assert wider.value() == measure.value()
    assert wider.interval(seed=0) == pytest.approx(measure.interval(seed=0))


def test_intervals_are_those_of_their_seed_however_many_weights_are_held(monkeypatch):
    measure = squared(np.random.default_rng(0))[0]
    whole = measure.interval(seed=0)
    assert measure.interval(seed=1) != whole
    monkeypatch.setattr(resampling, "_HELD", 100)
    assert measure.interval(seed=0) == pytest.approx(whole)
