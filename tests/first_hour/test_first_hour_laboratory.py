"""A first hour with a laboratory's matrix: names of compounds and proteins, 1 and 0, and what was not measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from first_hour_cases import answers, refuses, shell

from air_recsys.dti import DrugTargetAIR
from air_recsys.exceptions import DataError

COMPOUNDS, PROTEINS = [f"C-{row:03d}" for row in range(16)], [f"kinase {column}" for column in range(9)]


def measured() -> pd.DataFrame:
    """Compounds of three series hit the proteins of one family each; two pairs were not measured."""
    hits = (np.arange(16)[:, None] % 3 == np.arange(9) % 3).astype(float)
    hits[0, 3] = hits[4, 8] = np.nan
    return pd.DataFrame(hits, COMPOUNDS, PROTEINS)


def structures() -> pd.DataFrame:
    """Fingerprints by series, in another order than the matrix, with a compound that was never measured."""
    rng = np.random.default_rng(0)
    names = [*COMPOUNDS[::-1], "C-new"]
    series = np.array([*(np.arange(16) % 3)[::-1], 1])
    bits = np.where(series[:, None] == np.arange(30) % 3, 0.9, 0.1)
    return pd.DataFrame((rng.random(bits.shape) < bits).astype(int), names, [f"bit{k}" for k in range(30)])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the hour: the matrix, the fingerprints, and a model of both."""
    folder = tmp_path_factory.mktemp("laboratory")
    measured().to_csv(folder / "hits.csv", index_label="compound")
    structures().to_csv(folder / "bits.csv", index_label="compound")
    line = f"air-recsys dti train {folder}/hits.csv --drug-features {folder}/bits.csv --model {folder}/hits.air"
    told = shell(line)
    assert (told.status, told.err) == (0, "")
    assert "17 drugs, 9 targets, 47 known interactions, 95 pairs recorded as 0" in told.out
    return folder


def test_what_was_not_measured_is_ranked_with_names(bench: Path) -> None:
    header, first, *_ = answers(f"air-recsys dti rank {bench}/hits.air --drug C-000 --target 'kinase 3'")
    assert header[:3] == ["drug", "target", "probability"]
    assert first[:3] == ["C-000", "kinase", "3"]
    assert 0.5 < float(first[3]) < 1
    unlike = answers(f"air-recsys dti rank {bench}/hits.air --drug C-004 --target 'kinase 8'")[1]
    assert float(unlike[3]) < 0.5


def test_a_new_compound_is_predicted_by_its_series_and_told_why(bench: Path) -> None:
    rows = answers(f"air-recsys dti rank {bench}/hits.air --drug C-new --n 3")[1:]
    assert {words[2] for words in rows} == {"1", "4", "7"}
    told = shell(f"air-recsys dti explain {bench}/hits.air --drug C-new --target 'kinase 1'")
    assert (told.status, told.err) == (0, "")
    assert told.out.startswith("drug C-new, target kinase 1: probability 0.")
    refuses(f"air-recsys dti explain {bench}/hits.air --drug C-nwe --target 'kinase 1'", "'C-nwe'", "'C-new'")


def test_tables_that_do_not_fit_are_refused_with_the_mend(bench: Path) -> None:
    train = f"air-recsys dti train {bench}/hits.csv --model {bench}/no.air"
    square = pd.DataFrame(1 - np.eye(16), COMPOUNDS, COMPOUNDS)
    square.to_csv(bench / "distances.csv")
    refuses(f"{train} --drug-similarity {bench}/distances.csv", "distance")
    structures().drop(index="C-005").to_csv(bench / "short.csv", index_label="compound")
    refuses(f"{train} --drug-features {bench}/short.csv", "'C-005'")
    measured().astype(object).replace({1.0: "yes"}).to_csv(bench / "text.csv", index_label="compound")
    refuses(f"air-recsys dti train {bench}/text.csv --model {bench}/no.air", "'yes'")
    assert not (bench / "no.air").exists()


def test_python_keeps_the_names_too() -> None:
    model = DrugTargetAIR().fit(measured())
    found = model.new_interactions(1, drug_ids="C-000", target_ids="kinase 3")
    assert found[["drug", "target", "known"]].values.tolist() == [["C-000", "kinase 3", False]]
    with pytest.raises(DataError, match="distance"):
        DrugTargetAIR().fit(measured(), pd.DataFrame(1 - np.eye(16), COMPOUNDS, COMPOUNDS))
