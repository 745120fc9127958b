"""Every door that reads a table, and all that happens to files: what was written is read, or there is an error."""

from __future__ import annotations

import datetime
import gzip
import io
import os
import pickle
import threading
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from attacks.reading import misread_files

from air_recsys import GlobalMean, Interactions
from air_recsys.data.features import Encoding
from air_recsys.data.interactions import as_interactions
from air_recsys.data.likes import as_likes
from air_recsys.data.readers.pairs_file import read_pairs, read_square, read_texts
from air_recsys.data.readers.titles import read_titles
from air_recsys.datasets import read_features, read_ratings, read_similarity
from air_recsys.exceptions import AirRecsysError, DataError, DataFileError, DataWarning
from air_recsys.models.drug_target.pairs import as_pairs
from air_recsys.storage.reading import checked_sparse

pytestmark = pytest.mark.filterwarnings("ignore:ids such as 'null' stand for missing ones elsewhere")
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
    "ends": lambda content: ("table.csv", content.replace("\n", ",\n").encode()),
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
    with pytest.warns(DataWarning, match="read: 'userId' as user, 'movieId' as item; columns not read: 'timestamp' "):
        data = read_ratings(path)
    assert (data.user_ids.tolist(), data.item_ids.tolist(), data.ratings.tolist()) == ([1, 2], [7], [5, 4])
    assert read_ratings(path, "userId", "movieId", timestamp="timestamp").n_ratings == 2  # without a word
    typed = tmp_path / "ml.inter"
    typed.write_text("user_id:token\titem_id:token\trating:float\n1\t7\t5\n")
    with pytest.warns(DataWarning, match="'user_id:token' as user, 'item_id:token' as item, 'rating:float' as rating"):
        assert read_ratings(typed).n_ratings == 1


def test_a_user_and_its_items_per_line(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("0 5 7\n3 5\n")
    with pytest.raises(AirRecsysError, match=r"'...' as the last where a line has a user and all its items"):
        read_ratings(path, rating=None)
    likes = read_ratings(path, rating=None, columns=["user", "item", "..."])
    assert likes.to_frame()[["user", "item"]].to_numpy().tolist() == [[0, 5], [0, 7], [3, 5]]
    with pytest.raises(AirRecsysError, match="no ratings"):
        read_ratings(path, columns=["user", "item", "..."])
    path.write_text("ann,x,y\nbob,x\ncat\n")
    with pytest.warns(DataWarning, match="1 lines with a user and no items"):
        assert read_ratings(path, rating=None, columns=["user", "item", "..."]).n_ratings == 3
    path.write_text("ann,x,,y\n")
    with pytest.raises(AirRecsysError, match="line 1: expected a user and its items"):
        read_ratings(path, rating=None, columns=["user", "item", "..."])


def test_amounts_beside_likes_are_named():
    table = pd.DataFrame({"user": ["a", "a", "b"], "item": ["x", "y", "x"], "hours": [350, 1, 2]})
    likes = as_likes(pd.concat([table, table.head(1)]))
    assert likes.ratings.tolist() == [1, 1, 1]
    assert likes.weights is not None
    assert likes.weights.tolist() == [700, 1, 2]  # of a repeated like the sum
    with pytest.warns(DataWarning, match="columns not read: 'hours'.*'plays'"):
        assert as_likes(table.assign(plays=1)).weights is None
    with pytest.warns(DataWarning, match="as much as its rating, found 1..350"):
        assert as_likes(table.rename(columns={"hours": "rating"})).n_ratings == 3


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"user": [1, 2], "item": [3, 4], "liked": [1, 0]}, "columns not read: 'liked'"),
        ({"user": [1, 2], "item": [3, 4], "event_state": ["new", "old"]}, "columns not read: 'event_state'"),
        ({"user": ["Ann", "Bob"], "user_id": [1, 2], "item": [3, 4], "rating": [5, 4]}, "columns not read: 'user_id'"),
        ({"user": [1, 2], "item": [3, 4], "rating": [6.0, 7.0], "relation": ["=", "="]}, "not read: 'relation'"),
        ({"user": [1, 2], "item": [3, 4], "rating": [6.0, 7.0], "standard_units": ["nM", "uM"]}, "'standard_units'"),
        ({"user": [1, np.iinfo(np.int64).min], "item": [3, 4], "rating": [5, 4]}, "what becomes of a missing one"),
        ({"user": [1, 2], "item": ["['a', 'b']", "['a']"], "rating": [5, 4]}, "lists that were saved as text"),
        ({"user": [1, 2], "item": ['="01"', '="02"'], "rating": [5, 4]}, "written for spreadsheets"),
    ],
)
def test_what_a_table_says_beside_its_ratings_is_named(frame, message):
    with pytest.warns(DataWarning, match=message):
        as_likes(pd.DataFrame(frame)) if "rating" not in frame else as_interactions(pd.DataFrame(frame))


