"""Tables of features, similarities, pairs and texts: files of every kind are read, others are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.datasets import read_features, read_pairs, read_similarity, read_square, read_texts
from air_recsys.exceptions import DataError, DataFileError, DataWarning

read_ages = partial(read_features, id_column="user")
read_graph = partial(read_similarity, kind="item")


def write(frame: pd.DataFrame, path: Path) -> Path:
    """Write a table as the ending of its name says."""
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if ".csv" in path.name else "\t")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_features_similarities_and_pairs_of_every_kind_of_file_are_alike(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    features = pd.DataFrame({"item": [7, 8], "year": [1990.0, None], "genres": ["Drama|War", "War"]})
    found = read_features(write(features, path), "item")
    pd.testing.assert_frame_equal(found, features.set_index("item"), check_dtype=False)
    pairs = pd.DataFrame({"a": [7, 8, 9, 9], "b": [8, 7, 8, 9], "weight": [0.5, 0.5, 0.25, 1.0]})
    square = pd.DataFrame({"id": [7, 8, 9], "7": [1, 0.5, 0], "8": [0.5, 1, 0.25], "9": [0, 0.25, 1]})
    for table in (pairs, square):
        graph = read_similarity(write(table, path), "item")
        assert graph.ids.tolist() == [7, 8, 9]
        np.testing.assert_allclose(graph.to_scipy().toarray(), [[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]])
    wide = pd.DataFrame({"t1": [1, 0], "t2": [np.nan, 1]}, index=["aspirin", "007"])
    found = read_pairs(write(wide.reset_index(names="compound"), path))
    assert (found.index.tolist(), found.columns.tolist()) == (["aspirin", "007"], ["t1", "t2"])
    np.testing.assert_array_equal(found.to_numpy(dtype=float), wide)


def test_ids_that_are_not_all_integers_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,age\n007,3\n7,4\n")
    assert read_features(path, "user").index.tolist() == ["007", "7"]
    path.write_text("a,b,w\n007,7,0.5\nx,7,1\n")
    assert read_similarity(path, "user").ids.tolist() == ["007", "7", "x"]


def test_long_tables_of_pairs_get_the_names_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("cid,protein,hit,assay\n01,P1,1,x\n2,P2,0,y\n")
    found = read_pairs(path, drug="cid", target="protein", value="hit")
    assert found.to_dict("list") == {"drug": ["01", "2"], "target": ["P1", "P2"], "interaction": [1, 0]}
    path.write_text("Drug,Target\n1,P1\n2,P2\n")
    assert read_pairs(path).to_dict("list") == {"drug": [1, 2], "target": ["P1", "P2"]}


def test_targets_in_the_rows_are_said_to_be_there(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("target,d1,d2,d3\nP1,1,0,\nP2,0,1,1\n")
    assert read_pairs(path).index.name == "target"
    found = read_pairs(path, transpose=True)
    assert (found.index.tolist(), found.columns.tolist()) == (["d1", "d2", "d3"], ["P1", "P2"])
    np.testing.assert_array_equal(found, [[1, 0], [0, 1], [np.nan, 1]])


def test_texts_come_from_tables_and_from_fasta(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tsmiles\tname\nc1\tCCO\tethanol\n")
    assert read_texts(tmp_path / "a.tsv").to_dict() == {"c1": "CCO"}
    (tmp_path / "a.fa").write_text("\n>s1 first\nMK\n\nVL\n>s2\nGG\n")
    assert read_texts(tmp_path / "a.fa").to_dict() == {"s1": "MKVL", "s2": "GG"}
    (tmp_path / "a.txt").write_text(">sp|P1-2|X first\r\nMK\r\nVL\r\n> s2\r\nGG\r\n")
    assert read_texts(tmp_path / "a.txt").to_dict() == {"sp|P1-2|X": "MKVL", "s2": "GG"}
    (tmp_path / "a.csv").write_text("target,gene,Sequence\nP1,EGFR,MKVL\n")
    with pytest.warns(DataWarning, match=r"reads 'gene' of 'target', but does not read \['Sequence'\]"):
        read_texts(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("read", "name", "text", "message"),
    [
        (read_ages, "t.csv", "name,age\n1,2\n", "expected the column 'user', found"),
        (read_ages, "t.csv", "user,age\n1,2\n,3\n", "every row needs its 'user'"),
        (read_ages, "t.csv", "", "found an empty file"),
        (read_ages, "t.csv", "user,age,age\n1,2,3\n", "columns of different names, found 'age' twice"),
        (read_ages, "t.parquet", "PAR1 no parquet", "expected a Parquet file"),
        (read_graph, "t.csv", "a,b,w\n1,2,0.5\n2,1,0.4\n", "one similarity a pair, found two of 1 and 2"),
        (read_graph, "t.csv", "a,b,w\n1,2,much\n", "two ids and a number in each row"),
        (read_graph, "t.csv", "a,b\n1,2\n", "expected three columns"),
        (read_graph, "t.csv", "a\n1\n", "expected pairs with a similarity"),
        (read_graph, "t.csv", "a,b,w\n1,2,-0.5\n", r"similarities >= 0, found -0\.5"),
        (read_pairs, "a.csv", "drug,target\nx,\n", "found row 1 without"),
        (partial(read_pairs, drug="cid", target="protien"), "a.csv", "cid,protein\n1,2\n", "columns .*'protien'"),
        (partial(read_pairs, transpose=True), "a.csv", "drug,target\n1,2\n", "expected a wide table to transpose"),
        (read_pairs, "a.csv", "compound\nx\n", "a column of names and columns of values"),
        (read_pairs, "a.csv", "compound,t1\n,1\n", "a name in the first column"),
        (read_square, "a.csv", ",a,c\na,1,0\nb,0,1\n", "a square table"),
        (read_texts, "a.csv", "id\nx\n", "a column of ids and one of texts"),
        (read_texts, "a.csv", "x,CC(=O)O\ny,CO\n", "expected a header line such as id,text, found the text"),
        (read_texts, "a.csv", "x,MKVLAAGIVGLLRSTPWWQEK\ny,MKV\n", "expected a header line"),
        (read_texts, "a.csv", "id,s\nx,CC\nx,CO\n", "found again: 'x'"),
        (read_texts, "a.fasta", "MKVL\n>a\nMK\n", "a column of ids and one of texts"),
        (read_texts, "a.fasta", "> \nMK\n", "an id after each >"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, read: Callable[..., Any], name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((DataError, DataFileError), match=message) as found:
        read(tmp_path / name)
    assert read is read_graph or name in str(found.value)
    with pytest.raises(DataFileError, match="found no file"):
        read(tmp_path / "absent.csv")
