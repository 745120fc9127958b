"""Every door that reads a table, and all that happens to files: what was written is read, or there is an error."""

from __future__ import annotations

import gzip
import io
import os
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.reading import misread_files

from air_recsys import Interactions
from air_recsys.data.interactions import as_interactions
from air_recsys.data.readers.pairs_file import read_pairs, read_square, read_texts
from air_recsys.data.readers.titles import read_titles
from air_recsys.datasets import read_features, read_ratings, read_similarity
from air_recsys.exceptions import AirRecsysError, DataFileError, DataWarning
from air_recsys.storage.reading import checked_sparse

IDS = ["NA", "null", "007", "ann"]  # texts, none of them missing
ITEMS = ["x", "y"]


class Door(NamedTuple):
    """What reads a table: its header, its rows for some ids, and what is read from it as a value an id."""

    header: list[str]
    rows: Callable[[list[str]], list[list[str]]]
    read: Callable[..., dict[str, Any]]


def of_ratings(data: Interactions) -> dict[str, Any]:
    frame = data.to_frame()
    return {str(user): rating for user, rating in zip(frame["user"], frame["rating"], strict=True)}


def likes(path: Path, **how: Any) -> dict[str, Any]:
    data = read_ratings(path, rating=None, **how)
    return {str(user): str(item) for user, item in zip(*data.to_frame()[["user", "item"]].T.to_numpy(), strict=True)}


def similarity(path: Path, **how: Any) -> dict[str, Any]:
    graph = read_similarity(path, "item", **how)
    weights, ids = graph.to_scipy().toarray(), list(map(str, graph.ids))
    return {each: weights[place, ids.index("hub")] for place, each in enumerate(ids) if each != "hub"}


def square(path: Path, **how: Any) -> dict[str, Any]:
    return {str(each): row.iloc[0] for each, row in read_square(path, **how).iterrows()}


def numbered(ids: list[str], *more: str) -> list[list[str]]:
    return [[each, *more, str(place + 1)] for place, each in enumerate(ids)]


DOORS = {
    "ratings": Door(
        ["user", "item", "rating"],
        lambda ids: numbered(ids, "x"),
        lambda path, **how: of_ratings(read_ratings(path, **how)),
    ),
    "likes": Door(["user", "item"], lambda ids: [[each, "x"] for each in ids], likes),
    "wide": Door(
        ["user", "x", "y"],
        lambda ids: [[each, str(place + 1), ""] for place, each in enumerate(ids)],
        lambda path, **how: of_ratings(read_ratings(path, **how)),
    ),
    "titles": Door(
        ["id", "title"],
        lambda ids: [[each, f"film {each}"] for each in ids],
        lambda path, **how: read_titles(path, np.array(IDS, object), **how)["title"].to_dict(),
    ),
    "features": Door(
        ["item", "year"], numbered, lambda path, **how: read_features(path, "item", **how)["year"].to_dict()
    ),
    "similarity": Door(["item", "other", "similarity"], lambda ids: numbered(ids, "hub"), similarity),
    "pairs": Door(
        ["drug", "target", "interaction"],
        lambda ids: [[each, "t", "1"] for each in ids],
        lambda path, **how: read_pairs(path, value="interaction", **how).set_index("drug")["interaction"].to_dict(),
    ),
    "texts": Door(
        ["id", "text"],
        lambda ids: [[each, f"C{each}"] for each in ids],
        lambda path, **how: read_texts(path, **how).to_dict(),
    ),
    "square": Door(["", *IDS], lambda ids: [[each, *["1" for _ in IDS]] for each in ids], square),
}


def told(door: Door, ids: list[str] = IDS) -> dict[str, Any]:
    """What a door has to read."""
    rows = door.rows(ids)
    values = [row[1] if len(row) == len(door.header) and door.header[1] == "x" else row[-1] for row in rows]
    return {row[0]: value for row, value in zip(rows, values, strict=True)}


