import gzip

import numpy as np
import pandas as pd
import pytest

from air_recsys.datasets import read_ratings
from air_recsys.exceptions import DataFileError, ParameterError

TABLE = "user,item,rating\nann,x,5\nbob,y,3.5\n"


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def triples(data):
    return [tuple(row) for row in data.to_frame()[["user", "item", "rating"]].values.tolist()]


EXPECTED = [("ann", "x", 5.0), ("bob", "y", 3.5)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.csv", TABLE),
        ("MINE.CSV", TABLE),
        ("mine.csv.gz", gzip.compress(TABLE.encode(), mtime=0)),
        ("mine.tsv", TABLE.replace(",", "\t")),
        ("mine.txt", TABLE.replace(",", "\t")),
        ("mine.txt", TABLE),
        ("mine.csv", TABLE.replace(",", ";")),
        ("mine.csv", TABLE.replace("\n", "\r\n")),
        ("mine.csv", "\ufeff" + TABLE),
        ("mine.csv", "\n" + TABLE.replace("bob", "\nbob") + "\n\n"),
        ("mine.csv", 'rating,"item",user,note\n5,x,ann,"a, b\nc"\n3.5,"y",bob,""\n'),
    ],
)
def test_kinds_of_text(write, name, content):
    assert triples(read_ratings(write(content, name))) == EXPECTED


def test_path_may_be_text(write):
    assert triples(read_ratings(str(write(TABLE)))) == EXPECTED


def test_parquet(tmp_path):
    frame = pd.DataFrame({"u": ["ann", "bob"], "i": ["x", "y"], "r": [5, 3.5], "extra": [0, 0]})
    frame.to_parquet(tmp_path / "mine.parquet")
    assert triples(read_ratings(tmp_path / "mine.parquet", "u", "i", "r")) == EXPECTED
    with pytest.raises(DataFileError, match=r"column\(s\) \['user'\] once each, found \['u', 'i', 'r', 'extra'\]"):
        read_ratings(tmp_path / "mine.parquet", item="i", rating="r")
    frame.set_index(["u", "i"]).to_parquet(tmp_path / "mine.parquet")
    assert triples(read_ratings(tmp_path / "mine.parquet", "u", "i", "r")) == EXPECTED
    frame["r"] = ["5", "bad"]
    frame.to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(DataFileError, match="ratings must be numbers, found 'bad'"):
        read_ratings(tmp_path / "mine.parquet", "u", "i", "r")


def test_own_separator_and_columns(write):
    path = write("who:what:stars\nann:x:5\nbob:y:3.5\n")
    assert triples(read_ratings(path, "who", "what", "stars", sep=":")) == EXPECTED


def test_integer_ids_become_integers_and_others_stay_as_written(write):
    data = read_ratings(write("user,item,rating\n7,007,1\n8,7,2\n"))
    assert data.user_ids.dtype == np.int64
    assert data.item_ids.tolist() == ["007", "7"]
    data = read_ratings(write("user,item,rating\nNA,1.0,1\nnull,1,2\nTrue,99999999999999999999,3\n"))
    assert set(data.user_ids) == {"NA", "null", "True"}
    assert set(data.item_ids) == {"1.0", "1", "99999999999999999999"}


def test_without_ratings_every_row_counts_one(write):
    assert read_ratings(write("user,item\nann,x\nbob,y\n"), rating=None).ratings.tolist() == [1, 1]


def test_numeric_and_iso_timestamps(write):
    numeric = read_ratings(write("user,item,rating,t\na,x,1,100\nb,x,2,50\n"), timestamp="t")
    assert numeric.timestamps.tolist() == [100, 50]
    dates = "user,item,rating,t\na,x,1,2024-01-02\nb,x,2,2024-01-01T12:00:00+02:00\n"
    assert np.diff(read_ratings(write(dates), timestamp="t").timestamps).tolist() == [-14 * 3600 * 10**9]
    with pytest.raises(DataFileError, match="dates as 't', found 'yesterday' with rating number 1"):
        read_ratings(write("user,item,rating,t\na,x,1,yesterday\n"), timestamp="t")


