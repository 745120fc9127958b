"""The benchmark of drug-target interactions, and the peers in it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import DrugTargetData
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.exceptions import DataError
from benchmarks.accuracy.dti import (
    _validation_parts,
    bench_dti,
    bench_dti_probabilities,
    fold_metrics,
    shown_pairs,
)
from benchmarks.accuracy.dti_peers import (
    DNILMF_SETTINGS,
    NRLMF_SETTINGS,
    dnilmf_scores,
    ease_scores,
    gip_scores,
    nrlmf_scores,
    wnn_gip_scores,
)
from benchmarks.accuracy.dti_systems import Scored, Shown, dti_systems, score_fold
from benchmarks.accuracy.published import published_figures
from benchmarks.accuracy.sealed import LeakError, check_sealed

Peer = Callable[[np.ndarray], np.ndarray]


def toy() -> DrugTargetData:
    """Two groups of twelve drugs and ten targets."""
    interactions = Interactions.from_dense(np.kron(np.eye(2), np.ones((6, 5))))
    drugs, targets = (np.kron(np.eye(2), np.full((size, size), 0.6)) + 0.4 * np.eye(2 * size) for size in (6, 5))
    return DrugTargetData(interactions, pd.DataFrame(drugs), pd.DataFrame(targets))


def peers() -> dict[str, Peer]:
    drugs, targets = toy().drug_similarity.to_numpy(), np.asarray(toy().target_similarity)
    return {
        "gip": gip_scores,
        "ease": ease_scores,
        "wnn": lambda values: wnn_gip_scores(values, drugs, targets),
        "nrlmf": lambda values: nrlmf_scores(values, drugs, targets, **NRLMF_SETTINGS),
        "dnilmf": lambda values: dnilmf_scores(values, drugs, targets, **DNILMF_SETTINGS),
    }


@pytest.mark.parametrize("name", ["gip", "ease", "wnn", "nrlmf", "dnilmf"])
def test_peers_find_a_hidden_pair_and_take_hidden_as_zero(name: str) -> None:
    values = toy().interactions.to_dense()
    values[0, 1] = values[0, 7] = np.nan
    scores = peers()[name](values)
    assert scores[0, 1] > scores[0, 7]
    np.testing.assert_array_equal(scores, peers()[name](np.nan_to_num(values)))


@pytest.mark.parametrize("name", ["wnn", "nrlmf", "dnilmf"])
def test_peers_with_similarities_find_a_hidden_drug(name: str) -> None:
    values = toy().interactions.to_dense()
    values[0] = np.nan
    scores = peers()[name](values)
    assert scores[0, :5].min() > scores[0, 5:].max()


def test_gip_is_one_round_of_air_where_nothing_is_hidden() -> None:
    interactions = Interactions.from_dense((np.random.default_rng(0).random((8, 6)) < 0.4).astype(float))
    model = DrugTargetAIR(n_rounds=1, regression_weight=0).fit(interactions)
    np.testing.assert_allclose(model.scores_, gip_scores(interactions.to_dense()), atol=1e-10)


def test_importance_raises_the_probabilities_of_nrlmf() -> None:
    drugs, targets = toy().drug_similarity.to_numpy(), np.asarray(toy().target_similarity)
    values = (np.random.default_rng(0).random((12, 10)) < 0.3).astype(float)
    rest = {name: value for name, value in NRLMF_SETTINGS.items() if name != "importance"}
    means = [nrlmf_scores(values, drugs, targets, importance=c, **rest).mean() for c in (1.0, 5.0)]
    assert means[1] > means[0]


def test_every_system_is_told_the_same_and_answers_what_is_asked() -> None:
    data = toy()
    split = next(interaction_folds(data.interactions, "cvs2", 3))
    shown = Shown(data.interactions.select(split.train), data.drug_similarity, data.target_similarity)
    hidden = data.interactions.select(split.test)
    asked = hidden.user_index, hidden.item_index
    check_sealed(shown_pairs(shown), asked)
    found = score_fold(dti_systems(True), shown, asked)
    for scored in found.values():
        assert scored.scores.shape == hidden.ratings.shape
        assert fold_metrics(hidden.ratings, scored)["auroc"] == 1
    with pytest.raises(LeakError):
        check_sealed(shown_pairs(shown), shown_pairs(shown))


def test_systems_with_similarities_refuse_to_go_without() -> None:
    shown = Shown(toy().interactions, None, None)
    with pytest.raises(DataError, match="expected similarities"):
        dti_systems(True)["NRLMF"].score(shown)


def test_constant_scores_are_found_out() -> None:
    found = fold_metrics(np.r_[np.ones(5), np.zeros(95)], Scored(np.zeros(100), 0.0))
    assert found["aupr"] > 0.5  # the trap
    assert found["average_precision"] == pytest.approx(0.05)
    assert found["auroc"] == 0.5


def test_a_report_has_a_row_a_system_and_the_published_ones() -> None:
    report = bench_dti("nr", toy(), "cvs1", dti_systems(True), similarities=True, seeds=(1,), n_splits=2)
    assert [row["system"] for row in report.rows] == ["AIR", "NRLMF", "DNILMF", "RLS-WNN", "NRLMF"]
    assert report.rows[0]["auroc"] == 1
    assert report.rows[-1]["published aupr"] == 0.728
    assert "2 folds of 1 repetitions" in report.protocol


def test_probabilities_are_compared_with_what_is_hidden() -> None:
    report = bench_dti_probabilities("nr", toy(), "cvs1", similarities=True, seeds=(1,), n_splits=3)
    (row,) = report.rows
    assert row["of_interactions"] > 0.9 > 0.1 > row["of_zeros"]
    assert row["calibration_error"] < 0.1
    assert row["above_0.1"] >= 60


def test_whole_drugs_and_targets_have_one_more_peer() -> None:
    assert set(dti_systems(True, whole=True)) - set(dti_systems(True)) == {"WkNNIR"}
    report = bench_dti("nr", toy(), "cvs2", dti_systems(True, whole=True), similarities=True, seeds=(1,), n_splits=3)
    assert all(row["auroc"] == 1 for row in report.rows[:5])


def test_validation_parts_leave_the_test_part_alone() -> None:
    data = toy()
    folds = list(interaction_folds(data.interactions, "cvs1", 4))
    parts = _validation_parts(data, folds)
    assert len(parts) == 4
    for fold, part in zip(folds, parts, strict=True):
        assert not (fold.test & (part.train | part.test)).any()
        assert not (part.train & part.test).any()
        np.testing.assert_array_equal(part.train | part.test, fold.train)


def test_published_figures_are_there_for_every_set_and_setting() -> None:
    for setting in ("cvs1", "cvs2", "cvs3"):
        for name in ("nr", "gpcr", "ic", "e"):
            assert len(published_figures("dti", f"{name}-{setting}")) == 1
