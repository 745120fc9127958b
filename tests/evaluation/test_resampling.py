"""Intervals and tests over users: they hold what they should, are fair, and notice what there is."""

import numpy as np
import pytest
from scipy.stats import bootstrap, kstest, ttest_rel

from air_recsys.evaluation.lists import holm, measure_figures, paired_p_value
from air_recsys.evaluation.resampling import ByUsers, UserResamples, interval_of
from air_recsys.metrics import rmse


def squared(rng, n_users=40):
    """Squared errors of users with 1 to 9 test ratings each, as habits of users and noise."""
    counts = rng.integers(1, 10, n_users)
    habit = 0.5 * rng.standard_normal(n_users)
    errors = [habit[user] + rng.standard_normal(count) for user, count in enumerate(counts)]
    return ByUsers(np.array([[(each**2).sum() for each in errors]]), counts[None], root=True), np.concatenate(errors)


@pytest.fixture
def first():
    return squared(np.random.default_rng(0))[0]


def test_the_value_is_the_measure_over_all_and_that_of_folds_their_mean(first):
    measure, errors = squared(np.random.default_rng(1))
    assert measure.value() == pytest.approx(rmse(np.zeros(errors.size), errors))
    both = ByUsers(np.vstack([first.sums, measure.sums]), np.vstack([first.counts, measure.counts]), root=True)
    assert both.value() == pytest.approx((first.value() + measure.value()) / 2)


def test_nineteen_of_twenty_intervals_hold_the_truth():
    truth = np.sqrt(1 + 0.25)
    rng = np.random.default_rng(0)
    found = [squared(rng, n_users=150)[0].interval(seed=0) for _ in range(100)]
    inside = np.mean([low <= truth <= high for low, high in found])
    assert 0.88 <= inside <= 0.99


def test_p_values_of_equal_systems_are_uniform_and_those_of_a_worse_one_small(first):
    rng = np.random.default_rng(0)
    fair = []
    for _ in range(200):
        other = squared(rng)[0]
        shift = rng.standard_normal(other.sums.shape) * other.counts
        fair.append(ByUsers(other.sums + shift, other.counts, root=True).p_value(other))
    assert kstest(fair, "uniform").pvalue > 0.01
    worse = ByUsers(1.3 * first.sums, first.counts, root=True)
    assert worse.p_value(first) < 1e-4
    assert worse.p_value(first) == pytest.approx(first.p_value(worse))


def test_paired_differences_are_surer_than_the_intervals_and_none_of_a_system_from_itself(first):
    worse = ByUsers(1.1 * first.sums, first.counts, root=True)
    low, high = worse.difference(first, seed=0)
    assert 0 < low < worse.value() - first.value() < high
    assert high - low < np.ptp(worse.interval(seed=0)) / 2
    assert np.isnan(first.p_value(first))
    assert first.difference(first, seed=0) == (0, 0)


def test_users_without_a_test_change_nothing_however_many_there_are(first):
    """So many that their weights are held a part at a time."""
    zeros = np.zeros((1, 5000))
    wider = ByUsers(np.hstack([first.sums, zeros]), np.hstack([first.counts, zeros]), root=True)
    assert wider.value() == first.value()
    assert wider.interval(seed=0) == pytest.approx(first.interval(seed=0))
    assert first.interval(seed=1) != first.interval(seed=0)


def test_an_interval_holds_its_value_and_narrows_with_users():
    rng = np.random.default_rng(0)
    widths = []
    for n in (20, 2000):
        values = rng.normal(size=n)
        found = interval_of(values.mean(), UserResamples(np.arange(n)).mean(values))
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)
    assert widths[0] > 5 * widths[1]


def test_an_interval_knows_that_ratings_of_a_user_go_together():
    of_user = np.random.default_rng(0).normal(size=50)
    values, users = np.repeat(of_user, 20), np.repeat(np.arange(50), 20)
    by_user = np.ptp(np.quantile(UserResamples(users).mean(values), (0.025, 0.975)))
    by_pair = np.ptp(np.quantile(UserResamples(np.arange(1000)).mean(values), (0.025, 0.975)))
    assert by_user > 3 * by_pair


def test_equal_models_differ_by_nothing_in_any_draw_of_many_users_with_ids_of_any_kind():
    errors = np.random.default_rng(0).normal(size=300) ** 2
    resamples = UserResamples(np.arange(300) % 30)
    np.testing.assert_array_equal(resamples.root_mean(errors) - resamples.root_mean(errors.copy()), 0)
    weighted = resamples.of(lambda weights: float(np.average(errors, weights=weights)))
    np.testing.assert_allclose(weighted, resamples.mean(errors))
    users = np.array([*range(6000), "a"], dtype=object)
    np.testing.assert_array_equal(UserResamples(users, n_resamples=50).mean(np.ones(users.size)), 1)


def test_intervals_are_those_of_scipy_and_the_mean_without_spread():
    values = np.random.default_rng(0).random(200)
    found = measure_figures({"recall_at_k": values}, UserResamples(np.arange(200), n_resamples=4000), 7)
    theirs = bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    assert found["recall@7"] == values.mean()
    assert found["recall low"] == pytest.approx(theirs.confidence_interval.low, abs=0.005)
    assert found["recall high"] == pytest.approx(theirs.confidence_interval.high, abs=0.005)
    for values in (np.array([0.25]), np.full(30, 0.5)):
        found = measure_figures({"mrr_at_k": values}, UserResamples(np.arange(values.size)), 5)
        assert [found["mrr low"], found["mrr high"]] == pytest.approx([values[0]] * 2)


def test_holm_is_that_of_r_and_rejects_one_true_hypothesis_at_most_as_often_as_it_says():
    """p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([np.nan, 0.6, 0.7]).tolist() == pytest.approx([np.nan, 1, 1], nan_ok=True)
    assert np.isnan(holm([np.nan])).all()
    rng = np.random.default_rng(0)
    corrected = np.array([holm(rng.random(5)) for _ in range(2000)])
    assert 0.03 < (corrected.min(axis=1) < 0.05).mean() < 0.065


def test_the_test_is_paired_and_needs_a_difference():
    one, other = np.random.default_rng(0).random((2, 30))
    assert paired_p_value(one, other) == pytest.approx(ttest_rel(one, other).pvalue)
    assert np.isnan(paired_p_value(one, one))
    assert np.isnan(paired_p_value(one[:1], other[:1]))
