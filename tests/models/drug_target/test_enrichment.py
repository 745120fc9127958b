"""Enrichment of the top of a list."""

from __future__ import annotations

import numpy as np
import pytest

from air_recsys.data.interactions import Interactions
from air_recsys.dti import DrugTargetAIR, enrichment, hidden_enrichment
from air_recsys.exceptions import DataError, ParameterError


def test_known_answers() -> None:
    truth = np.r_[np.ones(2), np.zeros(98)]
    assert enrichment(truth, -np.arange(100.0), 0.02) == pytest.approx(50)
    assert enrichment(truth, np.arange(100.0), 0.02) == 0
    assert enrichment(truth, -np.arange(100.0), 0.5) == pytest.approx(2)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.37])
def test_constant_scores_enrich_nothing(share: float) -> None:
    assert enrichment(np.r_[np.ones(3), np.zeros(97)], np.zeros(100), share) == pytest.approx(1)


def test_the_order_of_the_pairs_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    truth, score, order = rng.random(50) < 0.2, rng.integers(0, 5, 50), rng.permutation(50)
    assert enrichment(truth, score, 0.1) == pytest.approx(enrichment(truth[order], score[order], 0.1))


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="at least one label 1"):
        enrichment([0, 0], [1, 2])
    with pytest.raises(ParameterError, match="share must be"):
        enrichment([0, 1], [1, 2], share=0)


def test_hidden_interactions_of_two_groups_come_first() -> None:
    data = Interactions.from_dense(np.kron(np.eye(2), np.ones((8, 8))))
    found = hidden_enrichment(DrugTargetAIR(), data, share=0.1, hidden=0.05)
    assert found["n_hidden"] == 6
    assert found["found"] == 1
    assert found["enrichment"] == pytest.approx((256 - 122) / found["n_top"])


def test_the_data_stay_as_they_are() -> None:
    data = Interactions.from_dense(np.kron(np.eye(2), np.ones((4, 4))))
    before = data.ratings.copy()
    hidden_enrichment(DrugTargetAIR(), data, share=0.1)
    np.testing.assert_array_equal(data.ratings, before)
