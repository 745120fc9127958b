"""Affinities in the shell: a table of measurements, a model with structures, a new one, and how good it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import SHORT, assert_refused, cli, read_json

from air_recsys import AIR
from air_recsys.datasets import read_measurements

pytest.importorskip("rdkit")

SMILES = [f"{'C' * k}{end}" for end in ("O", "N", "c1ccccc1", "C(=O)O") for k in range(1, 7)]
SEQUENCES = [f"{'MKVLAAGIVGSTPRWWQE'[k:]}{'HHNDCYFLPK' * (k % 3)}" for k in range(10)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measurements of one's own, in nM, with limits, structures, sequences and years."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("affinities") / "measured.csv"
    users, items = np.nonzero(rng.random((len(SMILES), len(SEQUENCES))) < 0.8)
    values = 6.5 + (users // 6 - 1.5) * (items % 3 - 1) + 0.2 * rng.normal(size=users.size)
    nanomolar = np.round(10 ** (9 - np.maximum(values, 5)), 3)
    frame = pd.DataFrame({"Drug": [f"c{k:02}" for k in users], "Target": [f"t{k}" for k in items]})
    frame["Value"] = [f">{each}" if each >= 9999 else f"{each}" for each in nanomolar]
    frame = frame.assign(Unit="nM", SMILES=np.array(SMILES)[users], Sequence=np.array(SEQUENCES)[items])
    frame.assign(Year=2000 + rng.integers(8, size=len(frame))).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model(file: Path) -> Path:
    path = file.with_suffix(".air")
    ended = cli("train", file, "--model", path, *SHORT)
    assert ended.status == 0, ended.err
    assert "of them limits" in ended.out
    return path


def test_a_table_of_measurements_becomes_a_model_with_structures(file: Path, model: Path) -> None:
    loaded, found = AIR.load(model), read_measurements(file)
    data = loaded.interactions_
    assert data.to_frame()["relation"].tolist() == found.table["relation"].tolist()
    assert data.ratings == pytest.approx(found.table["rating"].to_numpy(), rel=1e-6)
    assert data.has_places == (True, True)


def test_a_new_structure_is_answered_with_interval_and_probability(model: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("drug,smiles\nnew,CCCCCCCO\n")
    how = ("--user-smiles", tmp_path / "new.csv", "--item", "t1", "--item", "t2", "--above", "7")
    ended = cli("predict", model, *how, "--json", tmp_path / "found.json")
    assert ended.status == 0, ended.err
    found = pd.DataFrame(read_json(tmp_path / "found.json"))
    assert found["user"].tolist() == ["new", "new"]
    assert np.all(found["low"] < found["score"])
    assert np.all(found["score"] < found["high"])
    folded = AIR.load(model).fold_in(similarity={"smiles": {"new": "CCCCCCCO"}})
    assert found["score"].to_numpy() == pytest.approx(folded.predict("new", ["t1", "t2"]), abs=1e-5)
    assert found["p(>7)"].to_numpy() == pytest.approx(folded.predict_above("new", ["t1", "t2"], 7), abs=1e-4)


def test_a_model_without_structures_says_what_it_needs(tmp_path: Path) -> None:
    grades = np.random.default_rng(0).integers(1, 6, size=(9, 8))
    frame = pd.DataFrame([(*pair, grade) for pair, grade in np.ndenumerate(grades)])
    frame.set_axis(["user", "item", "rating"], axis=1).to_csv(tmp_path / "plain.csv", index=False)
    assert cli("train", tmp_path / "plain.csv", "--model", tmp_path / "plain.air", *SHORT).status == 0
    (tmp_path / "new.csv").write_text("drug,smiles\nnew,CCO\n")
    ended = cli("predict", tmp_path / "plain.air", "--user-smiles", tmp_path / "new.csv", "--item", "1")
    assert_refused(ended, "fit it with user_similarity={'smiles': ...")


def test_accuracy_is_that_of_hidden_measured_values(file: Path) -> None:
    ended = cli("evaluate", file, *SHORT)
    assert ended.status == 0, ended.err
    assert "limits are for systems that know them" in ended.out
    assert_refused(cli("train", file, "--user-column", "Drug"), "does not read --user-column")


def test_affinities_are_evaluated_by_what_is_hidden(file: Path, tmp_path: Path) -> None:
    how = ("--set", "n_sweeps=10", "--set", "n_factors=2", "--folds", "2", "--json", tmp_path / "found.json")
    ended = cli("dti", "evaluate", file, "--hide", "later", *how)
    assert ended.status == 0, ended.err
    found = pd.DataFrame(read_json(tmp_path / "found.json"))
    assert found["system"].tolist() == ["AIR", "BiasModel"]
    assert found.loc[0, "mse"] < found.loc[1, "mse"]
    plain = pd.read_csv(file).assign(pKd=6.0, relation="=").drop(columns=["Value", "Unit", "SMILES", "Sequence"])
    plain.loc[::3, ["pKd", "relation"]] = [5.0, "<"]
    plain.loc[1::3, "pKd"] = 7.0
    plain.to_csv(tmp_path / "plain.csv", index=False)
    ended = cli("dti", "evaluate", tmp_path / "plain.csv", "--value-column", "pKd", *how)
    assert ended.status == 0, ended.err
    assert "limits kept" in ended.out
