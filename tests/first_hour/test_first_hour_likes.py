"""A first hour with likes: ids are text, and the file has no header line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from first_hour_cases import answers, refuses, shell

from air_recsys import AIR, Interactions
from air_recsys.datasets import read_ratings
from air_recsys.exceptions import DataError, DataFileError

COLUMNS = ["user", "item"]


def likes() -> pd.DataFrame:
    """Even readers like even books, odd ones odd ones."""
    rng = np.random.default_rng(0)
    alike = np.arange(40)[:, None] % 2 == np.arange(12) % 2
    readers, books = np.nonzero(rng.random((40, 12)) < np.where(alike, 0.6, 0.05))
    return pd.DataFrame({"user": [f"reader-{row}" for row in readers], "item": [f"book-{column}" for column in books]})


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the hour: files of likes, and a model of them."""
    folder = tmp_path_factory.mktemp("hour")
    likes().to_csv(folder / "likes.data", sep="\t", header=False, index=False)
    likes().to_csv(folder / "likes.txt", sep=";", header=False, index=False)
    likes().rename(columns={"user": "readerId", "item": "bookId"}).to_csv(folder / "named.csv", index=False)
    ended = shell(f"{_train(folder / 'likes.data')} --columns user,item --model {folder}/likes.air")
    assert ended.status == 0
    assert f"n_ratings={len(likes())}, " in ended.out
    return folder


def _train(file: Path) -> str:
    return f"air-recsys train {file} --ranking --device cpu --set n_factors=3"


def test_each_refusal_says_what_to_write_next(room: Path) -> None:
    refuses(_train(room / "likes.data"), "a file without a header line needs", "(in the shell --columns user,item)")
    refuses(_train(room / "named.csv"), "--user-column readerId --item-column bookId")
    refuses(
        f"air-recsys train {room}/likes.data --columns user,item",
        "columns (in the shell --columns) name the fields of a line: expected the column(s) ['rating']",
    )
    refuses(f"{_train(room / 'likes.data')} --columns user,item --missing 99", "--ranking does not read --missing")


@pytest.mark.parametrize(
    "options",
    ["likes.data --columns user,item", "likes.txt --sep ; --columns user,item", "named.csv --user-column READERID"],
)
def test_lists_are_measured_from_every_form(room: Path, options: str) -> None:
    name, _, how = options.partition(" ")
    how = how.replace(";", "';'") + (" --item-column bookid" if name == "named.csv" else "")
    measured = shell(f"air-recsys evaluate {room}/{name} {how} --ranking --k 3 --set n_factors=3 --device cpu")
    assert measured.status == 0
    assert f"n_ratings={len(likes())}, " in measured.out
    assert "GraphRanker" in measured.out


def test_lists_of_known_and_unknown_readers(room: Path) -> None:
    _, *rows = answers(f"air-recsys recommend {room}/likes.air --user reader-2 --user nobody --n 2")
    assert [row[0] for row in rows] == ["reader-2"] * 2 + ["nobody"] * 2
    assert [row[-1] for row in rows] == ["model"] * 2 + ["popular"] * 2
    assert int(rows[0][1].removeprefix("book-")) % 2 == 0
    shares = likes()["item"].value_counts() / likes()["user"].nunique()
    assert [float(row[2]) for row in rows[2:]] == pytest.approx(shares.iloc[:2].tolist(), abs=1e-3)


def test_lists_of_a_new_reader(room: Path) -> None:
    (room / "new.data").write_text("zoe\tbook-2\nzoe\tbook-4\n")
    asked = f"air-recsys recommend {room}/likes.air --ratings {room}/new.data"
    _, *rows = answers(f"{asked} --columns user,item --n 2")
    assert [row[0] for row in rows] == ["zoe"] * 2
    assert all(int(row[1].removeprefix("book-")) % 2 == 0 for row in rows)
    refuses(asked, "(in the shell --columns user,item)")


def test_the_same_in_python(room: Path) -> None:
    data = read_ratings(room / "likes.data", rating=None, columns=COLUMNS)
    same = Interactions.from_frame(likes(), rating=None)
    np.testing.assert_array_equal(data.to_dense(), same.to_dense())
    with pytest.raises(DataFileError, match=r"needs columns=\['user', 'item'\]"):
        read_ratings(room / "likes.data", rating=None)
    with pytest.raises(DataError, match=r"is user='readerId', item='bookId' meant, for Interactions\.from_frame"):
        Interactions.from_frame(likes().rename(columns={"user": "readerId", "item": "bookId"}), rating=None)
    model = AIR.for_likes(n_factors=3, random_state=0, device="cpu").fit(data)
    known, unknown = model.recommend("reader-2", 3), model.recommend("nobody", 3)
    assert set(known["source"]) == {"model"}
    assert set(unknown["source"]) == {"popular"}
    assert (np.diff(unknown["score"]) <= 0).all()
