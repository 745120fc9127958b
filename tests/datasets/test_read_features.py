"""Tables of features from files, and those of MovieLens."""

from __future__ import annotations

import pandas as pd
import pytest

from air_recsys.datasets import load_movielens_users, read_features
from air_recsys.exceptions import DataFileError

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
