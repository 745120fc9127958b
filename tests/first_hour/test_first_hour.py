"""A first hour: with a wide table on a scale of -10..10, in which 99 is missing, and with likes without a header."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import answers, refuses, shell

from air_recsys import AIR

READERS, JOKES = [f"u{row:02d}" for row in range(40)], [f"joke-{column:02d}" for column in range(12)]
SHORT = "--device cpu --set n_sweeps=20 --set n_factors=2"


def jokes() -> pd.DataFrame:
    """Even readers like even jokes, odd ones odd ones; a third is not rated: 99."""
    rng = np.random.default_rng(0)
    alike = np.arange(40)[:, None] % 2 == np.arange(12) % 2
    ratings = (np.where(alike, 6, -6) + rng.normal(0, 2, (40, 12))).clip(-10, 10).round(2)
    ratings[rng.random(ratings.shape) < 0.33] = 99
    return pd.DataFrame(ratings, READERS, JOKES)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the hour: the table, and a model of it."""
    folder = tmp_path_factory.mktemp("hour")
    jokes().rename_axis("reader").to_csv(folder / "jokes.csv")
    scale = "--rating-scale=-10,10 --missing 99"
    ended = shell(f"air-recsys train {folder}/jokes.csv {scale} {SHORT} --model {folder}/jokes.air")
    assert ended.status == 0
    n_ratings = np.count_nonzero(jokes() != 99)
    assert f"Interactions(n_users=40, n_items=12, n_ratings={n_ratings}, " in ended.out
    return folder


def test_each_refusal_says_what_to_write_next(room: Path) -> None:
    n_missing, train = np.count_nonzero(jokes() == 99), f"air-recsys train {room}/jokes.csv {SHORT}"
    for command in (
        train,
        f"{train} --negative",
        f"air-recsys evaluate {room}/jokes.csv",
        f"air-recsys tune {room}/jokes.csv --trials 1",
    ):
        refuses(command, f"found {n_missing} of 480 to be 99, where all others lie in -10..10", "--missing 99")
    refuses(f"{train} --rating-scale=-10,10", f"found {n_missing} outside, the first in row", ": 99;", "--missing 99")
    refuses(f"{train} --rating-scale 10", "--rating-scale expects LOW,HIGH, such as 1,5, found '10'")


@pytest.mark.filterwarnings("default::air_recsys.exceptions.DataWarning")
def test_scores_are_on_the_scale_and_unknown_ids_are_told(room: Path) -> None:
    asked = f"air-recsys predict {room}/jokes.air --item joke-03 --user"
    header, even, odd = answers(f"{asked} u00 --user u01")
    assert header == ["user", "item", "score", "deviation", "low", "high", "source"]
    assert float(even[2]) < 0 < float(odd[2])
    assert even[-1] == odd[-1] == "model"
    known = answers(f"{asked} u00 --user U000 --unknown mean")
    assert known[2][-2:] == ["item", "mean"]
    warned = shell(f"{asked} u00 --user U000")
    assert warned.status == 0
    assert warned.err == (
        "warning: 1 of 2 pairs get a mean rating, as 1 user id(s) are unknown ('U000', nearest known: 'u00', 'u30', "
        "'u20'); predict_table says which\n"
    )
    refuses(f"{asked} zoe", "1 user id(s) were not in the training data: 'zoe'", "--unknown mean")
    refuses(f"{asked} u00 --user zoe --unknown error", "1 user id(s) were not in the training data: 'zoe'")


def test_a_table_of_pairs_is_scored_row_by_row(room: Path) -> None:
    pairs = pd.DataFrame({"User": ["u03", "u00", "u03"], "ITEM": ["joke-01", "joke-01", "joke-01"]})
    pairs.to_csv(room / "pairs.csv", index=False)
    assert answers(f"air-recsys predict {room}/jokes.air --pairs {room}/pairs.csv --out {room}/scores.csv") == [
        ["wrote", "3", "scores", "to", f"{room}/scores.csv"]
    ]
    found = pd.read_csv(room / "scores.csv")
    assert found["user"].tolist() == pairs["User"].tolist()
    np.testing.assert_allclose(found["score"], AIR.load(room / "jokes.air").predict(found["user"], found["item"]))
    refuses(f"air-recsys predict {room}/jokes.air --user u00", "expected --user with --item, or --pairs without them")


def test_new_ratings_have_to_lie_on_the_scale(room: Path) -> None:
    (room / "new.csv").write_text("reader,joke-00,joke-01\nzoe,9,-9\n")
    _, *rows = answers(f"air-recsys recommend {room}/jokes.air --ratings {room}/new.csv --n 3")
    assert [row[0] for row in rows] == ["zoe"] * 3
    assert all(int(row[1][-2:]) % 2 == 0 for row in rows)
    (room / "new.csv").write_text("reader,joke-00,joke-01\nzoe,99,-9\n")
    refuses(
        f"air-recsys recommend {room}/jokes.air --ratings {room}/new.csv",
        "expected ratings in -10..10 (the scale of the training data), found 99",
    )


def likes() -> pd.DataFrame:
    """Even readers like even books, odd ones odd ones."""
    rng = np.random.default_rng(0)
    alike = np.arange(40)[:, None] % 2 == np.arange(12) % 2
    readers, books = np.nonzero(rng.random((40, 12)) < np.where(alike, 0.6, 0.05))
    return pd.DataFrame({"user": [f"reader-{row}" for row in readers], "item": [f"book-{column}" for column in books]})


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_each_refusal_of_likes_says_what_to_write_next(library: Path) -> None:
    refuses(_train(library / "likes.data"), "a file without a header line needs", "(in the shell --columns user,item)")
    refuses(f"{_train(library / 'named.csv')} --item-column book", "--item-column bookId)?")
    refuses(
        f"air-recsys train {library}/likes.data --columns user,item",
        "columns (in the shell --columns) name the fields of a line: expected the column(s) ['rating']",
    )
    refuses(f"{_train(library / 'likes.data')} --columns user,item --missing 99", "--ranking does not read --missing")


@pytest.mark.parametrize(
    "form", ["likes.txt --sep ';' --columns user,item", "named.csv --user-column READERID --item-column bookid"]
)
def test_lists_are_measured_from_every_form(library: Path, form: str) -> None:
    measured = shell(f"air-recsys evaluate {library}/{form} --ranking --k 3 --set n_factors=3 --device cpu")
    assert measured.status == 0
    assert f"n_ratings={len(likes())}, " in measured.out
    assert "GraphRanker" in measured.out


def test_lists_of_a_new_reader(library: Path) -> None:
    (library / "new.data").write_text("zoe\tbook-2\nzoe\tbook-4\n")
    asked = f"air-recsys recommend {library}/likes.air --ratings {library}/new.data"
    _, *rows = answers(f"{asked} --columns user,item --n 2")
    assert [row[0] for row in rows] == ["zoe"] * 2
    assert all(int(row[1].removeprefix("book-")) % 2 == 0 for row in rows)
    refuses(asked, "(in the shell --columns user,item)")
