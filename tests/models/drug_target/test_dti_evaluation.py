"""Hidden pairs: folds of the literature, measures that rank systems as they should, and what cannot be measured."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dti_cases import alike, planted

from air_recsys.data.interactions import Interactions
from air_recsys.dti import (
    SETTINGS,
    DrugTargetAIR,
    as_p_affinity,
    enrichment,
    enrichment_curve,
    evaluate_pairs,
    evaluate_splits,
    hidden_enrichment,
    interaction_folds,
    similarity_clusters,
)
from air_recsys.exceptions import DataError, DataWarning, ParameterError

WHOLE = planted(wrong=0.1, missing=0)
PAIRS = Interactions.from_dense((np.random.default_rng(0).random((23, 17)) < 0.3).astype(float))
REVERSED = Interactions(
    *(part[::-1] for part in (PAIRS.user_index, PAIRS.item_index, PAIRS.ratings)), PAIRS.user_ids, PAIRS.item_ids
)


# -------------------------------------------------------------------- folds


def reference(size: int, seed: int, number: int = 10) -> list[set[int]]:
    """Positions of the folds as PyDTI's functions.py divides them."""
    index = np.random.RandomState(seed).permutation(size)
    step = index.size // number
    return [set(index[i * step : (i + 1) * step if i < number - 1 else None].tolist()) for i in range(number)]


@pytest.mark.parametrize(("setting", "size"), [("cvs1", 23 * 17), ("cvs2", 23), ("cvs3", 17)])
def test_the_folds_are_those_of_pydti_and_test_every_pair_once(setting: str, size: int) -> None:
    position = {"cvs1": np.arange(23 * 17), "cvs2": PAIRS.user_index, "cvs3": PAIRS.item_index}[setting]
    splits = list(interaction_folds(PAIRS, setting, 10, 22))
    assert [set(position[split.test].tolist()) for split in splits] == reference(size, 22)
    assert all((split.train != split.test).all() for split in splits)
    some = PAIRS.select(np.arange(PAIRS.n_ratings) % 3 > 0)  # pairs may be missing
    for found in (splits, list(interaction_folds(some, setting))):
        np.testing.assert_array_equal(np.sum([split.test for split in found], axis=0), 1)


