"""What a laboratory's files hold that is no plain structure, sequence or affinity: each is read, told or refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR
from air_recsys.dti import DrugTargetAIR, as_p_affinity, screen
from air_recsys.exceptions import DataError, DataWarning

pytest.importorskip("rdkit")

SMILES = {"ethanol": "CCO", "benzene": "c1ccccc1", "toluene": "Cc1ccccc1", "propanol": "CCCO"}
PAIRS = pd.DataFrame({"drug": list(SMILES), "target": ["t1", "t2", "t2", "t1"]})
SEQUENCES = {"t1": "MKVLAAGIVGSTPRWWQE" * 3, "t2": "GGSTPRWWQEHHNDCYFLPK" * 3}
POLYMER = "C" * 2000


def fitted(smiles: dict[str, str] | None = None, sequences: dict[str, str] | None = None) -> DrugTargetAIR:
    told = {"sequences": SEQUENCES | sequences} if sequences else None
    return DrugTargetAIR(n_rounds=2).fit(PAIRS, {"smiles": SMILES | (smiles or {})}, told)


def test_mixtures_charges_and_polymers_are_structures() -> None:
    with pytest.warns(DataWarning, match="under several ids .*'ethanol', 'salt'"):
        model = fitted({"salt": "CCO.[Na+].[Cl-]", "charged": "[NH3+]CC([O-])=O", "polymer": POLYMER})
    alike = pd.DataFrame(model.similarities_[0], model.drugs_.ids, model.drugs_.ids)
    assert alike.loc["salt", "ethanol"] == pytest.approx(1)
    assert np.isfinite(alike.to_numpy()).all()
    found = screen(fitted(), {"polymer": POLYMER, "mixture": "CC.CCCO", "none": "CCC"}, n=10)
    assert set(found["drug"]) == {"polymer", "mixture", "none"}
    assert found.loc[found["drug"] == "mixture", "similarity"].max() == pytest.approx(1)


@pytest.mark.parametrize("text", ["MKVLUUBZOJAAGIVGSTPRWWQE", "mkvlaagivg stprwwqe*"])
def test_rare_letters_and_small_ones_are_sequences(text: str) -> None:
    assert len(fitted(sequences={"t3": text}).targets_) == 3


@pytest.mark.parametrize(
    ("text", "told"), [("X" * 50, "more than a tenth X.*'t3'"), ("ACGT" * 10, "are bases.*'t3'.*translate them")]
)
def test_unknown_letters_and_bases_are_told_and_the_rest_goes_on(text: str, told: str) -> None:
    with pytest.warns(DataWarning, match=told):
        assert len(fitted(sequences={"t3": text}).targets_) == 3


def test_gaps_of_an_alignment_are_refused_by_name() -> None:
    with pytest.raises(DataError, match="of letters, found '-' in that of 't3'"):
        fitted(sequences={"t3": "MKV--LAAG"})


def test_a_limit_among_repeated_values_stays_without_effect_and_one_beyond_all_is_told() -> None:
    rows = [("a", "t", "100"), ("a", "t", "10000"), ("a", "t", "> 500"), ("b", "t", "10")]
    table = pd.DataFrame(rows, columns=["drug", "target", "value"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = as_p_affinity(table, unit="nM").set_index("user")
    assert found["rating"].to_dict() == {"a": pytest.approx(6), "b": pytest.approx(8)}
    beyond = pd.concat([table, pd.DataFrame([("a", "t", "> 20000")], columns=table.columns)])
    with pytest.warns(DataWarning, match=r"contradict other measurements of 1 pairs.*\('a', 't'\)"):
        assert as_p_affinity(beyond, unit="nM")["relation"].tolist() == ["=", "="]


def test_one_compound_under_two_names_is_told_whatever_its_values() -> None:
    rows = [
        ("ethanol", "t1", 1),
        ("EtOH", "t1", 1e5),
        ("ethanol", "t2", 10),
        ("EtOH", "t2", 1e4),
        ("benzene", "t1", 5),
    ]
    table = as_p_affinity(pd.DataFrame(rows, columns=["drug", "target", "value"]), unit="nM")
    smiles = {"ethanol": "CCO", "EtOH": "OCC", "benzene": "c1ccccc1"}
    model = AIR.for_ratings(n_factors=1, n_sweeps=3, random_state=0, device="cpu")
    with pytest.warns(DataWarning, match=r"stand under several ids \(by InChIKey\).*'EtOH', 'ethanol'"):
        assert model.fit(table, user_similarity={"smiles": smiles}).interactions_.n_users == 3


@pytest.mark.parametrize("given", [{"smiles": {"new": "CCO"}}, pd.DataFrame([[0.5] * 4], ["new"], list(SMILES))])
def test_a_model_of_a_plain_table_says_what_new_ones_need(given: Any) -> None:
    alike = pd.DataFrame(0.5 * np.eye(4) + 0.5, list(SMILES), list(SMILES))
    values = pd.DataFrame(np.arange(1.0, 13).reshape(4, 3), list(SMILES), list("abc"))
    model = AIR.for_ratings(n_factors=1, n_sweeps=3, random_state=0, device="cpu").fit(values, user_similarity=alike)
    with pytest.raises(DataError, match=r"fit it with user_similarity=\{'smiles'"):
        model.fold_in(similarity=given)


def test_recommendations_have_the_words_of_the_axes() -> None:
    frame = PAIRS.rename(columns={"target": "disease"})
    model = DrugTargetAIR(n_rounds=2).fit(frame, target="disease")
    lists, scores = model.recommend("ethanol", 1), model.predict_table("ethanol", ["t1", "t2"])
    assert list(lists.columns[:2]) == list(scores.columns[:2]) == ["drug", "disease"]
