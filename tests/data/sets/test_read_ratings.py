"""Files of ratings: a rating a row or a user a row, with and without a header line, and what is no such file."""

from __future__ import annotations

import gzip
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.datasets import read_ratings
from air_recsys.exceptions import AirRecsysError, DataFileError, DataWarning, ParameterError, UnknownIdError, quoted

Write = Callable[..., Path]
H = "user,item,rating\n"
LONG = H + "ann,x,5\nbob,y,3.5\n"
EXPECTED = [["ann", "x", 5.0], ["bob", "y", 3.5]]
WIDE = "reader,Emma,Dracula\nann,5,\nbob,,4\neve,1,2.5\n"
DENSE = [[5, np.nan], [np.nan, 4], [1, 2.5]]
PLAIN = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n196\t302\t1\t881250948\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "mine.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def rows(data: Interactions) -> list[list[Any]]:
    return data.to_frame()[["user", "item", "rating"]].to_numpy().tolist()


# -------------------------------------------------------------------- a rating a row


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("MINE.CSV", LONG),
        ("mine.csv.gz", gzip.compress(LONG.encode(), mtime=0)),
        ("mine.txt", LONG.replace(",", "\t")),
        ("mine.txt", LONG),
        ("mine.csv", LONG.replace(",", ";")),
        ("mine.csv", LONG.replace("\n", "\r\n")),
        ("mine.csv", "\ufeff" + LONG),
        ("mine.csv", "\n" + LONG.replace("bob", "\nbob") + "\n\n"),
        ("mine.csv", 'rating,"item",user,note\n5,x,ann,"a, ""b"""\n3.5,"y",bob,""\n'),
        ("mine.csv", LONG.replace("user,item,rating", "User,ITEM,Rating")),
    ],
)
def test_kinds_of_text(write: Write, name: str, content: str | bytes):
    assert rows(read_ratings(str(write(content, name)))) == EXPECTED


def test_own_separator_and_columns(write: Write):
    path = write("who:what:stars\nann:x:5\nbob:y:3.5\n")
    assert rows(read_ratings(path, "who", "what", "stars", sep=":")) == EXPECTED
    with pytest.raises(DataFileError, match=r"found no file .*absent.csv"):
        read_ratings(path.with_name("absent.csv"))


def test_parquet(tmp_path: Path):
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"u": ["ann", "bob"], "i": ["x", "y"], "r": [5, 3.5], "extra": [0, 0]})
    frame.rename(columns=str.upper).to_parquet(path)
    assert rows(read_ratings(path, "u", "i", "r")) == EXPECTED
    with pytest.raises(DataFileError, match=r"column\(s\) \['user'\] once each, found \['U', 'I', 'R', 'EXTRA'\]"):
        read_ratings(path, item="i", rating="r")
    with pytest.raises(ParameterError, match=r"found mine\.parquet, which names its columns itself"):
        read_ratings(path, columns=["a", "b", "c"])
    frame.set_index(["u", "i"]).to_parquet(path)
    assert rows(read_ratings(path, "u", "i", "r")) == EXPECTED
    frame.assign(r=["5", "bad"]).to_parquet(path)
    with pytest.raises(DataFileError, match="ratings must be numbers, found 'bad'"):
        read_ratings(path, "u", "i", "r")


def test_integer_ids_become_integers_and_others_stay_as_written(write: Write):
    with pytest.warns(DataWarning, match="ids such as '007' differ from others only in .* leading zeros"):
        data = read_ratings(write("user,item,rating\n7,007,1\n8,7,2\n"))
    assert data.user_ids.dtype == np.int64
    assert data.item_ids.tolist() == ["007", "7"]
    with pytest.warns(DataWarning, match="ids such as '(1.0' have a point|null' stand for missing)"):
        data = read_ratings(write("user,item,rating\nNA,1.0,1\nnull,1,2\nTrue,99999999999999999999,3\n"))
    assert set(data.user_ids) == {"NA", "null", "True"}
    assert set(data.item_ids) == {"1.0", "1", "99999999999999999999"}


