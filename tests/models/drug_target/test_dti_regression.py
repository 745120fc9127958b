"""The linear part: EASE on both sides, left out exactly, mixed in as recorded pairs say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from air_recsys.dti import DrugTargetAIR
from air_recsys.models.drug_target.completion import Completed, affinity, complete, left_out, spectrum
from air_recsys.models.drug_target.whole import chosen_share, regress
from benchmarks.accuracy.peers.gip import ease_scores


def sparse(seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((14, 11)) < 0.25).astype(float)


def test_it_is_ease_on_both_sides() -> None:
    known = sparse()
    expected = (ease_scores(known, 10.0) + ease_scores(known.T, 10.0).T) / 2
    np.testing.assert_allclose(regress(known).scores, expected, atol=1e-12)


def test_contributions_add_up_and_none_is_of_the_pair_itself() -> None:
    known = sparse()
    found = regress(known)
    for drug, target in ((0, 0), (3, 7), (13, 10)):
        added = found.contributions(known, drug, target)
        assert added.sum() == pytest.approx(found.scores[drug, target])
        assert added[drug, target] == 0
        assert not added[known == 0].any()


def test_an_entry_is_left_out_as_if_it_was_missing() -> None:
    """With the graphs as they are: the score is the same whatever the entry was, and equal to what it completes to."""
    smoothed = torch.from_numpy(sparse(1))
    graphs = affinity(smoothed, None, 0.5), affinity(smoothed.T, None, 0.5)
    kept = spectrum(*graphs, 0.5)
    found = left_out(Completed(kept.smooth(smoothed), smoothed, smoothed, kept))
    for place in ((0, 0), (4, 9)):
        filled = smoothed.clone()
        filled[place] = found[place]
        assert float(kept.smooth(filled)[place]) == pytest.approx(found[place])


def test_what_ranks_better_gets_the_larger_share() -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.2).astype(float)
    good, noise = labels + 0.3 * rng.random(400), rng.random(400)
    assert chosen_share(good, noise, labels) == pytest.approx(0.1)
    assert chosen_share(noise, good, labels) == pytest.approx(0.35)


def test_the_scores_are_a_mixture() -> None:
    known = sparse()
    without = DrugTargetAIR(regression_weight=0).fit(known)
    half = DrugTargetAIR(regression_weight=0.5).fit(known)
    np.testing.assert_allclose(half.scores_, (without.scores_ + regress(known).scores) / 2)
    np.testing.assert_allclose(without.scores_, complete(known, np.ones_like(known)).scores)
    assert 0.1 <= DrugTargetAIR().fit(known).regression_weight_ <= 0.35