@pytest.mark.parametrize(
    ("times", "kind", "message"),
    [
        ([np.iinfo(np.int64).min, 5], AirRecsysError, "found 1 missing"),
        (["2020-01-01 09:00:00", "2020-01-01T09:00:00+09:00"], DataWarning, "1 of 2 dates have an offset"),
        (np.array([881250949, 881250950], np.float32), DataWarning, "float32 beyond .* are rounded"),
    ],
)
def test_times_that_lost_something_are_named(times, kind, message):
    table = pd.DataFrame({"user": [1, 2], "item": [3, 4], "rating": [5, 4], "timestamp": times})
    told = pytest.warns(kind, match=message) if issubclass(kind, Warning) else pytest.raises(kind, match=message)
    with told:
        Interactions.from_frame(table, timestamp="timestamp")


def test_features_are_read_by_a_column_of_ids():
    data = Interactions.from_frame(pd.DataFrame({"user": [5, 6], "item": [2, 1], "rating": [3.0, 4.0]}))
    years = pd.DataFrame({"year": [1990, 1970], "id": [2, 1]})
    for table in (years, years.rename(columns={"id": "movieId"}), years.set_index("id")):
        features = data.with_features(item=table).item_features
        assert features is not None
        assert features.names == ["year"]
        assert features.values[:, 0].argmax() == 1  # of item 2


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16])
def test_repeated_pairs_of_small_types_are_summed_in_larger_ones(kind):
    times, value = 700, 100
    one = sp.coo_array((np.full(times, value, kind), (np.zeros(times, int), np.zeros(times, int))), shape=(2, 2))
    total = times * value
    assert Interactions.from_csr(one, duplicates="sum").ratings.tolist() == [total]
    assert checked_sparse("likes", one).sum() == total


FOREIGN = {
    "an Excel workbook": bytes.fromhex("d0cf11e0a1b11ae1") + bytes(99),
    "a file of pickle": pickle.dumps({"user": [1]}),
    "JSON": b'{"user": 1, "item": 2, "rating": 5}\n',
    "'sep=;' for Excel": b"sep=;\nuser;item;rating\n",
}