def test_numeric_and_iso_timestamps(write: Write):
    numeric: Any = read_ratings(write("user,item,rating,t\na,x,1,100\nb,x,2,50\n"), timestamp="t")
    assert numeric.timestamps.tolist() == [100, 50]
    text = "user,item,rating,t\na,x,1,2024-01-02\nb,x,2,2024-01-01T12:00:00+02:00\n"
    with pytest.warns(DataWarning, match="1 of 2 dates have an offset from UTC, the others are taken as in UTC"):
        dates: Any = read_ratings(write(text), timestamp="t")
    assert np.diff(dates.timestamps).tolist() == [-14 * 3600 * 10**9]
    with pytest.raises(DataFileError, match="dates as 't', found 'yesterday' with rating number 1"):
        read_ratings(write("user,item,rating,t\na,x,1,yesterday\n"), timestamp="t")


def test_duplicates_and_negative_ratings_follow_the_rules_of_interactions(write: Write):
    path = write("user,item,rating\nann,x,1\nann,x,3\n")
    with pytest.raises(DataFileError, match=r"mine.csv: expected one rating per pair.*duplicates='first'"):
        read_ratings(path)
    assert read_ratings(path, duplicates="mean").ratings.tolist() == [2]
    with pytest.raises(ParameterError, match="duplicates must be one of"):
        read_ratings(path.with_name("absent.csv"), duplicates="max")  # pyright: ignore[reportArgumentType]
    path = write("user,item,rating\nann,x,-1\n")
    with pytest.raises(DataFileError, match="allow_negative=True"):
        read_ratings(path)
    assert read_ratings(path, allow_negative=True).ratings.tolist() == [-1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.csv", H + "ann,x,5\nbob,y\n", "line 3: expected 3 fields separated by ',', as in the header"),
        ("mine.csv", H + 'ann,x,5\nbob,y,"3\nann,y,2\n', "line 3: expected fields with closed quotes"),
        ("mine.csv", H + "ann,x,5\nbob,y,3,4\n", "line 3: expected 3 fields"),
        ("mine.csv", H + "ann,x,5,6\nbob,y,3,4\n", "line 2: expected 3 fields"),
        ("mine.csv", H + "ann,x,5\n\nbob,y,good\n", "line 4: expected a finite number as 'rating', found 'good'"),
        ("mine.csv", H + "ann,x,5\nbob,y,nan\n", "line 3: expected a finite number as 'rating', found 'nan'"),
        ("mine.csv", H + 'ann,x,5\nbob,y,"3,5"\n', "line 3: expected a finite number as 'rating', found '3,5'"),
        ("mine.csv", H + "ann,x,5\n,y,3\n", "line 3: expected a value as 'user', found ',y,3'"),
        ("mine.csv", H + "ann,x,5\nbob,y,\n", "line 3: expected a value as 'rating'"),
        ("mine.csv", H + '"ann\n",x,5\nbob,y,bad\n', "line 4: expected a finite number as 'rating', found 'bad'"),
        ("mine.csv", H + "ann,x,5\nbob,y,1_0\n", "line 3: expected a finite number as 'rating', found '1_0'"),
        ("mine.csv", b"", "found an empty file"),
        ("mine.csv", b"user,item,rating\n", "found the header only"),
        ("mine.csv", b"\x89PNG\r\n\x1a\n\0\0", "expected text encoded in utf-8, found byte 0x89"),
        ("mine.csv", b"\0\1\2\3", "found a NUL byte"),
        ("mine.csv", "user,item,rating\nJosé,x,5\n".encode("latin-1"), "expected text encoded in utf-8"),
        ("mine.csv.gz", gzip.compress(LONG.encode(), mtime=0)[:30], "expected a readable file"),
        ("mine.parquet", b"not parquet", "found no row below its first line"),
        ("mine.parquet", b"PAR1 not parquet", "expected a Parquet file"),
        ("mine.xlsx", b"PK\x03\x04", "expected a readable file"),
        ("mine.csv", b"whose,item,rating\na,x,1\n", r"\['user'\] once each, found \['whose', 'item', 'rating'\]"),
        ("mine.csv", b"user,item,rating,user\na,x,1,b\n", r"\['user'\] once each"),
        ("mine.csv", b"user,item,rating,note\nann,x,5,good\nbob,y,3\n", "line 3: expected 4 fields"),
        ("mine.csv", WIDE.replace("4", "many"), "found 'many' for item 'Dracula', .* with user number 2"),
        ("mine.csv", WIDE.replace("eve", "ann"), "found the user 'ann' twice"),
        ("mine.csv", WIDE.replace("Dracula", "Emma"), "found the item 'Emma' twice"),
        ("mine.csv", WIDE.replace("eve", ""), "found a row without a user in its first column"),
        ("mine.csv", WIDE.replace("4", "-4"), "ratings must be >= 0"),
        ("mine.csv", "who,what,how\nann,x,5\n", "expected the column.*found 'x' for item 'what'"),
    ],
)
def test_what_is_broken_is_told_with_its_file_and_line(write: Write, name: str, content: str | bytes, message: str):
    path = write(content, name)
    with pytest.raises(DataFileError, match=message) as caught:
        read_ratings(path)
    assert str(path) in str(caught.value) or "ends in" in message


