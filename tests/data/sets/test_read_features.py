"""Tables of features from files, and those of MovieLens."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from air_recsys.datasets import load_movielens_users, read_features, read_similarity
from air_recsys.exceptions import DataError, DataFileError

FRAME = pd.DataFrame({"item": [7, 8], "year": [1990.0, None], "genres": ["Drama|War", "War"]})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt.gz", "t.parquet"])
def test_files_of_every_kind_are_alike(tmp_path, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        FRAME.to_parquet(path, index=False)
    else:
        FRAME.to_csv(path, index=False, sep="," if "csv" in name else "\t")
    pd.testing.assert_frame_equal(read_features(path, "item"), FRAME.set_index("item"), check_dtype=False)


def test_ids_that_are_not_all_integers_stay_as_written(tmp_path):
    (tmp_path / "t.csv").write_text("user,age\n007,3\n7,4\n")
    assert read_features(tmp_path / "t.csv", "user").index.tolist() == ["007", "7"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "id,age\n1,2\n", "expected the column 'user', found"),
        ("t.csv", "user,age\n1,2\n,3\n", "every row needs its 'user'"),
        ("t.csv", "", "expected a table of features"),
        ("t.xls", "x", "ends in one of .csv"),
        ("t.parquet", "no parquet", "expected a table of features"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataFileError, match=message):
        read_features(tmp_path / name, "user")
    with pytest.raises(DataFileError, match="found no file"):
        read_features(tmp_path / "absent.csv", "user")


def test_users_of_100k_and_1m(tmp_path):
    for folder, name, text in (
        ("ml-100k", "u.user", "1|24|M|technician|85711\n2|53|F|other|94043\n"),
        ("ml-1m", "users.dat", "1::M::24::10::48067\n2::F::53::16::70072\n"),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    found, other = load_movielens_users(tmp_path), load_movielens_users(tmp_path, "1m")
    assert found.columns.tolist() == other.columns.tolist() == ["age", "gender", "occupation"]
    assert found["age"].tolist() == other["age"].tolist() == [24, 53]
    assert other["occupation"].tolist() == ["10", "16"]
    (tmp_path / "ml-100k" / "u.user").write_text("1|24|M|technician|85711\n1|53|F|other|94043\n")
    with pytest.raises(DataFileError, match="a user id of its own"):
        load_movielens_users(tmp_path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.parquet"])
def test_pairs_and_square_tables_are_alike(tmp_path, name):
    pairs = pd.DataFrame({"a": [7, 8, 9, 9], "b": [8, 7, 8, 9], "weight": [0.5, 0.5, 0.25, 1.0]})
    square = pd.DataFrame({"id": [7, 8, 9], "7": [1, 0.5, 0], "8": [0.5, 1, 0.25], "9": [0, 0.25, 1]})
    graphs = []
    for kind, table in (("pairs", pairs), ("square", square)):
        path = tmp_path / f"{kind}.{name}"
        if name.endswith("parquet"):
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, sep="," if "csv" in name else "\t")
        graphs.append(read_similarity(path, "item"))
    assert graphs[0].ids.tolist() == graphs[1].ids.tolist() == [7, 8, 9]
    for graph in graphs:
        np.testing.assert_allclose(graph.to_scipy().toarray(), [[0, 0.5, 0], [0.5, 0, 0.25], [0, 0.25, 0]])


def test_ids_of_similarities_stay_as_written(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,w\n007,7,0.5\nx,7,1\n")
    assert read_similarity(tmp_path / "t.csv", "user").ids.tolist() == ["007", "7", "x"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,w\n1,2,0.5\n2,1,0.4\n", "one similarity a pair, found two of 1 and 2"),
        ("a,b,w\n1,2,much\n", "two ids and a number in each row"),
        ("a,b,w\n1,,0.4\n", "two ids and a number in each row"),
        ("a,b\n1,2\n", "expected three columns"),
        ("a,b,c,d\n1,2,3,4\n", "expected three columns"),
        ("a\n1\n", "expected pairs with a similarity"),
        ("a,b,w\n1,2,-0.5\n", r"similarities >= 0, found -0\.5"),
    ],
)
def test_what_is_no_table_of_similarities_is_named(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises((DataError, DataFileError), match=message):
        read_similarity(tmp_path / "t.csv", "item")
