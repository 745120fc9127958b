"""The benchmark of drug-target interactions, and the peers in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from air_recsys.data.interactions import Interactions
from air_recsys.datasets import DrugTargetData
from air_recsys.dti import DrugTargetAIR, interaction_folds
from air_recsys.evaluation.drug_targets import pair_task
from air_recsys.evaluation.experiment import LeakError, trials
from air_recsys.exceptions import DataError
from benchmarks.accuracy.dti import (
    NRLMF_SETTINGS,
    bench_dti,
    dti_systems,
    fold_metrics,
    validation_parts,
)
from benchmarks.accuracy.peers.gip import ease_scores, gip_scores, wnn_gip_scores
from benchmarks.accuracy.peers.kronrls import kron_rls_scores
from benchmarks.accuracy.peers.nrlmf import nrlmf_scores

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
        "kronrls": lambda values: kron_rls_scores(values, drugs, targets),
    }


@pytest.mark.parametrize("name", ["gip", "ease", "wnn", "nrlmf", "kronrls"])
def test_peers_find_a_hidden_pair_and_take_hidden_as_zero(name: str) -> None:
    values = toy().interactions.to_dense()
    values[0, 1] = values[0, 7] = np.nan
    scores = peers()[name](values)
    assert scores[0, 1] > scores[0, 7]
    np.testing.assert_array_equal(scores, peers()[name](np.nan_to_num(values)))


@pytest.mark.parametrize("name", ["wnn", "nrlmf", "kronrls"])
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
    shown, hidden = (data.interactions.select(part) for part in split)
    found = list(trials(dti_systems(data, True), [pair_task(shown, hidden).sealed()], progress=False))
    assert len(found) == 4
    for trial in found:
        assert trial.answer[0].shape == hidden.ratings.shape
        assert fold_metrics(trial)["auroc"] == 1
    with pytest.raises(LeakError):
        pair_task(shown, shown).sealed()


def test_systems_with_similarities_refuse_to_go_without() -> None:
    with pytest.raises(DataError, match="expected similarities"):
        dti_systems(replace(toy(), target_similarity=None), True)


def test_a_report_has_a_row_a_system_and_the_published_ones(at_once: None) -> None:
    report = bench_dti("nr", toy(), "cvs1", dti_systems(toy(), True), similarities=True, seeds=(1,), n_splits=2)
    assert [row["system"] for row in report.rows] == ["AIR", "NRLMF", "RLS-WNN", "KronRLS", "NRLMF"]
    assert report.rows[0]["auroc"] == 1
    assert report.rows[-1]["published aupr"] == 0.728
    assert "2 folds of 1 repetitions" in report.protocol


def test_whole_drugs_and_targets_have_one_more_peer(at_once: None) -> None:
    assert set(dti_systems(toy(), True, whole=True)) - set(dti_systems(toy(), True)) == {"WkNNIR"}
    report = bench_dti(
        "nr", toy(), "cvs2", dti_systems(toy(), True, whole=True), similarities=True, seeds=(1,), n_splits=3
    )
    assert all(row["auroc"] == 1 for row in report.rows[:4])


def test_validation_parts_leave_the_test_part_alone() -> None:
    data = toy()
    folds = list(interaction_folds(data.interactions, "cvs1", 4))
    parts = validation_parts(data, folds)
    assert len(parts) == 4
    for fold, part in zip(folds, parts, strict=True):
        assert not (fold.test & (part.train | part.test)).any()
        assert not (part.train & part.test).any()
        np.testing.assert_array_equal(part.train | part.test, fold.train)
