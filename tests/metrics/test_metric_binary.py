"""Scores of a binary truth: oracles, laws, and the trap of the trapezoid."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from air_recsys.exceptions import DataError
from air_recsys.metrics import aupr, auroc, average_precision, bedroc, calibration_error

fast = settings(max_examples=60)
rows = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=25)
samples = rows.filter(lambda chosen: {label for label, _ in chosen} == {0, 1}).map(lambda chosen: np.array(chosen).T)


def curve(truth, score):
    """Precision and recall at each threshold, by counting, from the highest threshold down."""
    for threshold in sorted(set(score), reverse=True):
        taken = truth[score >= threshold]
        yield taken.mean(), taken.sum() / truth.sum()


@fast
@given(samples)
def test_auroc_and_average_precision_are_those_of_scikit_learn(sample):
    truth, score = sample
    assert auroc(truth, score) == pytest.approx(roc_auc_score(truth, score))
    assert average_precision(truth, score) == pytest.approx(average_precision_score(truth, score))


@fast
@given(samples)
def test_aupr_is_the_trapezoid_from_precision_one(sample):
    truth, score = sample
    total, before = 0.0, (1.0, 0.0)
    for precision, recall in curve(truth, score):
        total += (precision + before[0]) / 2 * (recall - before[1])
        before = (precision, recall)
    assert aupr(truth, score) == pytest.approx(total)


@fast
@given(samples, st.randoms())
def test_only_the_order_of_the_scores_counts(sample, random):
    truth, score = sample
    order = random.sample(range(len(truth)), len(truth))
    for measure in (auroc, average_precision, aupr):
        assert measure(truth, 3.0 * score**3 + score - 7) == pytest.approx(measure(truth, score))
        assert measure(truth[order], score[order]) == pytest.approx(measure(truth, score))
        assert 0 <= measure(truth, score) <= 1
        assert measure(truth, truth) == 1
    assert auroc(truth, -score) == pytest.approx(1 - auroc(truth, score))


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_the_trap_a_constant_score(share):
    truth = np.arange(100) < 100 * share
    constant = np.zeros(100)
    assert auroc(truth, constant) == 0.5
    assert average_precision(truth, constant) == pytest.approx(share)
    assert aupr(truth, constant) == pytest.approx((1 + share) / 2)
    assert auroc(truth.astype(np.int8), constant) == auroc(truth.astype(float), constant) == 0.5
    assert average_precision([1, 1], [0.2, 0.1]) == aupr([1, 1], [0.2, 0.1]) == 1


@pytest.mark.parametrize(
    ("truth", "score", "message"),
    [
        ([1, -1], [1, 2], "expected labels 0 and 1 in y_true, found -1"),
        ([0, 0, 0], [1, 2, 3], "expected at least one label 1 in y_true, found only 0 in 3 values"),
    ],
)
def test_labels_that_are_refused(truth, score, message):
    for measure in (auroc, average_precision, aupr):
        with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
            measure(truth, score)
    with pytest.raises(DataError, match="expected labels 0 and 1 in y_true, found only 1 in 2 values"):
        auroc([1, 1], [0.2, 0.1])


def test_the_calibration_error_is_that_of_its_bins():
    rng = np.random.default_rng(0)
    probability = rng.random(2000)
    truth = rng.random(2000) < probability
    bins = [probability[(probability * 10).astype(int) == k] for k in range(10)]
    labels = [truth[(probability * 10).astype(int) == k] for k in range(10)]
    expected = sum(len(p) / 2000 * abs(t.mean() - p.mean()) for t, p in zip(labels, bins, strict=True))
    assert calibration_error(truth, probability) == pytest.approx(expected)
    assert calibration_error(truth, probability) < 0.05 < calibration_error(truth, 1 - probability)
    assert calibration_error([0, 1], [0.0, 1.0]) == 0
    for labels, values, message in (([0, 2], [0.1, 0.2], "labels 0 and 1"), ([0, 1], [0.1, 1.2], "found 1.2")):
        with pytest.raises(DataError, match=message):
            calibration_error(labels, values)


def test_bedroc_is_that_of_its_paper_and_ties_share():
    rng = np.random.default_rng(0)
    truth, score, alpha = rng.random(200) < 0.1, rng.random(200), 20.0
    ranks = np.argsort(np.argsort(-score))[truth] + 1
    share, size = truth.mean(), truth.size
    early = np.exp(-alpha * ranks / size).sum() / truth.sum()
    early /= (1 - np.exp(-alpha)) / (np.exp(alpha / size) - 1) / size
    scale = share * np.sinh(alpha / 2) / (np.cosh(alpha / 2) - np.cosh(alpha / 2 - alpha * share))
    assert bedroc(truth, score) == pytest.approx(early * scale + 1 / (1 - np.exp(alpha * (1 - share))))
    assert bedroc(truth, np.zeros(200)) == pytest.approx(bedroc(truth, -np.zeros(200)))
    assert bedroc(truth, truth) == pytest.approx(1)
    with pytest.raises(DataError, match="only 1"):
        bedroc([1, 1], [0.1, 0.2])