@pytest.mark.parametrize("found", FOREIGN)
@pytest.mark.parametrize("door", DOORS)
def test_files_of_other_programs_are_named(door, found, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(FOREIGN[found])
    with pytest.raises(AirRecsysError, match=f"found {found}"):
        DOORS[door].read(path)


def test_what_is_no_table_is_named(tmp_path):
    path = tmp_path / "table"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    with pytest.raises(AirRecsysError, match="an Excel workbook"):
        read_ratings(path)
    with pytest.raises(AirRecsysError, match="the path of one file, found list"):
        read_ratings(["a.csv", "b.csv"])  # type: ignore[arg-type]
    path.write_text("# made by my tool\n# 2024\nuser,item,rating\nann,x,5\n")
    with pytest.raises(AirRecsysError, match="line 2: expected 5 fields separated by ' '"):
        read_ratings(path)
    path.write_text(",a,b\na,-,0.5\nb,0.5,-\n")
    with pytest.raises(AirRecsysError, match="expected numbers, found '-'"):
        read_similarity(path, "item")


SEVERAL = [(user, item) for user in range(6) for item in range(5)]


def rows_of(user: Callable[[int], object], item: Callable[[int], object] = str, rating: Any = 3) -> str:
    return "".join(f"{user(u)},{item(i)},{rating(u, i) if callable(rating) else rating}\n" for u, i in SEVERAL)


DOUBTS = {
    rows_of(lambda u: "uU"[u % 2] + str(u // 2)): "ids such as 'U0' differ from others only in case",
    rows_of(lambda u: f"Ann{' ' * (1 + u % 2)}Lee{u // 2}"): "differ from others only in case, blanks",
    rows_of(lambda u: "0" * (u % 2) + str(1 + u // 2)): "'01' differ from others only in case, blanks, leading zeros",
    rows_of(lambda u: u or "someone"): "ids such as 'someone' are the only ones that are no integers",
    rows_of(str, lambda i: f"i{i}" if i else "NaT"): "ids such as 'NaT' stand for missing ones elsewhere",
    rows_of(str, lambda i: f"i{i}" if i else "total"): "'total' counts as an item: leave out totals",
    rows_of(str, lambda i: i - 1): "the item id -1 is what becomes of a missing one",
    rows_of(str, lambda i: f"i{i}" if i else "----"): "ids such as '----' stand for missing ones elsewhere",
    "ann,Tom &amp; Jerry,5\nbob,Tom & Jerry,3\n": "differ from others only in .* forms of Unicode or HTML",
    rows_of(
        str, str, lambda u, i: 0 if u == i else 5 + (u + i) % 5
    ): "17 % of the ratings are 0: a 0 counts as a rating",
    rows_of(
        str, str, lambda u, i: 0 if u % 3 == 0 else 2 + (u + i) % 5
    ): "33 % of the ratings are 0: a 0 counts as a rating",
    rows_of(
        str, str, lambda u, i: 9 if u == i else 1 + i % 4
    ): "5 ratings are 9, the others in 1..4: drop those that mean",
    rows_of(
        str, str, lambda u, i: 8 + u % 2 if u == i else (u + i) % 5
    ): "5 ratings are 8, 9, the others in 0..4: drop those",
    "1.0,x,5\n2.0,x,3\n1,y,2\n": "ids such as '1.0' have a point or an exponent",
    "ann, x,5\nbob,y,3\n": "ids such as ' x' begin or end with a blank",
    "ann,Ame\u0301lie,5\nbob,Am\u00e9lie,3\n": "differ from others only in .* forms of Unicode",
    "".join(f"{n % 7},{n // 7},{(n % 3 == 0) * (n % 10)}\n" for n in range(48)): "71 % of the ratings are 0",
}


@pytest.mark.parametrize("rows", DOUBTS)
def test_what_a_table_may_mean_otherwise_is_said(rows, tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + rows)
    for read in (lambda: read_ratings(path), lambda: Interactions.from_frame(pd.read_csv(path, dtype={"user": str}))):
        with pytest.warns(DataWarning, match=DOUBTS[rows]):
            assert read().n_ratings == rows.count("\n")


def test_quotes_behind_backslashes_are_said(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text('user,item,rating\nann,"The \\"Burbs\\" (1989)",4\nbob,"Heat, The",5\n')
    with pytest.warns(DataWarning, match="have quotes behind backslashes, which both stay"):
        assert read_ratings(path).item_ids.size == 2


LONG_FRAME = pd.DataFrame({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9], "rating": [5.0, 3.0, 4.0, 2.0]})
FRAMES: dict[str, tuple[Any, str]] = {
    "items in rows": (LONG_FRAME.pivot(index="item", columns="user", values="rating"), r"transpose it, frame\.T"),
    "levels": (LONG_FRAME.pivot_table(index="user", columns="item", values=["rating"]), r"frame\.droplevel"),
    "ids in the index": (LONG_FRAME.set_index(["user", "item"]), r"\['user', 'item'\], which frame\.reset_index\(\)"),
    "a list of rows": ([("ann", "x", 5), ("bob", "y", 3)], r"if a row is one rating, make it a table"),
    "margins": (LONG_FRAME.pivot_table(index="user", columns="item", values="rating", margins=True), "'All' counts"),
    "ids of two types": (LONG_FRAME.assign(user=np.array([1, "1", 2, "x"], object)), "as text and as number"),
    "titles in rows": (pd.DataFrame([[5, 3], [4, 2], [1, 2]], ["Alien (1979)", "Fargo", "The Matrix"]), "row 'Alien"),
    "users in columns": (
        pd.DataFrame([[5, 3], [4, 2]], list("xy"), ["user 1", "user 2"]),
        "'user 1' looks like a user",
    ),
    "items in named rows": (pd.DataFrame([[5, 3], [4, 2]], ["movie1", "movie2"]), "'movie1' looks like an item"),
    "a few with zeros": ([[5, 3, 0], [4, 0, 1], [1, 1, 5]], "every pair has a rating: a 0 counts as a rating"),
    "two tables": ((LONG_FRAME, LONG_FRAME), "2-D array .users x items., found 3 dimension"),
    "rounded ids": (LONG_FRAME.assign(user=[2.0**60, 2.0**60, 2.0**61, 2.0**62]), "may have lost digits"),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_what_a_frame_may_mean_otherwise_is_said(kind):
    data, match = FRAMES[kind]
    with pytest.raises((AirRecsysError, DataWarning), match=match):
        as_interactions(data)


WIDE_FRAME = pd.DataFrame(np.tile([5.0, 3.0, np.nan], (4, 1)), list("abcd"), list("xyz"))
BESIDE: dict[str, tuple[pd.DataFrame, str]] = {
    "features": (WIDE_FRAME.assign(age=[20, 30, 40, 50]), "'age' counts as an item"),
    "means": (WIDE_FRAME.T.assign(Average=4.0).T, "'Average' counts as a user"),
    "one name twice": (WIDE_FRAME.set_axis(["x", "Heat", "Heat.1"], axis=1), "'Heat.1' beside 'Heat' is what pandas"),
    "flags": (WIDE_FRAME > 4, "True and False are taken as 1 and 0"),
    "exchanged": (LONG_FRAME.set_axis(["item", "user", "movieId"], axis=1), "columns not read: 'movieId'"),
}


@pytest.mark.parametrize("kind", BESIDE)
def test_what_a_wide_frame_holds_beside_ratings_is_said(kind):
    frame, match = BESIDE[kind]
    with pytest.warns(DataWarning, match=match):
        as_interactions(frame) if kind != "exchanged" else as_likes(frame)


QUALIFYING = (
    "split split_index isTest fold order_status is_deleted deleted_at cancelled spam max_rating out_of currency sign "
    "n_ratings num_votes sample_weight propensity organism assay_type standard_units data_validity_comment"
)


@pytest.mark.parametrize("name", QUALIFYING.split(" "))
def test_columns_that_qualify_a_rating_are_named_at_every_door(name, tmp_path):
    frame, pairs = LONG_FRAME.assign(**{name: 1}), LONG_FRAME.set_axis(["drug", "target", "value"], axis=1)
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    with pytest.warns(DataWarning, match=f"columns not read: '{name}'"):
        Interactions.from_frame(frame)
    with pytest.warns(DataWarning, match=f"columns not read: '{name}'"):
        read_ratings(tmp_path / "ratings.csv")
    with pytest.warns(DataWarning, match=rf"does not read \['{name}'\]"):
        as_pairs(pairs.assign(**{name: 1}))


@pytest.mark.parametrize(("name", "is_told"), [("split", True), ("date", False), ("year", False)])
def test_folders_of_parts_are_columns(name, is_told, tmp_path):
    for value in ("a", "b"):
        folder = tmp_path / f"{name}={value}"
        folder.mkdir()
        LONG_FRAME.assign(user=value).drop_duplicates(["user", "item"]).to_parquet(folder / "part-0.parquet")
    with pytest.warns(DataWarning, match=f"columns not read: '{name}'") if is_told else nullcontext():
        assert read_ratings(tmp_path).n_ratings == 6


LISTS = {
    "ann\t1,2,3\nbob\t1,3,2\n": r"found 'ann\\t1'",
    "ann\t1\nbob\t1,3\ncid\t2,3\n": "found '1,3'",
    "7 1:1 2:1\n8 1:1 3:0.5\n": "found '1:1'",
    "7 spotify:track:1 spotify:track:2\n8 spotify:track:1\n": None,
    "ann\tAllen, Woody\tAllen, Tim\nbob\tAllen, Woody\n": None,
}


@pytest.mark.parametrize("lines", LISTS)
def test_lists_of_items_with_another_sign_between_are_refused(lines, tmp_path):
    path, match = tmp_path / "lists.txt", LISTS[lines]
    path.write_text(lines)
    with pytest.raises(DataFileError, match=match) if match else nullcontext():
        assert read_ratings(path, columns=["user", "item", "..."], rating=None).n_ratings == 3


@pytest.mark.parametrize("edge", ["1000 1001 1", "a b 0.5"])
def test_edges_without_a_header_are_refused(edge, tmp_path):
    path = tmp_path / "trust.txt"
    path.write_text(f"{edge}\nb 1001 1\n")
    with pytest.raises(DataFileError, match="line 1: expected names of columns, such as id,other,similarity"):
        read_similarity(path, "user")


@pytest.mark.parametrize("name", ["title", "genres", "verified_purchase", "helpful_vote", "price", "marital_status"])
def test_columns_that_are_features_are_left_in_silence(name):
    assert Interactions.from_frame(LONG_FRAME.assign(**{name: 1})).n_ratings == len(LONG_FRAME)


def test_a_column_has_one_role_and_a_name_of_the_other_side_is_said():
    frame = LONG_FRAME.set_axis(["userId", "movieId", "rating"], axis=1)
    with pytest.warns(DataWarning, match="columns read: 'movieId' as user, 'userId' as item"):
        Interactions.from_frame(frame, user="movieId", item="userId")
    for roles in ({"item": "user"}, {"rating": "item"}, {"timestamp": "rating"}):
        with pytest.raises(DataError, match="expected a column of its own for each role, found"):
            Interactions.from_frame(LONG_FRAME, **roles)


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_dates_without_a_time_are_dates(kind, tmp_path):
    days = [
        datetime.date(2020, 1, 31),
        datetime.date(2020, 2, 1),
        datetime.date(1999, 1, 1),
        datetime.date(2021, 1, 1),
    ]
    frame, path = LONG_FRAME.assign(timestamp=days), tmp_path / "dates.parquet"
    frame.to_parquet(path)
    read = {
        "frame": lambda **how: Interactions.from_frame(frame, **how),
        "file": lambda **how: read_ratings(path, **how),
    }
    found = read[kind](timestamp="timestamp").timestamps
    assert found.tolist() == pd.to_datetime(days).as_unit("ns").asi8.tolist()


TIMES: dict[str, tuple[Any, str | None]] = {
    "none": (
        [0, *range(1_500_000_000, 1_500_000_030)],
        "lie between 0 and 1.5e.09, most near 1.5e.09: are some missing",
    ),
    "far": ([*range(1_500_000_000, 1_500_000_030), 253_402_300_799], "are some missing, or in another unit"),
    "1900": ([pd.Timestamp("1900-01-01"), *pd.date_range("2017", periods=30)], "are some missing"),
    "dates": ([*range(20200101, 20200129)], "timestamps such as 20200101 look like dates, and count as numbers"),
    "months": ([202001, 202002, 202003, 202011, 202012], "timestamps such as 202001 look like dates"),
    "one": ([5] * 30, "all timestamps are 5: they tell no order"),
    "seconds": ([*range(1_500_000_000, 1_500_000_030)], None),
    "Excel": ([44197.5, 44198, 44199.25], None),
    "years": ([*range(1990, 2020)], None),
}


@pytest.mark.parametrize("kind", TIMES)
def test_times_that_are_none_are_said(kind):
    times, match = TIMES[kind]
    frame = pd.DataFrame({"user": 1, "item": range(len(times)), "rating": 4.0, "timestamp": times})
    with pytest.warns(DataWarning, match=match) if match else nullcontext():
        Interactions.from_frame(frame, timestamp="timestamp")


def test_likes_again_have_their_latest_time_in_any_order_of_the_rows():
    rows = pd.DataFrame({"user": [1, 1, 2, 1], "item": list("xyxx"), "timestamp": [2, 3, 4, 9]})
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1]):
        likes = as_likes(rows.iloc[order], timed=True).to_frame().sort_values(["user", "item"])
        assert likes["timestamp"].tolist() == [9, 3, 4]
        assert likes["rating"].tolist() == [1, 1, 1]


def test_ratings_of_0_or_less_are_said_where_each_is_a_like():
    with pytest.warns(DataWarning, match=r"as much as its rating, found -1\.\.1: leave out the 1 of 0 or less"):
        as_likes(Interactions([0, 0], [0, 1], [1, -1], [0], [0, 1], allow_negative=True))


def test_true_and_false_of_a_file_are_said(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\nann,x,TRUE\nbob,y,FALSE\n")
    with pytest.warns(DataWarning, match="True and False are taken as 1 and 0, the first is TRUE"):
        assert read_ratings(path).ratings.tolist() == [1, 0]


CELLS: dict[str, tuple[list[Any], str | None]] = {
    "age": ([-1, 22, 35, 44, 51, 60], "-1 counts as a number of the column 'cells', far from the others"),
    "codes": ([22, 35, 44, 51, 60, 999], "999 counts as a number"),
    "years": ([0, 1990, 1991, 1995, 2003, 2010], "0 counts as a number"),
    "minutes": (["90 min", "100 min", "90 min"], "count as levels, and not as numbers, for '90 min' is none"),
    "prices": (["$4.99", "$9.99", "$4.99"], "count as levels, and not as numbers"),
    "dates": (["2000-01-01", "2001-01-01", "2000-01-01"], "count as levels, and not as numbers"),
    "JSON": (["{'id': 1}", "{'id': 2}", "{'id': 1}"], "count as one level each: join lists by"),
    "case": (
        ["Drama", "drama", "War"] * 2,
        "levels such as 'Drama' of the column 'cells' stand for a missing one, or",
    ),
    "missing": (["Drama", "N/A", "War"] * 2, "levels such as 'N/A' of the column 'cells'"),
    "sizes": (["19M", "8.7M", "19M", "8.7M", "Varies"], "count as levels, and not as numbers, for '19M' is none"),
    "installs": (["10,000+", "5,000+"] * 2, "count as levels, and not as numbers"),
    "in brackets": (["(2019)", "(1987)"] * 2, "count as levels, and not as numbers"),
    "lists": (["Drama, War", "War, Drama", "Comedy", "Comedy, Drama"] * 2, "'Drama, War' count as one level each"),
    "lists by /": (["Drama/War", "War/Drama", "War"] * 2, "'Drama/War' count as one level each: join lists by"),
    "lists of Japan": (["劇、愛", "愛、劇", "愛"] * 2, "count as one level each"),
    "lists of Postgres": (["{Drama,War}", "{War}"] * 2, "count as one level each"),
    "names": (["Allen, Woody", "Allen, Tim", "Nolan, Christopher", "Nolan, Jonathan"] * 2, None),
    "places": (["Portland, OR", "Portland, ME", "Salem, OR", "Salem, MA"] * 2, None),
    "groups": (["18-24", "25-34", "35+", "Under 18"] * 2, None),
    "networks": (["3G", "4G", "5G"] * 2, None),
    "usual": (["PG-13", "R", "2D", "1990s", "none"] * 2, None),
    "counts": ([0, 1, 2, 3, 5, 8], None),
}


@pytest.mark.parametrize("kind", CELLS)
def test_what_cells_of_features_may_mean_otherwise_is_said(kind):
    cells, match = CELLS[kind]
    with pytest.warns(DataWarning, match=match) if match else nullcontext():
        Encoding.of(pd.DataFrame({"cells": cells}), "item")


CODES = dict.fromkeys(["zip_code", "category_id", "cluster", "genreId", "country_code", "ZIP"], True)


@pytest.mark.parametrize(
    ("name", "is_told"), [*CODES.items(), ("paid", False), ("year", False), ("n_clusters", False)]
)
def test_numbers_that_may_be_codes_are_said(name, is_told):
    table = pd.DataFrame({name: [94043, 10001, 55105, 60601] * 3})
    match = rf"the column '{name}' counts as numbers: .* table\['{name}'\]\.astype\(str\)"
    with pytest.warns(DataWarning, match=match) if is_told else nullcontext():
        Encoding.of(table, "item")
    assert len(Encoding.of(table.astype(str), "item").names) == 4


def test_ratings_over_many_decades_are_said_at_fit():
    raw = pd.DataFrame(SEVERAL, columns=["user", "item"]).assign(
        rating=np.geomspace(0.01, 1e4, 30)[np.arange(30) * 7 % 30]
    )
    with pytest.warns(DataWarning, match=r"between 0.01 and 10000: of affinities take air_recsys\.dti\.as_p_affinity"):
        GlobalMean().fit(raw)
    assert GlobalMean().fit(raw.assign(rating=raw["rating"] ** 0.25)).interactions_.n_ratings == len(raw)


def test_features_of_few_items_and_of_many_others_are_said():
    data = Interactions.from_frame(LONG_FRAME)
    with pytest.warns(DataWarning, match="features of 1 of 3 items of the data, and of 9 others: are their ids"):
        data.with_features(item=pd.DataFrame({"year": range(10)}, [9, *range(10, 19)]))


def test_times_of_two_units_and_a_second_header_are_said(tmp_path):
    timed = LONG_FRAME.assign(timestamp=[1_600_000_000, 1_600_000_001, 1_600_000_002_000, 1_600_000_003_000])
    with pytest.warns(DataWarning, match="some seconds, and some milliseconds"):
        Interactions.from_frame(timed, timestamp="timestamp")
    path = tmp_path / "likes.csv"
    path.write_text("user,item\nann,x\nuser,item\nbob,y\n")
    with pytest.warns(DataWarning, match="'user' and 'item', are ids: is the header there twice"):
        read_ratings(path, rating=None)


def test_a_saved_index_holds_the_users_of_a_wide_table_and_no_feature(tmp_path):
    wide = pd.DataFrame([[5, None, 3], [None, 2, 1], [4, 3, None]], columns=list("abc"))
    wide.to_csv(tmp_path / "wide.csv")
    data = as_interactions(pd.read_csv(tmp_path / "wide.csv"))
    assert (data.user_ids.tolist(), data.item_ids.tolist()) == ([0, 1, 2], ["a", "b", "c"])
    films = pd.DataFrame({"Unnamed: 0": [0, 1, 2], "item": list("abc"), "year": [1990, 2000, 1980]})
    with pytest.warns(DataWarning, match="features without a name, or of row numbers, are left out: .'Unnamed: 0'"):
        data.with_features(item=films)


@pytest.mark.parametrize("cells", [["1.5", "—", "2.5"], ["1,5", "2,5", "1,5"]])
def test_numbers_among_texts_of_features_are_said(cells):
    with pytest.warns(DataWarning, match="'price' count as levels, and not as numbers, for '(—|1,5)' is none"):
        Encoding.of(pd.DataFrame({"price": [*cells, *cells]}), "item")


def test_features_of_recbole_are_lists_and_row_numbers_are_no_ids_in_silence():
    data, genres = Interactions.from_frame(LONG_FRAME), {"genres:token_seq": ["War Drama", "Drama", "War"]}
    found = data.with_features(item=pd.DataFrame(genres, [7, 8, 9])).item_features
    assert found is not None
    assert found.names == ["genres:token_seq=Drama", "genres:token_seq=War"]
    with pytest.warns(DataWarning, match="their row numbers count as ids"):
        data.with_features(user=pd.DataFrame({"age": [20, 30, 40]}))


def test_a_zero_of_a_full_matrix_is_said_and_is_no_like():
    full = np.arange(36).reshape(6, 6) % 3
    with pytest.warns(DataWarning, match="every pair has a rating: a 0 counts as a rating"):
        as_interactions(full)
    assert as_likes(full).n_ratings == 24


def test_titles_stay_as_written(tmp_path):
    path = tmp_path / "titles.csv"
    path.write_text("id,title\n1,1917\n2,007\n3,\n")
    assert read_titles(path, np.array([1, 2, 3]))["title"].dropna().to_dict() == {1: "1917", 2: "007"}


def test_tables_by_chance_are_read_rightly_or_refused():
    rows, notes = misread_files(240, 3)
    assert notes == []
    assert sum(row["right"] for row in rows) > 0.85 * 240
