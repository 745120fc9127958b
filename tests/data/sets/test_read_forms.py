"""Files of ratings in other forms: a user a row, without a header line, and with columns of other names."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys.datasets import read_ratings
from air_recsys.exceptions import DataFileError, ParameterError

Write = Callable[..., Path]
WIDE = "reader,Emma,Dracula\nann,5,\nbob,,4\neve,1,2.5\n"
DENSE = [[5, np.nan], [np.nan, 4], [1, 2.5]]
PLAIN = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t1\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", WIDE),
        ("mine.csv", WIDE.replace(",", ";")),
        ("mine.tsv", WIDE.replace(",", "\t")),
        ("mine.csv", WIDE.replace("reader", "")),
        ("mine.csv", WIDE.replace("reader", "User")),
        ("mine.csv.gz", gzip.compress(WIDE.encode(), mtime=0)),
        ("mine.csv", "\ufeff" + WIDE.replace("\n", "\r\n")),
    ],
)
def test_a_user_a_row_and_an_item_a_column(write: Write, name: str, content: str | bytes) -> None:
    data = read_ratings(write(content, name))
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == (["ann", "bob", "eve"], ["Emma", "Dracula"])
    np.testing.assert_array_equal(data.to_dense(), DENSE)


def test_ids_that_are_numbers_become_integers(write: Write) -> None:
    data = read_ratings(write("user,10,20\n1,5,\n2,,4\n"))
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([1, 2], [10, 20])


def test_a_wide_parquet_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(DENSE, index=["ann", "bob", "eve"], columns=["Emma", "Dracula"])
    for table in (frame, frame.rename_axis("reader").reset_index()):
        table.to_parquet(tmp_path / "mine.parquet")
        data = read_ratings(tmp_path / "mine.parquet")
        assert data.user_ids.tolist() == ["ann", "bob", "eve"]
        np.testing.assert_array_equal(data.to_dense(), DENSE)


def test_likes_are_what_is_neither_empty_nor_zero(write: Write) -> None:
    data = read_ratings(write("reader,Emma,Dracula\nann,3,0\nbob,,1\n"), rating=None)
    np.testing.assert_array_equal(data.to_dense(), [[1, np.nan], [np.nan, 1]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WIDE.replace("4", "many"), "found 'many' for item 'Dracula', where a number is expected, with user number 2"),
        (WIDE.replace("eve", "ann"), "found the user 'ann' twice"),
        (WIDE.replace("Dracula", "Emma"), "found the item 'Emma' twice"),
        (WIDE.replace("eve", ""), "found a row without a user in its first column"),
        (WIDE.replace("4", "-4"), "ratings must be >= 0"),
        (
            "who,what,how\nann,x,5\n",
            r"expected the column\(s\) \['user', 'item', 'rating'\].*found 'x' for item 'what'",
        ),
    ],
)
def test_what_is_broken_in_a_wide_file_is_told(write: Write, content: str, message: str) -> None:
    with pytest.raises(DataFileError, match=message):
        read_ratings(write(content))


@pytest.mark.parametrize("header", ["User,ITEM,Rating", "USER,Item,rating"])
def test_the_case_of_names_does_not_matter(write: Write, tmp_path: Path, header: str) -> None:
    path = write(f"{header}\nann,x,5\n")
    assert read_ratings(path).to_frame().to_numpy().tolist() == [["ann", "x", 5]]
    pd.read_csv(path).to_parquet(tmp_path / "mine.parquet")
    assert read_ratings(tmp_path / "mine.parquet").to_frame().to_numpy().tolist() == [["ann", "x", 5]]


def test_the_columns_that_are_probably_meant_are_named(write: Write, tmp_path: Path) -> None:
    path = write("userId,movieId,rating,timestamp\n1,7,5,0\n")
    pd.read_csv(path).to_parquet(tmp_path / "mine.parquet")
    meant = "is user='userId', item='movieId' meant, for Interactions.from_frame and read_ratings"
    for file in (path, tmp_path / "mine.parquet"):
        with pytest.raises(DataFileError, match=re.escape(meant)):
            read_ratings(file)
    assert read_ratings(path, user="userid", item="MOVIEID").n_ratings == 1


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("u.data", PLAIN, {}),
        ("u.data", PLAIN.replace("\t", "|"), {"sep": "|"}),
        ("u.csv", PLAIN.replace("\t", ","), {}),
        ("u.data.gz", gzip.compress(PLAIN.encode(), mtime=0), {}),
    ],
)
def test_a_file_without_a_header_line(write: Write, name: str, content: str | bytes, how: dict[str, Any]) -> None:
    path, columns = write(content, name), ["user", "item", "rating", "timestamp"]
    data = read_ratings(path, columns=columns[:3], **how)
    assert data.to_frame().to_numpy().tolist() == [[196, 242, 3], [186, 302, 3], [196, 302, 1]]
    timed = read_ratings(path, columns=columns, timestamp="timestamp", **how)
    assert timed.timestamps is not None
    assert timed.timestamps.tolist() == [881250949, 891717742, 1]
    with pytest.raises(DataFileError, match=r"without a header line needs columns=\['user', 'item', 'rating'\]"):
        read_ratings(path, **how)


def test_likes_without_a_header_line(write: Write) -> None:
    data = read_ratings(write("ann,x\nbob,y\n"), rating=None, columns=["user", "item"])
    assert data.to_frame().to_numpy().tolist() == [["ann", "x", 1], ["bob", "y", 1]]


@pytest.mark.parametrize(
    ("content", "columns", "error", "message"),
    [
        ("ann,x\n", ["user", "item"], ParameterError, r"expected the column\(s\) \['rating'\]"),
        ("ann,x\n", ["user", "item", "rating"], DataFileError, "line 1: expected 3 fields separated by ','"),
        ("ann,x,5\nbob,y\n", ["user", "item", "rating"], DataFileError, "line 2: expected 3 fields"),
        ("ann,x,5\nbob,y,3,4\n", ["user", "item", "rating"], DataFileError, "line 2: expected 3 fields"),
        ("user,item,rating\nann,x,5\n", ["user", "item", "rating"], DataFileError, "line 1: expected a finite number"),
    ],
)
def test_names_that_do_not_fit_are_told(
    write: Write, content: str, columns: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_ratings(write(content), columns=columns)


def test_a_parquet_file_has_names_of_its_own(tmp_path: Path) -> None:
    pd.DataFrame({"user": [1], "item": [2], "rating": [3]}).to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(ParameterError, match=r"found mine\.parquet, which has names of its own"):
        read_ratings(tmp_path / "mine.parquet", columns=["a", "b", "c"])