@pytest.mark.parametrize("sep", ["", ":::", '"', "\n", "§", "a"])
def test_separator_that_cannot_be_one(write: Write, sep: str):
    with pytest.raises(ParameterError, match="sep must be one ASCII sign"):
        read_ratings(write(LONG), sep=sep)


def test_columns_of_usual_names_are_read_and_said(write: Write, tmp_path: Path):
    path = write("userId,movieId,rating,timestamp\n1,7,5,0\n")
    pd.read_csv(path).to_parquet(tmp_path / "mine.parquet")
    for file in (path, tmp_path / "mine.parquet"):
        with pytest.warns(DataWarning, match="'userId' as user, 'movieId' as item; columns not read: 'timestamp'"):
            assert rows(read_ratings(file)) == [[1, 7, 5]]
        assert read_ratings(file, user="userid", item="MOVIEID", timestamp="timestamp").n_ratings == 1
        with pytest.raises(DataFileError, match=re.escape("is item='movieId' meant, for Interactions.from_frame")):
            read_ratings(file, item="film")


# -------------------------------------------------------------------- a user a row


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", WIDE),
        ("mine.tsv", WIDE.replace(",", "\t")),
        ("mine.csv", WIDE.replace("reader", "")),
        ("mine.csv.gz", gzip.compress(WIDE.encode(), mtime=0)),
        ("mine.csv", "\ufeff" + WIDE.replace("\n", "\r\n")),
    ],
)
def test_a_user_a_row_and_an_item_a_column(write: Write, name: str, content: str | bytes):
    data = read_ratings(write(content, name))
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == (["ann", "bob", "eve"], ["Emma", "Dracula"])
    np.testing.assert_array_equal(data.to_dense(), DENSE)


def test_a_wide_parquet_file(tmp_path: Path):
    frame = pd.DataFrame(DENSE, index=["ann", "bob", "eve"], columns=["Emma", "Dracula"])
    for table in (frame, frame.rename_axis("reader").reset_index()):
        table.to_parquet(tmp_path / "mine.parquet")
        data = read_ratings(tmp_path / "mine.parquet")
        assert data.user_ids.tolist() == ["ann", "bob", "eve"]
        np.testing.assert_array_equal(data.to_dense(), DENSE)


def test_likes_are_what_is_neither_empty_nor_zero_and_wide_ids_may_be_integers(write: Write):
    data = read_ratings(write("user,10,20\n1,3,0\n2,,1\n"), rating=None)
    np.testing.assert_array_equal(data.to_dense(), [[1, np.nan], [np.nan, 1]])
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([1, 2], [10, 20])


