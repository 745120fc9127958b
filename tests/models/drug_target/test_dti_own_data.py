"""Tables as a laboratory has them: wide ones, long ones, with names; and what cannot be is refused with its mend."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.dti import DrugTargetAIR, feature_similarity
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError
from air_recsys.models.drug_target.pairs import as_pairs

DRUGS, TARGETS = [f"drug {k}" for k in range(8)], [f"t{k}" for k in range(6)]
WIDE = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 3))), DRUGS, TARGETS)
SIMILARITY = pd.DataFrame(np.kron(np.eye(2), np.full((4, 4), 0.7)) + 0.3 * np.eye(8), DRUGS, DRUGS)


def long_of(wide: pd.DataFrame) -> pd.DataFrame:
    return wide.stack().rename_axis(["Drug", "TARGET"]).rename("interaction").reset_index()


def test_wide_and_long_tables_make_the_same_model_with_names() -> None:
    wide, long = DrugTargetAIR().fit(WIDE), DrugTargetAIR().fit(long_of(WIDE).sample(frac=1, random_state=0))
    np.testing.assert_allclose(wide.scores_, long.scores_, atol=1e-12)
    assert wide.drugs_.ids.tolist() == long.drugs_.ids.tolist() == DRUGS
    assert wide.new_interactions(1).loc[0, "drug"] in DRUGS


def test_pairs_alone_are_interactions_and_all_others_zeros() -> None:
    pairs = long_of(WIDE).query("interaction == 1")[["Drug", "TARGET"]]
    np.testing.assert_allclose(DrugTargetAIR().fit(pairs).scores_, DrugTargetAIR().fit(WIDE).scores_, atol=1e-12)


def test_missing_values_of_a_wide_table_are_predicted() -> None:
    hidden = WIDE.copy()
    hidden.loc["drug 1", "t2"] = np.nan
    first = DrugTargetAIR().fit(hidden).new_interactions(1).loc[0]
    assert (first["drug"], first["target"], first["known"], first["recorded_zero"]) == ("drug 1", "t2", False, False)


def test_a_drug_of_the_similarity_alone_is_a_new_one_and_predicted() -> None:
    seven = DrugTargetAIR().fit(WIDE.drop(index="drug 2"), drug_similarity=SIMILARITY)
    scores = seven.predict("drug 2", TARGETS)
    assert scores[:3].min() > 0.5 > scores[3:].max()
    assert "drug 2" in set(seven.new_interactions(50)["drug"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (WIDE.reset_index(names="compound"), "text in the whole first column 'compound'"),
        (WIDE.astype(object).replace({"t1": {0.0: "n.d."}}), "found 'n.d.' for the drug 'drug 4' and the target 't1'"),
        (pd.concat([WIDE, WIDE.iloc[:1]]), "each drug once, found 1 of them again: ['drug 0']"),
        (pd.concat([WIDE, WIDE.iloc[:, :1]], axis=1), "each target once"),
        (WIDE.iloc[:0], "a table of shape (0, 6)"),
        (long_of(WIDE).rename(columns={"interaction": "pKd"}), "found ['pKd']: rename it, or drop it"),
        (long_of(WIDE).assign(label=1), "one column of values"),
        (WIDE * 7.2, "1 for pairs that interact and 0 for others, found 7.2"),
    ],
)
def test_tables_that_make_no_sense_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        DrugTargetAIR().fit(table)


def test_notes_in_a_long_table_are_left_alone() -> None:
    assert as_pairs(long_of(WIDE).assign(source="paper")).n_ratings == 48


def changed(row: str, column: str, value: float) -> pd.DataFrame:
    table = SIMILARITY.copy()
    table.loc[row, column] = value
    return table


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1 - SIMILARITY, "found 0 everywhere, as distances have it"),
        (100 * SIMILARITY, "on a scale of 0..100, divide by 100"),
        (SIMILARITY - 0.5, "in [0, 1], found -0.5"),
        (changed("drug 1", "drug 2", 0.2), "a symmetric drug_similarity"),
        (changed("drug 1", "drug 1", 0.2), "largest between an id and itself, found 0.2 for 'drug 1'"),
        (SIMILARITY.rename(index={"drug 1": "Drug-1"}), "'drug 1' (the nearest is 'Drug-1')"),
        (pd.concat([SIMILARITY, SIMILARITY.iloc[:1]]), "each id once in its rows"),
        (changed("drug 1", "drug 2", np.nan), "in [0, 1], found nan"),
    ],
)
def test_similarities_that_are_none_are_refused(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        DrugTargetAIR().fit(WIDE, drug_similarity=given)


def test_a_little_asymmetry_is_told_once_and_evened() -> None:
    with pytest.warns(DataWarning, match="a little off symmetry, 0.65 from 'drug 1'") as caught:
        uneven = DrugTargetAIR().fit(WIDE, drug_similarity=changed("drug 1", "drug 2", 0.65))
    assert (len(caught), caught[0].filename) == (1, __file__)
    even = changed("drug 1", "drug 2", 0.675)
    even.loc["drug 2", "drug 1"] = 0.675
    np.testing.assert_allclose(uneven.scores_, DrugTargetAIR().fit(WIDE, drug_similarity=even).scores_, atol=1e-12)


def test_drugs_without_any_evidence_are_told() -> None:
    hidden = WIDE.copy()
    hidden.loc["drug 1"] = np.nan
    with pytest.warns(DataWarning, match="1 drug.s. have no recorded pair, \\['drug 1'\\], and no sim") as caught:
        DrugTargetAIR().fit(hidden)
    assert caught[0].filename == __file__
    DrugTargetAIR().fit(hidden, drug_similarity=SIMILARITY)  # no warning


def test_an_unknown_drug_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownIdError, match="'drug1' \\(the nearest is 'drug 1'\\)"):
        DrugTargetAIR().fit(WIDE).predict("drug1", "t1")


def test_features_of_drugs_serve_as_their_similarity() -> None:
    bits = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 5))), DRUGS)
    found = DrugTargetAIR().fit(WIDE.drop(index="drug 7"), drug_similarity=feature_similarity(bits))
    assert found.predict("drug 7", "t5")[0] > 0.5 > found.predict("drug 7", "t0")[0]