def test_hidden_drugs_and_targets_are_nowhere_in_training_and_blocks_have_interactions() -> None:
    for setting, sides in (("cvs2", ["user_index"]), ("cvs3", ["item_index"]), ("cvs4", ["user_index", "item_index"])):
        splits = list(interaction_folds(PAIRS, setting))
        for split in splits:
            for side in sides:
                index = getattr(PAIRS, side)
                assert not np.intersect1d(index[split.train], index[split.test]).size
    assert len(splits) <= 9
    assert all(PAIRS.ratings[split.test].any() for split in splits)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_seed_decides(setting: str) -> None:
    first, again, other = (next(interaction_folds(PAIRS, setting, 10, seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.test, again.test)
    assert (first.test != other.test).any()


def test_groups_are_hidden_whole() -> None:
    groups = {drug: number // 4 for number, drug in enumerate(PAIRS.user_ids.tolist()[:20])}  # the last are alone
    of_pairs = np.array([groups.get(drug, -drug) for drug in PAIRS.user_ids[PAIRS.user_index].tolist()])
    for setting in ("cvs2", "cvs4"):
        for split in interaction_folds(PAIRS, setting, 4, 1, drug_groups=groups):
            assert not np.intersect1d(of_pairs[split.train], of_pairs[split.test]).size
    clusters = similarity_clusters(alike(WHOLE.index))
    assert clusters.nunique() == 3
    assert similarity_clusters(alike(WHOLE.index), 0.7).nunique() == 24
    with pytest.raises(DataError, match="square"):
        similarity_clusters(pd.DataFrame([[1.0, 0.5]]))


def test_everything_that_can_be_hidden_is_side_by_side() -> None:
    found = evaluate_splits(DrugTargetAIR(n_rounds=2), WHOLE, alike(WHOLE.index), alike(WHOLE.columns), n_splits=3)
    best = found[found["system"] == "DrugTargetAIR"].set_index("hidden")["average_precision"]
    assert best.index.tolist() == [
        "pairs",
        "drugs",
        "groups of drugs",
        "targets",
        "groups of targets",
        "drugs and targets",
    ]
    assert best["groups of drugs"] < best["drugs"]  # of whole groups nothing is known


# -------------------------------------------------------------------- measures


def test_a_model_that_knows_the_groups_is_above_counts() -> None:
    found = evaluate_pairs(DrugTargetAIR(), WHOLE, n_splits=5).set_index("system")
    assert list(found.index) == ["DrugTargetAIR", "interaction profiles (GIP)", "counts of interactions"]
    precision = found["average_precision"]
    assert precision["DrugTargetAIR"] > precision["counts of interactions"] + 0.2
    assert found.loc["DrugTargetAIR", "calibration_error"] < 0.15
    assert (found["average_precision_se"] > 0).all()


@pytest.mark.parametrize("setting", ["cvs2", "cvs3", "cvs4"])
def test_whole_drugs_and_targets_are_predicted_from_similarities(setting: str) -> None:
    given = alike(WHOLE.index), alike(WHOLE.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate_pairs(DrugTargetAIR(), WHOLE, *given, setting=setting, n_splits=4)
    assert found["system"].tolist() == ["DrugTargetAIR", "counts of interactions"]
    assert found.loc[0, "auroc"] > 0.85


def test_interactions_alone_have_zeros_beside_them() -> None:
    table = WHOLE.sort_index().sort_index(axis=1)
    pairs = table.stack().rename_axis(["drug", "target"]).rename("interaction").reset_index()
    known = pairs[pairs["interaction"] == 1].drop(columns="interaction")
    first = evaluate_pairs(DrugTargetAIR(), table, n_splits=3)
    pd.testing.assert_frame_equal(evaluate_pairs(DrugTargetAIR(), known, n_splits=3), first)
    assert hidden_enrichment(DrugTargetAIR(), known, share=0.1) == hidden_enrichment(DrugTargetAIR(), table, share=0.1)


# -------------------------------------------------------------------- enrichment


def test_known_enrichments() -> None:
    truth = np.r_[np.ones(2), np.zeros(98)]
    assert enrichment(truth, -np.arange(100.0), 0.02) == pytest.approx(50)
    assert enrichment(truth, np.arange(100.0), 0.02) == 0
    assert enrichment(truth, -np.arange(100.0), 0.5) == pytest.approx(2)
    for share in (0.01, 0.37):
        assert enrichment(truth, np.zeros(100), share) == pytest.approx(1)


def test_the_order_of_the_pairs_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    truth, score, order = rng.random(50) < 0.2, rng.integers(0, 5, 50), rng.permutation(50)
    assert enrichment(truth, score, 0.1) == pytest.approx(enrichment(truth[order], score[order], 0.1))


def test_the_curve_says_what_enrichment_says_and_ties_share() -> None:
    rng = np.random.default_rng(0)
    truth, score = rng.random(700) < 0.1, rng.integers(0, 30, 700).astype(float)
    for row in enrichment_curve(truth, score).iloc[:-1].to_dict("records"):
        assert row["enrichment"] == pytest.approx(enrichment(truth, score, row["share"]))
        assert row["hit_rate"] * row["n_top"] == pytest.approx(row["found"] * truth.sum())
    assert enrichment_curve(truth, score)["found"].iloc[-1] == 1
    assert enrichment_curve([1, 0, 0, 0], [0, 0, 0, 0])["hit_rate"].tolist() == [0.25] * 3


def test_hidden_interactions_of_two_groups_come_first_and_the_data_stay() -> None:
    data = Interactions.from_dense(np.kron(np.eye(2), np.ones((8, 8))))
    before = data.ratings.copy()
    found = hidden_enrichment(DrugTargetAIR(), data, share=0.1, hidden=0.05)
    assert (found["n_hidden"], found["found"]) == (6, 1)
    assert found["enrichment"] == pytest.approx((256 - 122) / found["n_top"])
    np.testing.assert_array_equal(data.ratings, before)


# -------------------------------------------------------------------- affinities, and what is refused


def test_affinities_of_mixed_units_are_named() -> None:
    nanomolar = pd.Series([3.0, 250.0, np.nan, 2e-8], ["a", "b", "c", "d"], name="Kd")
    with pytest.warns(DataWarning, match=r"1 rows have affinities below .* as if not all were in nM.*'d'"):
        found = as_p_affinity(nanomolar)
    assert found["a"] == pytest.approx(9 - np.log10(3))
    assert np.isnan(found["c"])
    table = as_p_affinity(pd.DataFrame({"t": [1e-9, 1e-6]}, ["a", "b"]), unit="M")
    assert table["t"].tolist() == pytest.approx([9, 6])
    with pytest.warns(DataWarning, match=r"all values lie in 4\.\.9, as if they were pKd or another"):
        as_p_affinity(pd.Series(np.linspace(4, 9, 10)))
    with pytest.warns(DataWarning, match=r"all values lie in 0\.5\.\.4, as if they were pKd or another logarithm"):
        as_p_affinity(pd.Series(np.linspace(0.5, 4, 10)))  # log10 of nM
    assert as_p_affinity(pd.Series(np.linspace(0.5, 4, 10)), unit="uM").min() > 5  # µM are small


SINGLE = pd.DataFrame(np.eye(6) * (np.arange(6) == 0))


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: interaction_folds(PAIRS, "cvs5"), ParameterError, "setting must be one of"),
        (lambda: interaction_folds(REVERSED), DataError, "another order"),
        (lambda: interaction_folds(PAIRS, "cvs3", 18), DataError, "at least one drug, target or pair a fold"),
        (lambda: evaluate_pairs(DrugTargetAIR(), SINGLE, n_splits=3), DataError, "found none with both"),
        (lambda: evaluate_pairs(DrugTargetAIR(), WHOLE, setting="drugs"), ParameterError, "setting must be one of"),
        (lambda: evaluate_pairs(DrugTargetAIR(), WHOLE, setting="cvs2"), DataError, "hides whole"),
        (lambda: enrichment([0, 0], [1, 2]), DataError, "at least one label 1"),
        (lambda: enrichment([0, 1], [1, 2], share=0), ParameterError, "share must be"),
        (lambda: as_p_affinity(pd.Series([1.0, 0.0], ["a", "b"])), DataError, "such as logarithms, in 1 rows: ['b']"),
        (lambda: as_p_affinity(pd.Series(["1", ">10"])), DataError, "as numbers"),
    ],
)
def test_what_cannot_be_divided_or_measured_is_refused(ask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        ask()
