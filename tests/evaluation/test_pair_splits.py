"""Splits of drugs and targets side by side: in time, and of affinities with limits and structures' stand-ins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR
from air_recsys.data.splits.cold import split_in_time
from air_recsys.dti import DrugTargetAIR, as_p_affinity, evaluate_pairs, evaluate_splits
from air_recsys.exceptions import DataError

M, N = 24, 15


def made() -> tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]:
    """Affinities in nM that follow from features, those above 1 uM as limits, each of a year."""
    rng = np.random.default_rng(0)
    drugs, targets = (np.repeat(rng.normal(size=(n // 3, 3)), 3, axis=0) for n in (M, N))
    drugs, targets = (each + 0.1 * rng.normal(size=each.shape) for each in (drugs, targets))
    names = [f"d{i:02}" for i in range(M)], [f"t{i:02}" for i in range(N)]
    values = 6.5 + 0.6 * drugs @ targets.T + 0.1 * rng.normal(size=(M, N))
    users, items = np.nonzero(rng.random((M, N)) < 0.8)
    molar = 10 ** (9 - np.maximum(values[users, items], 6))
    frame = pd.DataFrame({"compound": np.array(names[0])[users], "kinase": np.array(names[1])[items], "Kd": molar})
    frame["relation"] = np.where(molar >= 999, ">", "=")
    frame = frame.assign(units="nM", year=rng.integers(2000, 2010, len(frame)))
    return (
        frame.sample(frac=1, random_state=0),
        {"features": pd.DataFrame(drugs, names[0])},
        {"features": pd.DataFrame(targets, names[1])},
    )


def test_affinities_are_evaluated_side_by_side_with_measures_of_values_and_of_limits() -> None:
    frame, drugs, targets = made()
    words: dict[str, Any] = {"drug": "compound", "target": "kinase", "n_splits": 3}
    air = AIR.for_ratings(n_sweeps=20, random_state=0, device="cpu")
    found = evaluate_splits(air, frame, drugs, targets, **words)
    sides = ["pairs", "compounds", "groups of compounds", "kinases", "groups of kinases", "compounds and kinases"]
    assert found["hidden"].unique().tolist() == [*sides, "later pairs"]
    assert found["system"].unique().tolist() == ["AIR", "BiasModel"]
    assert {"mse", "ci", "rm2", "inside 90 %", "limits kept", "mse_se"} <= set(found.columns)
    errors = found.pivot(index="hidden", columns="system", values="mse")
    assert np.all((errors["AIR"] < errors["BiasModel"])[["pairs", "later pairs"]])
    assert errors.loc["pairs", "AIR"] < errors.loc["groups of compounds", "AIR"]
    turned = as_p_affinity(frame.rename(columns={"compound": "drug", "kinase": "target"}))
    again = evaluate_pairs(air, turned, drugs, targets, n_splits=3)
    pd.testing.assert_frame_equal(again, found.query("hidden == 'pairs'").drop(columns="hidden"))
    with pytest.raises(DataError, match="hides whole drugs"):
        evaluate_pairs(air, turned, None, targets, setting="cvs2")


def test_later_interactions_are_hidden_whole_years_at_a_time() -> None:
    values = np.kron(np.eye(3), np.ones((6, 5)))
    drugs, targets = np.nonzero(values)
    frame = pd.DataFrame({"drug": drugs, "target": targets, "Document Year": 2000 + (drugs + targets) % 5})
    found = evaluate_splits(DrugTargetAIR(n_rounds=2), frame, n_splits=3)
    assert found["hidden"].unique().tolist() == ["pairs", "later pairs"]
    assert found.loc[found["hidden"] == "later pairs", "average_precision"].iloc[0] > 0.8
    zeros = pd.DataFrame(np.argwhere(values == 0), columns=["drug", "target"]).assign(interaction=0, date="2003-01-02")
    whole = pd.concat([frame.assign(interaction=1, date="2001-02-03").drop(columns="Document Year"), zeros])
    with pytest.raises(DataError, match="found none with both"):
        evaluate_pairs(DrugTargetAIR(n_rounds=2), whole, setting="year")
    with pytest.raises(DataError, match="expected a column year"):
        evaluate_pairs(DrugTargetAIR(n_rounds=2), pd.DataFrame(values), setting="year")


def test_a_split_in_time_hides_about_a_share_and_no_moment_in_part() -> None:
    times = np.repeat([2001.0, 2002, 2003, 2004], [50, 30, 15, 5])
    split = split_in_time(times, 0.2)
    assert times[split.test].min() > times[split.train].max()
    assert split.test.sum() == 20
    unknown = np.append(times, np.full(100, np.nan))
    assert split_in_time(unknown, 0.2).test[100:].mean() == pytest.approx(0.2, abs=0.1)
    with pytest.raises(DataError, match="different times, found 5 for all"):
        split_in_time(np.full(4, 5.0), 0.2)
