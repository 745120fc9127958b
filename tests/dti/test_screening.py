"""Screening: the answers of `fold_in` for a library of any size and form."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.dti import DrugTargetAIR, screen
from air_recsys.exceptions import DataError, DataFileError, DataWarning, UnknownIdError

pytest.importorskip("rdkit")

KNOWN = {f"d{k}": f"{'C' * (k + 1)}{'O' if k < 6 else 'c1ccccc1'}" for k in range(12)}
TABLE = pd.DataFrame(np.kron(np.eye(2), np.ones((6, 3))), list(KNOWN), [f"t{k}" for k in range(6)])
LIBRARY = {f"x{k}": f"{'C' * (k % 7 + 1)}{'OC' if k % 2 else 'c1ccncc1'}{'N' * (k // 14)}" for k in range(28)}


@pytest.fixture(scope="module")
def model() -> DrugTargetAIR:
    return DrugTargetAIR().fit(TABLE, {"smiles": KNOWN})


def written(path: Path, form: str) -> Path:
    lines = {
        "names": [f"{text}\t{id}" for id, text in LIBRARY.items()],
        "blanks": [f"{text} {id}" for id, text in LIBRARY.items()],
        "header": ["smiles title", *(f"{text} {id}" for id, text in LIBRARY.items())],
        "table": ["id,weight,SMILES", *(f"{id},1,{text}" for id, text in LIBRARY.items())],
        "gzip": [f"{text}\t{id}" for id, text in LIBRARY.items()],
    }[form]
    content = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(content) if form == "gzip" else content)
    return path


def test_each_compound_has_the_score_of_fold_in(model: DrugTargetAIR) -> None:
    found = screen(model, LIBRARY, n=200)
    assert len(found) == 28 * 6
    new = model.fold_in(drug_similarity={"smiles": LIBRARY})
    expected = [new.predict(row.drug, row.target)[0] for row in found.itertuples()]
    np.testing.assert_allclose(found["score"], expected, atol=1e-9)
    assert (np.diff(found["score"]) <= 0).all()
    told = [new.predict_proba(row.drug, row.target)[0] for row in found.itertuples()]
    np.testing.assert_allclose(found["probability"], told, atol=1e-9)
    assert set(found.query("target == 't0'").head(5)["nearest"]) <= {f"d{k}" for k in range(6)}
    pd.testing.assert_frame_equal(screen(model, LIBRARY, n=7), found.head(7))
    one = screen(model, LIBRARY, ["t4"], n=3)
    assert set(one["target"]) == {"t4"}


@pytest.mark.parametrize("form", ["names", "blanks", "header", "table", "gzip"])
def test_every_form_of_a_library_is_read(model: DrugTargetAIR, form: str, tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(
        screen(model, written(tmp_path / "library.smi", form), n=20), screen(model, LIBRARY, n=20)
    )


def test_blocks_and_processes_change_nothing(model: DrugTargetAIR, tmp_path: Path) -> None:
    path = tmp_path / "library.smi"
    path.write_text("\n".join("C" * (k % 40 + 1) + "O" * (k // 40 % 3) for k in range(2100)))  # no names: their lines
    one = screen(model, path, "t0", n=50)
    assert one["drug"].str.fullmatch(r"\d+").all()
    pd.testing.assert_frame_equal(screen(model, path, "t0", n=50, n_processes=2), one)


def test_what_does_not_parse_is_told_and_left_out(model: DrugTargetAIR, tmp_path: Path) -> None:
    with pytest.warns(
        DataWarning, match=re.escape("2 of 30 SMILES do not parse and are left out: bad: 'C1CC', not SMILES")
    ):
        found = screen(model, LIBRARY | {"bad": "C1CC", "worse": ""}, n=500)
    assert not {"bad", "worse"} & set(found["drug"])
    polymer = screen(model, {"polymer": "NC" * 1000}, n=1)
    assert np.isfinite(polymer["score"]).all()
    path = tmp_path / "library.smi"
    path.write_text("not\nstructures\n")
    with pytest.raises(DataFileError, match="expected SMILES in the first or the second line"):
        screen(model, path)


@pytest.mark.parametrize(
    ("given", "target", "error", "message"),
    [
        ({"x": "C1CC"}, None, DataError, "none that parses"),
        ([1], None, DataError, "expected a path, or SMILES by id"),
        ({"x": "CC"}, "t9", UnknownIdError, "t9"),
    ],
)
def test_bad_libraries_are_refused(model: DrugTargetAIR, given: Any, target: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        screen(model, given, target)


def test_a_model_without_structures_says_what_it_needs() -> None:
    with pytest.raises(DataError, match="fit it with smiles among"):
        screen(DrugTargetAIR().fit(TABLE), LIBRARY)