def test_duplicates_and_negative_ratings_follow_the_rules_of_interactions(write):
    path = write("user,item,rating\nann,x,1\nann,x,3\n")
    with pytest.raises(DataFileError, match=r"mine.csv: expected one rating per pair.*duplicates='first'"):
        read_ratings(path)
    assert read_ratings(path, duplicates="mean").ratings.tolist() == [2]
    path = write("user,item,rating\nann,x,-1\n")
    with pytest.raises(DataFileError, match="allow_negative=True"):
        read_ratings(path)
    assert read_ratings(path, allow_negative=True).ratings.tolist() == [-1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("ann,x,5\nbob,y\n", r"line 3: expected 3 fields separated by ',', as in the header, found 'bob,y'"),
        ("ann,x,5\nbob,y,3,4\n", "line 3: expected 3 fields"),
        ("ann,x,5,6\nbob,y,3,4\n", "line 2: expected 3 fields"),
        ("ann,x,5\n\nbob,y,good\n", "line 4: expected a finite number as 'rating', found 'good'"),
        ("ann,x,5\nbob,y,nan\n", "line 3: expected a finite number as 'rating', found 'nan'"),
        ("ann,x,5\nbob,y,inf\n", "line 3: expected a finite number as 'rating', found 'inf'"),
        ('ann,x,5\nbob,y,"3,5"\n', "line 3: expected a finite number as 'rating', found '3,5'"),
        ("ann,x,5\n,y,3\n", "line 3: expected a value as 'user', found ',y,3'"),
        ("ann,x,5\nbob,,3\n", "line 3: expected a value as 'item'"),
        ("ann,x,5\nbob,y,\n", "line 3: expected a value as 'rating'"),
        ('ann,x,5\n"bob,y,3\n', "line 3: expected fields with closed quotes"),
        ('ann,x,5\nbob,y,"3\nann,y,2\n', "line 3: expected fields with closed quotes"),
        ('"ann\n",x,5\nbob,y,bad\n', "line 4: expected a finite number as 'rating', found 'bad'"),
        ("ann,x,5\nbob,y,1_0\n", "line 3: expected a finite number as 'rating', found '1_0'"),
    ],
)
def test_broken_line_is_reported_with_its_number(write, rows, message):
    path = write(f"user,item,rating\n{rows}")
    with pytest.raises(DataFileError, match=message) as caught:
        read_ratings(path)
    assert str(path) in str(caught.value)


def test_short_line_is_found_even_if_only_an_unused_field_is_missing(write):
    path = write("user,item,rating,note\nann,x,5,good\nbob,y,3\n")
    with pytest.raises(DataFileError, match="line 3: expected 4 fields"):
        read_ratings(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mine.csv", b"", "found an empty file"),
        ("mine.csv", b"\n\n", "found an empty file"),
        ("mine.csv", b"user,item,rating\n", "found the header only"),
        ("mine.csv", b"\x89PNG\r\n\x1a\n\0\0", "expected text encoded in utf-8, found byte 0x89"),
        ("mine.csv", b"\0\1\2\3", "found a NUL byte"),
        ("mine.csv", "user,item,rating\nJosé,x,5\n".encode("latin-1"), "expected text encoded in utf-8"),
        ("mine.csv", "user,item,rating\n".encode("utf-16"), "expected text encoded in utf-8"),
        ("mine.csv.gz", b"not gzipped", "expected a readable file"),
        ("mine.csv.gz", gzip.compress(TABLE.encode(), mtime=0)[:30], "expected a readable file"),
        ("mine.parquet", b"not parquet", "expected a Parquet file"),
        ("mine.xlsx", b"", r"ends in one of .csv, .tsv, .txt, .data, .parquet, found '.xlsx'"),
        ("mine.gz", b"", "found '.gz'"),
        ("mine.csv", b"users,item,rating\na,x,1\n", r"\['user'\] once each, found \['users', 'item', 'rating'\]"),
        ("mine.csv", b"user,item,rating,user\na,x,1,b\n", r"\['user'\] once each"),
        ("mine.csv", b"user item rating\na x 1\n", r"\['user', 'item', 'rating'\] once each"),
    ],
)
def test_file_that_is_no_table(write, name, content, message):
    with pytest.raises(DataFileError, match=message):
        read_ratings(write(content, name))


def test_no_such_file(tmp_path):
    with pytest.raises(DataFileError, match=r"found no file .*absent.csv"):
        read_ratings(tmp_path / "absent.csv")


@pytest.mark.parametrize("sep", ["", "::", '"', "\n", "§", "a"])
def test_separator_that_cannot_be_one(write, sep):
    with pytest.raises(ParameterError, match="sep must be one ASCII sign"):
        read_ratings(write(TABLE), sep=sep)


@pytest.mark.parametrize("kind", ["first", "mean"])
def test_unknown_rule_for_duplicates(write, kind):
    with pytest.raises(ParameterError, match="duplicates"):
        read_ratings(write(TABLE), duplicates=f"{kind}est")
