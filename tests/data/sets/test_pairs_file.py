"""Files of pairs, squares and texts: what a laboratory writes is read, anything else is refused with its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.datasets import read_pairs, read_square, read_texts
from air_recsys.exceptions import DataFileError


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".parquet"])
def test_wide_tables_keep_names_and_gaps(tmp_path: Path, ending: str) -> None:
    table = pd.DataFrame({"t1": [1, 0], "t2": [np.nan, 1]}, index=["aspirin", "007"])
    path, named = tmp_path / f"pairs{ending}", table.reset_index(names="compound")
    if ending == ".parquet":
        named.to_parquet(path)
    else:
        named.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    found = read_pairs(path)
    assert (found.index.tolist(), found.columns.tolist()) == (["aspirin", "007"], ["t1", "t2"])
    np.testing.assert_array_equal(found.to_numpy(dtype=float), table)


def test_long_tables_get_the_names_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("cid,protein,hit,assay\n01,P1,1,x\n2,P2,0,y\n")
    found = read_pairs(path, drug="cid", target="protein", value="hit")
    assert found.to_dict("list") == {"drug": ["01", "2"], "target": ["P1", "P2"], "interaction": [1, 0]}
    path.write_text("drug,target\n1,P1\n2,P2\n")
    assert read_pairs(path)["drug"].tolist() == [1, 2]


def test_texts_come_from_tables_and_from_fasta(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tsmiles\tname\nc1\tCCO\tethanol\n")
    assert read_texts(tmp_path / "a.tsv").to_dict() == {"c1": "CCO"}
    (tmp_path / "a.fa").write_text("\n>s1 first\nMK\n\nVL\n>s2\nGG\n")
    assert read_texts(tmp_path / "a.fa").to_dict() == {"s1": "MKVL", "s2": "GG"}


@pytest.mark.parametrize(
    ("read", "name", "text", "message"),
    [
        (read_pairs, "a.csv", "drug,target\nx,\n", "found row 1 without"),
        (read_pairs, "a.csv", "compound\nx\n", "a column of names and columns of values"),
        (read_pairs, "a.csv", "compound,t1\n,1\n", "a name in the first column"),
        (read_pairs, "a.xlsx", "", "xlsx"),
        (read_square, "a.csv", ",a,b\na,1,0\n", "1 rows and 2 columns"),
        (read_square, "a.csv", ",a,c\na,1,0\nb,0,1\n", "a square table"),
        (read_texts, "a.csv", "id\nx\n", "a column of ids and one of texts"),
        (read_texts, "a.csv", "id,s\nx,CC\nx,CO\n", "found again: 'x'"),
        (read_texts, "a.fasta", "MKVL\n>a\nMK\n", "a line with > and an id first"),
        (read_texts, "a.fasta", "> \nMK\n", "an id after each >"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, read: Callable[..., Any], name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataFileError, match=message) as found:
        read(tmp_path / name)
    assert name in str(found.value)
