"""Measurements of pairs: units, limits, repetitions, and files of BindingDB and ChEMBL. All rows are made up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import AIR, Interactions
from air_recsys.datasets import read_measurements
from air_recsys.dti import as_p_affinity
from air_recsys.exceptions import DataError, DataFileError, DataWarning

COLUMNS = ["drug", "target", "value", "unit", "relation"]


def table(*rows: tuple[Any, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS[: len(rows[0])])


def pairs(frame: pd.DataFrame) -> dict[tuple[str, str], tuple[float, str]]:
    return {(row["user"], row["item"]): (round(row["rating"], 6), row["relation"]) for row in frame.to_dict("records")}


def test_units_are_those_of_each_row_and_relations_turn() -> None:
    rows = [("a", "t", "10", "nM"), ("b", "t", "> 10", "uM"), ("c", "t", "<=1e-3", "µM"), ("d", "t", 1, "mol/L")]
    rows[3] = ("d", "t", "1e-8", "M")
    found = pairs(as_p_affinity(table(*rows)))
    assert found == {("a", "t"): (8, "="), ("b", "t"): (5, "<"), ("c", "t"): (9, ">"), ("d", "t"): (8, "=")}
    by_column = table(("a", "t", 10.0, "nM", "'='"), ("b", "t", 10.0, "uM", "'>'"))
    assert pairs(as_p_affinity(by_column)) == {("a", "t"): (8, "="), ("b", "t"): (5, "<")}
    of_one_unit = by_column.drop(columns="unit").rename(columns={"value": "Kd"})
    assert pairs(as_p_affinity(of_one_unit, unit="pM"))["a", "t"] == (11, "=")


def test_repetitions_are_merged_and_sure_means_weigh_more() -> None:
    alike, apart = [("a", "t", 10.0)] * 4, [("b", "t", value) for value in (0.1, 10.0, 1000.0, 10.0)]
    found = as_p_affinity(table(*alike, *apart, ("c", "t", 10.0)), unit="nM").set_index("user")
    assert found["rating"].tolist() == pytest.approx([8, 8, 8])
    weights = found["weight"].to_dict()
    assert 2 > weights["a"] > weights["b"] > 0
    assert weights["c"] == 1 < weights["a"]
    assert "weight" not in as_p_affinity(table(("a", "t", 10.0), ("b", "t", 10.0)), unit="nM")


def test_limits_are_joined_with_what_is_measured() -> None:
    rows = [
        ("a", "t", ">1"),
        ("a", "t", ">10"),
        ("b", "t", "<1"),
        ("b", "t", ">0.01"),
        ("c", "t", 100),
        ("c", "t", ">10"),
    ]
    found = pairs(as_p_affinity(table(*rows), unit="uM"))
    assert found == {("a", "t"): (5, "<"), ("b", "t"): (7, "="), ("c", "t"): (4, "=")}


def test_limits_that_contradict_are_named() -> None:
    rows = [("a", "t", 0.01), ("a", "t", 0.02), ("a", "t", ">1"), ("b", "u", "<1"), ("b", "u", ">10"), ("c", "t", 1)]
    with pytest.warns(DataWarning, match=r"limits contradict .* of 2 pairs.*\('a', 't'\), \('b', 'u'\)"):
        found = as_p_affinity(table(*rows), unit="uM")
    assert set(pairs(found)) == {("a", "t"), ("c", "t")}
    assert found["relation"].tolist() == ["=", "="]


@pytest.mark.parametrize(
    ("rows", "unit", "message"),
    [
        ([("a", "t", 1.0)], None, "expected the unit of the values"),
        ([("a", "t", 1.0, "nM"), ("b", "t", 1.0, None)], None, r"none in 1 rows: \[1\]"),
        ([("a", "t", 1.0, "nM"), ("b", "t", 1.0, "%")], None, r"found others \(\['%'\]\) .* \[1\]"),
        ([("a", "t", 1.0), ("b", "t", 0.0), ("c", "t", -1.0)], "nM", r"in 2 rows: \[1, 2\]"),
        ([("a", "t", 1.0), ("b", None, 2.0)], "nM", r"found none in rows \[1\]"),
        ([("a", "t", ">1", "nM", "<")], None, r"as the relations say, found others in rows \[0\]"),
        ([("a", "t", 1.0, "nM", None)], None, "expected the relations"),
        ([("a", "t", "much")], "nM", "must be numbers, found 'much'"),
    ],
)
def test_what_says_no_affinity_is_refused_with_its_rows(rows: list[Any], unit: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        as_p_affinity(table(*rows), unit=unit)


def test_what_comes_out_is_ready_for_a_model() -> None:
    rng = np.random.default_rng(0)
    rows = [(f"d{i}", f"t{j}", f"{'>' * (i % 3 == 0)}{rng.uniform(1, 1e5):.3f}") for i in range(12) for j in range(8)]
    found = as_p_affinity(table(*rows), unit="nM")
    model = AIR.for_ratings(random_state=0, device="cpu").fit(found)
    assert np.count_nonzero(np.asarray(model.interactions_.relations)) == 32
    assert Interactions.from_frame(found, relation="relation").n_ratings == 96


# -------------------------------------------------------------------- files

SEQUENCE = "BindingDB Target Chain  Sequence"
HEADER = (
    *("BindingDB MonomerID", "Ligand SMILES", "Target Name", "Ki (nM)", "IC50 (nM)", "Kd (nM)", "EC50 (nM)"),
    "Number of Protein Chains in Target (>1 implies a multichain complex)",
    *(SEQUENCE, "UniProt (SwissProt) Primary ID of Target Chain", SEQUENCE),
)
BINDINGDB = [
    "\t".join(HEADER),
    "11\tCCO\tmade kinase\t 5\t\t\t\t1\tMSR\tX1\t",
    "11\tCCO\tmade kinase\t\t>10000\t\t\t1\tMSR\tX1\t",
    '12\tCC"N\tmade kinase\t<0.5\t\t\t\t1\tMSR\tX1\t',
    "12\tCCN\tmade pair\t3\t\t\t\t2\tMSK\tX2\tMSL",
    "13\tCCC\tmade other\t7\t\t\t\t1\tMSK\t\t",
]
CHEMBL = [
    "Molecule ChEMBL ID;Smiles;Standard Type;Standard Relation;Standard Value;Standard Units;Data Validity Comment;"
    "Target ChEMBL ID",
    '"M1";"CCO";"Ki";"\'=\'";"5.0";"nM";"";"T1"',
    '"M2";"CCN";"Ki";"\'>\'";"10";"uM";"";"T1"',
    '"M2";"CCN";"Ki";"\'=\'";"1e9";"nM";"Outside typical range";"T2"',
    '"M3";"CCC";"Inhibition";"\'=\'";"50";"%";"";"T1"',
    '"M3";"CCC";"Ki";"";"50";"nM";"";"T1"',
]


def test_a_table_of_bindingdb_is_read_by_its_columns(tmp_path: Path) -> None:
    file = tmp_path / "made.tsv"
    file.write_text("\n".join(BINDINGDB) + "\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read_measurements(file, "Ki")
    assert [str(each.message).split(": ")[1] for each in told] == [
        "1 values without a drug or a target are left out",
        "1 values of targets of several chains are left out",
    ]
    assert pairs(found.table) == {
        ("11", "X1"): (pytest.approx(8.30103), "="),
        ("12", "X1"): (pytest.approx(9.30103), ">"),
    }
    assert found.smiles.to_dict() == {"11": "CCO", "12": 'CC"N'}
    assert found.sequences.to_dict() == {"X1": "MSR"}
    with pytest.raises(DataFileError, match="expected one endpoint, found Ki 4, IC50 1: name it, as endpoint='Ki'"):
        read_measurements(file)


def test_activities_of_chembl_are_read_by_their_columns(tmp_path: Path) -> None:
    file = tmp_path / "made.csv"
    file.write_text("\n".join(CHEMBL) + "\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read_measurements(file)
    assert [str(each.message).split(": ")[1] for each in told] == [
        "1 values without a relation are left out",
        "1 values that ChEMBL doubts are left out",
    ]
    assert pairs(found.table) == {("M1", "T1"): (pytest.approx(8.30103), "="), ("M2", "T1"): (5, "<")}
    assert found.smiles.to_dict() == {"M1": "CCO", "M2": "CCN"}
    assert found.sequences.empty


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [line.replace("Standard Value", "Value") for line in lines], "no columns .*standard value"),
        (lambda lines: lines[:1] + lines[4:5], "expected values of .*, found none"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, change: Callable[[list[str]], list[str]], message: str) -> None:
    file = tmp_path / "made.csv"
    file.write_text("\n".join(change(CHEMBL)) + "\n")
    with pytest.raises(DataFileError, match=message):
        read_measurements(file)