# -------------------------------------------------------------------- without a header line


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("u.data", PLAIN, {}),
        ("u.data", PLAIN.replace("\t", "|"), {"sep": "|"}),
        ("u.csv", PLAIN.replace("\t", ","), {}),
    ],
)
def test_a_file_without_a_header_line(write: Write, name: str, content: str | bytes, how: dict[str, Any]):
    path, columns = write(content, name), ["user", "item", "rating", "timestamp"]
    assert rows(read_ratings(path, columns=columns[:3], **how)) == [[196, 242, 3], [186, 302, 3], [196, 302, 1]]
    timed: Any = read_ratings(path, columns=columns, timestamp="timestamp", **how)
    assert timed.timestamps.tolist() == [881250949, 891717742, 881250948]
    likes = read_ratings(path, rating=None, columns=columns[:2], **how)
    assert rows(likes) == [[196, 242, 1], [186, 302, 1], [196, 302, 1]]
    with pytest.raises(DataFileError, match=r"without a header line needs columns=\['user', 'item', 'rating'\]"):
        read_ratings(path, **how)


@pytest.mark.parametrize(
    ("content", "columns", "error", "message"),
    [
        ("ann,x\n", ["user", "item"], ParameterError, r"expected the column\(s\) \['rating'\]"),
        ("ann,x\n", ["user", "item", "rating"], DataFileError, "line 1: expected 3 fields separated by ','"),
        ("ann,x,5\nbob,y,3,4\n", ["user", "item", "rating"], DataFileError, "line 2: expected 3 fields"),
        ("user,item,rating\nann,x,5\n", ["user", "item", "rating"], DataFileError, "line 1: expected a finite number"),
    ],
)
def test_names_that_do_not_fit_are_told(
    write: Write, content: str, columns: list[str], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        read_ratings(write(content), columns=columns)


# -------------------------------------------------------------------- bounds

HEADER = b"user,item,rating\n"
MANY = 10**5
BOMBS = {
    "empty lines": (b"\n" * MANY, "no text in the first 1000 lines"),
    "empty lines after the header": (HEADER + b"\n" * MANY, "line 1002: expected fields, found 1,001 empty lines"),
    "empty lines after a rating": (HEADER + b"a,b,3\nc,d\n" + b"\n" * MANY, "line 3: expected 3 fields"),
    "rows without content": (HEADER + b",\n" * 3 * MANY, "line 2: expected 3 fields"),
    "rows of empty fields": (HEADER + b",,\n" * 3 * MANY, "line 2: expected a value as 'user'"),
    "a long header": (b"user," + b"x" * 10 * MANY + b"\na,b\n", "once each, found"),
    "a wide header": (b"user,item" + b",x" * 50_000 + b"\na,b,1\n", "once each, found"),
    "a long field": (HEADER + b"a,b," + b"x" * 100_000 + b"\n", "expected a finite number as 'rating'"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_that_unpacks_to_a_large_one_is_refused_at_its_first_fault(name: str, write: Write, blocks_of):
    content, message = BOMBS[name]
    blocks_of(10_000)
    path = write(gzip.compress(content), "ratings.csv.gz")
    tracemalloc.start()
    with pytest.raises(DataFileError, match=message) as error:
        read_ratings(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * 2**20
    assert len(str(error.value)) < 600


def test_a_value_in_a_message_is_cut_and_a_page_in_its_middle():
    assert quoted("x" * 500) == "'" + "x" * 199 + "..."
    assert quoted(["x"] * 500).endswith("...")
    assert quoted({"a": 1}) == "{'a': 1}"
    assert 150 < str(UnknownIdError("user", ["x" * 10**6] * 9)).count("x") <= 200
    assert "form NFC" in str(UnknownIdError("user", ["Mu\u0308ller"]))
    message = str(AirRecsysError("a" * 5000 + "the end"))
    assert len(message) == 500
    assert message.endswith("the end")
