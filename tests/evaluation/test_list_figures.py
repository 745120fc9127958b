"""Figures of lists: intervals of all measures, corrected p-values, groups of items and users."""

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_rel

from air_recsys import Interactions
from air_recsys.evaluation.lists import (
    catalogue_figures,
    diversity_figure,
    holm,
    measure_figures,
    paired_p_value,
    popularity_groups,
)
from air_recsys.evaluation.resampling import UserResamples


def test_intervals_are_those_of_scipy():
    values = np.random.default_rng(0).random(200)
    found = measure_figures({"recall_at_k": values}, UserResamples(np.arange(200), n_resamples=4000), 7)
    theirs = bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(1))
    assert found["recall@7"] == values.mean()
    assert found["recall low"] == pytest.approx(theirs.confidence_interval.low, abs=0.005)
    assert found["recall high"] == pytest.approx(theirs.confidence_interval.high, abs=0.005)


def test_an_interval_without_spread_is_the_mean():
    for values in (np.array([0.25]), np.full(30, 0.5)):
        found = measure_figures({"mrr_at_k": values}, UserResamples(np.arange(values.size)), 5)
        assert found["mrr low"] == pytest.approx(values[0])
        assert found["mrr high"] == pytest.approx(values[0])


def test_holm_is_that_of_r():
    """p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([np.nan, 0.6, 0.7]).tolist() == pytest.approx([np.nan, 1, 1], nan_ok=True)
    assert np.isnan(holm([np.nan])).all()


def test_holm_rejects_one_true_hypothesis_at_most_as_often_as_it_says():
    rng = np.random.default_rng(0)
    corrected = np.array([holm(rng.random(5)) for _ in range(2000)])
    assert 0.03 < (corrected.min(axis=1) < 0.05).mean() < 0.065


def test_the_test_is_paired_and_needs_a_difference():
    one, other = np.random.default_rng(0).random((2, 30))
    assert paired_p_value(one, other) == pytest.approx(ttest_rel(one, other).pvalue)
    assert np.isnan(paired_p_value(one, one))
    assert np.isnan(paired_p_value(one[:1], other[:1]))


def test_the_lift_counts_all_users_that_are_shown():
    """Item 0 has 3 of the 4 users, item 1 one of them; only the last user is asked."""
    train = Interactions.from_dense([[1, np.nan], [1, np.nan], [1, np.nan], [np.nan, 1]])
    shown = train.to_csr()
    figures = catalogue_figures(np.array([[0]]), np.array([3]), train, shown)
    assert figures["popularity lift"] == 2
    assert figures["coverage"] == 0.5
    assert np.isnan(diversity_figure(np.array([[0]]), train)["diversity"])


def test_groups_of_popularity_have_a_third_of_the_interactions_each():
    counts = np.random.default_rng(0).integers(1, 50, 3000)
    sums = counts @ popularity_groups(counts)
    np.testing.assert_allclose(sums / counts.sum(), 1 / 3, atol=0.01)
