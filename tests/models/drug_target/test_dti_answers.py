"""What `DrugTargetAIR` answers: probabilities with deviations, and reasons that add up to the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dti_cases import alike, planted

from air_recsys.datasets import load_yamanishi
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.exceptions import UnknownIdError
from air_recsys.models.drug_target.answers import Answers, Calibration, HeldOut, held_out
from air_recsys.models.drug_target.completion import affinity, spectrum
from air_recsys.models.drug_target.whole import Strengths


@pytest.fixture(scope="module", params=[False, True], ids=["pairs alone", "with similarities"])
def model(request: pytest.FixtureRequest) -> DrugTargetAIR:
    table = planted()
    if not request.param:
        return DrugTargetAIR().fit(table)
    table.iloc[3] = np.nan  # a new drug
    return DrugTargetAIR().fit(table, alike(table.index), alike(table.columns))


def test_probabilities_rise_with_the_scores_and_are_never_certain(model: DrugTargetAIR) -> None:
    table = model.new_interactions(10**6, include_known=True)
    probabilities = table["probability"].to_numpy()
    for _, of_one_kind in table.groupby(["known", "recorded_zero"])["probability"]:
        assert (np.diff(of_one_kind) <= 0).all()
    assert 0 < probabilities.min() < probabilities.max() < 1
    assert (table["deviation"] >= 0).all()
    assert table["deviation"].max() > 0
    some = table.head(7)
    np.testing.assert_array_equal(model.predict_proba(some["drug"], some["target"]), some["probability"])


def test_a_stated_share_leaves_no_range_and_a_guess_never_exceeds_the_highest(model: DrugTargetAIR) -> None:
    listed = model.new_interactions(10**6, include_known=True)
    assert (listed["highest"] >= listed["probability"]).all()
    no_zero = ~listed["recorded_zero"]
    pd.testing.assert_series_equal(listed["highest"][no_zero], listed["probability"][no_zero], check_names=False)
    stated = DrugTargetAIR(known_share=0.5).fit(planted()).new_interactions(10**6)
    pd.testing.assert_series_equal(stated["highest"], stated["probability"], check_names=False)


def test_every_explanation_adds_up_to_the_score_in_the_table(model: DrugTargetAIR) -> None:
    table = model.new_interactions(10**6, include_known=True).sample(12, random_state=0)
    table = pd.concat([table, model.new_interactions(2, drug_ids="d3")])
    for row in table.itertuples():
        found = model.explain(row.drug, row.target, n=10**6)
        assert found.score == pytest.approx(row.score, abs=1e-9)
        assert found.total() == pytest.approx(found.score, abs=1e-9)
        assert (found.probability, found.deviation) == pytest.approx((row.probability, row.deviation), abs=1e-6)
        known = found.interactions
        sums = found.parts["same_drug"] + found.parts["same_target"] + found.parts["known_elsewhere"]
        assert known["contribution"].sum() == pytest.approx(sums + found.parts["own_record"], abs=1e-9)
        assert row.known or found.parts["own_record"] == 0
        of_drug = known.query("drug == @row.drug and target != @row.target")
        assert of_drug["contribution"].sum() == pytest.approx(found.parts["same_drug"], abs=1e-9)
        assert (of_drug["drug_similarity"] == 1).all()
        assert (known["contribution"].diff().dropna() <= 0).all()
        assert found.to_dict()["parts"] == found.parts


def test_what_is_taken_away_takes_its_contribution_along() -> None:
    """A contribution is a derivative: the score of the last round is linear in what it smooths."""
    model = DrugTargetAIR(n_rounds=1, regression_weight=0).fit(planted().fillna(0))
    found = model.explain("d0", "t0", n=1)
    first = found.interactions.iloc[0]
    whole = model._answers.whole(model._answers.shown_for((0, 0)))
    graphs = affinity(whole.block.smoothed, None, 0.5), affinity(whole.block.smoothed.T, None, 0.5)
    without = whole.block.smoothed.copy()
    without[model.drugs_.lookup(first["drug"])[0], model.targets_.lookup(first["target"])[0]] = 0
    lost = found.score - float(spectrum(*graphs, model._noise).smooth(without)[0, 0])
    assert lost == pytest.approx(first["contribution"], abs=1e-9)


def test_an_explanation_reads_as_sentences_and_refuses_unknown_ids(model: DrugTargetAIR) -> None:
    text = str(model.explain("d0", "t1", n=2))
    assert text.startswith("drug d0, target t1: probability 0.")
    assert "other drugs of the target" in text
    assert "the 2 of " in text
    with pytest.raises(UnknownIdError, match="the nearest is 'd0'"):
        model.explain("D0", "t1")


def test_a_calibration_is_the_share_of_interactions_and_ties_share_it() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(200_000)
    labels = rng.random(200_000) < scores**2
    found = Calibration.of(scores, labels)
    grid = np.linspace(0.1, 0.9, 9)
    np.testing.assert_allclose(found.of_scores(grid), grid**2, atol=0.04)
    tied = Calibration.of(np.array([0.5, 0.5, 0.5, 0.5]), np.array([1, 0, 0, 1]))
    assert tied.of_scores(np.array([0.5, 9.0, -9.0])).tolist() == [0.5] * 3
    swapped = Calibration.of(np.array([0.5, 0.5, 0.5, 0.5]), np.array([0, 1, 1, 0]))
    np.testing.assert_array_equal(tied.probabilities, swapped.probabilities)


def test_probabilities_of_zeros_are_those_of_interactions_that_nobody_has_recorded() -> None:
    """Of scores that are true probabilities, with a part of the true interactions recorded."""
    rng = np.random.default_rng(0)
    scores = rng.random((400, 500)) * 0.9
    true = rng.random(scores.shape) < scores
    recorded = true & (rng.random(scores.shape) < 0.75)
    held = HeldOut(scores.ravel(), np.full(scores.shape, 0.01))
    for share in (0.75, "auto"):
        kept = {"held_out": held, "scores": scores}
        ones = np.ones_like(scores)
        sides = np.arange(400) < 40, np.zeros(500, dtype=bool)  # of the first drugs nobody has looked for interactions
        recorded[sides[0]] = False
        strengths = Strengths(0.5, 1, 1, "cpu", 0)
        found = Answers(recorded.astype(float), ones, sides, (None, None), strengths, scores, kept, share)
        assert found.known_share == pytest.approx(0.75 if share == 0.75 else 0.8)  # of the best, 0.66 are
        zeros = np.nonzero(~recorded)
        stated, unseen = found.probabilities(zeros, scores[zeros]), zeros[0] < 40
        if share == 0.75:
            for part in np.array_split(np.argsort(np.where(unseen, 2, stated)), 5):
                assert stated[part].mean() == pytest.approx(true[zeros][part].mean(), abs=0.02)
            assert stated[unseen].mean() == pytest.approx(true[zeros][unseen].mean(), abs=0.02)
        assert (found.deviations(zeros, scores[zeros]) >= 0).all()
        highest = found.probabilities(zeros, scores[zeros], found.least_share)
        assert (highest >= stated).all()
        assert found.least_share == pytest.approx(0.75 if share == 0.75 else 0.66, abs=0.02)


def test_deviations_are_those_of_the_jackknife() -> None:
    """Of the mean of the records that are shown, the delete-a-group jackknife is the standard error of that mean."""
    values = np.random.default_rng(0).normal(size=(10, 10))
    found = held_out(np.ones((10, 10)), lambda shown: np.full((10, 10), (shown * values).sum() / shown.sum()))
    assert found.deviations.mean() == pytest.approx(values.std() / 10, rel=0.5)


@pytest.mark.data
def test_probabilities_of_hidden_pairs_hold(data_root: Path) -> None:
    """Expected calibration error, over ten parts of the scale, of one fold of random pairs."""
    found = load_yamanishi(data_root, "gpcr")
    split = next(iter(interaction_folds(found.interactions, "cvs1", 10, 7771)))
    hidden = found.interactions.select(split.test)
    model = DrugTargetAIR().fit(found.interactions.select(split.train), found.drug_similarity, found.target_similarity)
    drugs, targets = hidden.user_ids[hidden.user_index], hidden.item_ids[hidden.item_index]
    probabilities = model.predict_proba(drugs, targets)
    place = np.minimum((probabilities * 10).astype(int), 9)
    sums = np.bincount(place, hidden.ratings - probabilities, minlength=10)
    assert np.abs(sums).sum() / probabilities.size < 0.03
    assert probabilities[hidden.ratings == 1].mean() > 0.5