def text(door: Door, ids: list[str] = IDS, separator: str = ",", end: str = "\n") -> str:
    return end.join(separator.join(row) for row in [door.header, *door.rows(ids)]) + end


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether values are equal, numbers as numbers."""

    def plain(value: Any) -> Any:
        try:
            return float(value)
        except (TypeError, ValueError):
            return value

    return {str(key): plain(value) for key, value in found.items()} == {
        key: plain(value) for key, value in expected.items()
    }


HAZARDS: dict[str, Callable[[str], tuple[str, bytes]]] = {
    "plain": lambda content: ("table.csv", content.encode()),
    "marked": lambda content: ("table.csv", b"\xef\xbb\xbf" + content.encode()),
    "utf16": lambda content: ("table.csv", content.encode("utf-16")),
    "windows": lambda content: ("table.csv", content.replace("\n", "\r\n").encode()),
    "no_end": lambda content: ("table.csv", content.rstrip("\n").encode()),
    "blank_lines": lambda content: ("table.csv", (content + "\n\n").encode()),
    "gzip": lambda content: ("table.csv.gz", gzip.compress(content.encode())),
    "gzip_unnamed": lambda content: ("table", gzip.compress(content.encode())),
    "not_gzip": lambda content: ("table.csv.gz", content.encode()),
    "zip": lambda content: ("table.zip", zipped(content)),
    "odd_name": lambda content: ("table.inter", content.encode()),
    "no_name": lambda content: ("table", content.encode()),
    "parquet_name": lambda content: ("table.parquet", content.encode()),
}


def zipped(content: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("inner.csv", content)
    return target.getvalue()


@pytest.mark.parametrize("hazard", HAZARDS)
@pytest.mark.parametrize("door", DOORS)
def test_a_door_reads_what_was_written(door, hazard, tmp_path):
    name, content = HAZARDS[hazard](text(DOORS[door]))
    path = tmp_path / name
    path.write_bytes(content)
    assert same(DOORS[door].read(path), told(DOORS[door]))


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", "::"])
@pytest.mark.parametrize("door", DOORS)
def test_a_door_finds_the_separator(door, separator, tmp_path):
    path = tmp_path / "table.dat"
    path.write_text(text(DOORS[door], separator=separator))
    assert same(DOORS[door].read(path), told(DOORS[door]))


@pytest.mark.parametrize("door", [each for each in DOORS if each not in {"square"}])
def test_a_quote_is_a_sign_like_others_where_tabs_separate(door, tmp_path):
    ids = ['"Weird Al" live', "b", 'c"', "d"]
    path = tmp_path / "table.tsv"
    path.write_text(text(DOORS[door], ids, "\t"))
    if door == "titles":
        ids[0] = "x"
        path.write_text('id\ttitle\nNA\t"Weird Al\nnull\tlive\n007\tc"\nann\td\n')
        assert read_titles(path, np.array(IDS, object))["title"].tolist() == ['"Weird Al', "live", 'c"', "d"]
        return
    assert same(DOORS[door].read(path), told(DOORS[door], ids))


@pytest.mark.parametrize("door", [each for each in DOORS if each not in {"square"}])
def test_a_quote_that_swallows_lines_is_named(door, tmp_path):
    content = text(DOORS[door]).splitlines()
    path = tmp_path / "table.csv"
    path.write_text("\n".join([*content[:2], '"' + content[2], content[3], content[4].replace(",", '",', 1)]) + "\n")
    with pytest.raises(AirRecsysError, match=r"line 3: .*a quote that holds"):
        DOORS[door].read(path)


@pytest.mark.parametrize("door", [each for each in DOORS if each not in {"titles"}])
def test_other_encodings_are_stated_and_proposed(door, tmp_path):
    ids = ["Café", "b", "c", "d"]
    header = ["", *ids] if door == "square" else DOORS[door].header
    rows = [[each, "1", "1", "1", "1"] for each in ids] if door == "square" else DOORS[door].rows(ids)
    path = tmp_path / "table.csv"
    path.write_bytes("".join(",".join(row) + "\n" for row in [header, *rows]).encode("latin-1"))
    with pytest.raises(AirRecsysError, match="byte 0xe9; is it encoding='latin-1'"):
        DOORS[door].read(path)
    assert set(DOORS[door].read(path, encoding="latin-1")) == set(ids)


def test_titles_in_latin_1_are_read_with_a_line(tmp_path):
    path = tmp_path / "u.item"
    path.write_bytes("1|Café|01-Jan\n2|Tiger &amp; Bunny|01-Feb\n".encode("latin-1"))
    with pytest.warns(DataWarning, match="are read as Latin-1"):
        assert read_titles(path, np.array([1, 2, 3]))["title"].to_dict() == {1: "Café", 2: "Tiger & Bunny"}


def test_one_bad_title_takes_itself_alone(tmp_path):
    path = tmp_path / "titles.csv"
    path.write_text("movieId,title\n1,A\nx2,B\n,C\n3,D\n")
    with pytest.warns(
        DataWarning, match="2 of 4 rows without an integer in 'movieId' are left out, the first row 2: 'x2'"
    ):
        assert read_titles(path, np.array([1, 2, 3]))["title"].to_dict() == {1: "A", 3: "D"}


@pytest.mark.parametrize("door", DOORS)
def test_a_pipe_is_a_file(door, tmp_path):
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(text(DOORS[door]),))
    writer.start()
    found = DOORS[door].read(path)
    writer.join()
    assert same(found, told(DOORS[door]))


def test_standard_input_is_a_file(monkeypatch, capsys):
    content = io.TextIOWrapper(io.BytesIO(text(DOORS["ratings"]).encode()))
    monkeypatch.setattr("sys.stdin", content)
    assert same(DOORS["ratings"].read("-"), told(DOORS["ratings"]))
    broken = io.TextIOWrapper(io.BytesIO(b"user,item,rating\na,x,1\nb,y,many\n"))
    broken.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", broken)
    with pytest.raises(DataFileError, match=r"^standard input, line 3"):
        read_ratings("-")
    assert capsys.readouterr().err == "reading the standard input; Ctrl-D ends it\n"


@pytest.mark.parametrize(
    ("door", "values"), [("features", ["1990", "NA", "2000", ""]), ("pairs", ["1", "NA", "0", ""])]
)
def test_codes_among_numbers_are_missing_and_said(door, values, tmp_path):
    rows = [[*row[:-1], value] for row, value in zip(DOORS[door].rows(IDS), values, strict=True)]
    path = tmp_path / "table.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [DOORS[door].header, *rows]))
    with pytest.warns(DataWarning, match="NA counts as missing in the columns of numbers"):
        found = DOORS[door].read(path)
    assert [each for each in IDS if np.isnan(found[each])] == ["null", "ann"]


@pytest.mark.parametrize("door", [each for each in DOORS if each not in {"square", "wide"}])
def test_a_line_without_end_is_refused_at_once(door, tmp_path):
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"x" * 60_000_000))
    with pytest.raises(AirRecsysError, match="bytes in a line"):
        DOORS[door].read(path)


LONG = {
    "a table under other names": "id,usuario,pelicula,nota\n",
    "without a header": "",
}


@pytest.mark.parametrize("form", LONG)
def test_what_looks_long_is_not_read_as_wide(form, tmp_path):
    rows = [(user, item) for user in range(1, 8) for item in range(100, 105) if (user + item) % 3]
    lines = [f"{number},{user},{item},{(user * item) % 5 + 1}" for number, (user, item) in enumerate(rows)]
    path = tmp_path / "mine.csv"
    path.write_text(LONG[form] + "\n".join(lines) + "\n")
    with pytest.raises(AirRecsysError, match="columns"):
        read_ratings(path)
    table = pd.read_csv(path, header=None if not LONG[form] else 0)
    for data in (table, table.to_numpy(), table.iloc[:, 1:].to_numpy().tolist()):
        with pytest.raises(AirRecsysError, match=r"look like one rating per row|expected the column"):
            as_interactions(data)
    named = Interactions.from_frame(table.set_axis(["id", "user", "item", "rating"], axis=1))
    assert named.n_ratings == len(rows)


def test_usual_names_are_read_and_what_is_not_is_named(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("userId,movieId,rating,timestamp\n1,7,5,100\n2,7,4,200\n")
    with pytest.warns(DataWarning, match="reads 'userId' as user, 'movieId' as item, but does not read 'timestamp'"):
        data = read_ratings(path)
    assert (data.user_ids.tolist(), data.item_ids.tolist(), data.ratings.tolist()) == ([1, 2], [7], [5, 4])
    typed = tmp_path / "ml.inter"
    typed.write_text("user_id:token\titem_id:token\trating:float\n1\t7\t5\n")
    assert read_ratings(typed).n_ratings == 1


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16])
def test_repeated_pairs_of_small_types_are_summed_in_larger_ones(kind):
    times, value = 700, 100
    one = sp.coo_array((np.full(times, value, kind), (np.zeros(times, int), np.zeros(times, int))), shape=(2, 2))
    total = times * value
    assert Interactions.from_csr(one, duplicates="sum").ratings.tolist() == [total]
    assert checked_sparse("likes", one).sum() == total


def test_tables_by_chance_are_read_rightly_or_refused():
    rows, notes = misread_files(240, 3)
    assert notes == []
    assert sum(row["right"] for row in rows) > 0.85 * 240
