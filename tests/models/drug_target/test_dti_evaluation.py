"""Hidden pairs of own data: measures that rank systems as they should, and what cannot be measured is refused."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from air_recsys.dti import (
    DrugTargetAIR,
    as_p_affinity,
    enrichment,
    enrichment_curve,
    evaluate_pairs,
    hidden_enrichment,
)
from air_recsys.exceptions import DataError, DataWarning, ParameterError


def grouped(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = np.kron(np.eye(3), np.ones((8, 6)))
    values = np.where(rng.random(values.shape) < 0.1, 1 - values, values)
    return pd.DataFrame(values, [f"d{k}" for k in range(24)], [f"t{k}" for k in range(18)])


def alike(ids: pd.Index) -> pd.DataFrame:
    size = len(ids) // 3
    return pd.DataFrame(np.kron(np.eye(3), np.full((size, size), 0.6)) + 0.4 * np.eye(3 * size), ids, ids)


def test_a_model_that_knows_the_groups_is_above_counts() -> None:
    found = evaluate_pairs(DrugTargetAIR(), grouped(), n_splits=5).set_index("system")
    assert list(found.index) == ["DrugTargetAIR", "interaction profiles (GIP)", "counts of interactions"]
    precision = found["average_precision"]
    assert precision["DrugTargetAIR"] > precision["counts of interactions"] + 0.2
    assert found.loc["DrugTargetAIR", "calibration_error"] < 0.15
    assert (found["average_precision_se"] > 0).all()


@pytest.mark.parametrize("setting", ["cvs2", "cvs3", "cvs4"])
def test_whole_drugs_and_targets_are_predicted_from_similarities(setting: str) -> None:
    table = grouped()
    given = alike(table.index), alike(table.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate_pairs(DrugTargetAIR(), table, *given, setting=setting, n_splits=4)
    assert found["system"].tolist() == ["DrugTargetAIR", "counts of interactions"]
    assert found.loc[0, "auroc"] > 0.85
    with pytest.raises(DataError, match="hides whole"):
        evaluate_pairs(DrugTargetAIR(), table, setting=setting)


def test_interactions_alone_have_zeros_beside_them() -> None:
    table = grouped().sort_index().sort_index(axis=1)
    pairs = table.stack().rename_axis(["drug", "target"]).rename("interaction").reset_index()
    known = pairs[pairs["interaction"] == 1].drop(columns="interaction")
    first = evaluate_pairs(DrugTargetAIR(), table, n_splits=3)
    pd.testing.assert_frame_equal(evaluate_pairs(DrugTargetAIR(), known, n_splits=3), first)
    assert hidden_enrichment(DrugTargetAIR(), known, share=0.1) == hidden_enrichment(DrugTargetAIR(), table, share=0.1)


def test_what_cannot_be_measured_is_refused() -> None:
    single = pd.DataFrame(np.zeros((6, 6)))
    single.iloc[0, 0] = 1
    with pytest.raises(DataError, match="found none with both"):
        evaluate_pairs(DrugTargetAIR(), single, n_splits=3)
    with pytest.raises(ParameterError, match="setting must be one of"):
        evaluate_pairs(DrugTargetAIR(), grouped(), setting="drugs")


def test_the_curve_says_what_enrichment_says_and_ties_share() -> None:
    rng = np.random.default_rng(0)
    truth, score = rng.random(700) < 0.1, rng.integers(0, 30, 700).astype(float)
    for row in enrichment_curve(truth, score).iloc[:-1].to_dict("records"):
        assert row["enrichment"] == pytest.approx(enrichment(truth, score, row["share"]))
        assert row["hit_rate"] * row["n_top"] == pytest.approx(row["found"] * truth.sum())
    assert enrichment_curve(truth, score)["found"].iloc[-1] == 1
    assert enrichment_curve([1, 0, 0, 0], [0, 0, 0, 0])["hit_rate"].tolist() == [0.25] * 3


def test_affinities_of_mixed_units_are_named() -> None:
    nanomolar = pd.Series([3.0, 250.0, np.nan, 2e-8], ["a", "b", "c", "d"], name="Kd")
    with pytest.warns(DataWarning, match=r"1 rows have affinities below .* as if not all were in nM.*'d'"):
        found = as_p_affinity(nanomolar)
    assert found["a"] == pytest.approx(9 - np.log10(3))
    assert np.isnan(found["c"])
    table = as_p_affinity(pd.DataFrame({"t": [1e-9, 1e-6]}, ["a", "b"]), unit="M")
    assert table["t"].tolist() == pytest.approx([9, 6])
    with pytest.raises(DataError, match="found others in 1 rows: \\['b'\\]"):
        as_p_affinity(pd.Series([1.0, 0.0], ["a", "b"]))
    with pytest.raises(DataError, match="as numbers"):
        as_p_affinity(pd.Series(["1", ">10"]))
