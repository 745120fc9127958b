"""A first hour with a wide table on a scale of -10..10, in which 99 stands for missing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from first_hour_cases import answers, refuses, shell

from air_recsys import AIR
from air_recsys.datasets import read_ratings
from air_recsys.exceptions import DataError, DataWarning, UnknownIdError

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
    for command in (train, f"air-recsys evaluate {room}/jokes.csv", f"air-recsys tune {room}/jokes.csv --trials 1"):
        refuses(command, f"found {n_missing} of 480 to be 99, where all others lie in -10..10", "--missing 99")
    refuses(f"{train} --rating-scale=-10,10", f"found {n_missing} outside, the first in row", ": 99;", "--missing 99")
    refuses(
        f"{train} --negative", f"found {n_missing} of 480 to be 99, where all others lie in -10..10", "--missing 99"
    )
    refuses(f"{train} --rating-scale 10", "--rating-scale expects LOW,HIGH, such as 1,5, found '10'")


def test_the_errors_of_a_stated_scale_are_measured(room: Path) -> None:
    measured = shell(f"air-recsys evaluate {room}/jokes.csv --rating-scale=-10,10 --missing 99 {SHORT}")
    rows = {words[0]: words for words in map(str.split, measured.out.splitlines()) if len(words) > 5}
    assert measured.status == 0
    assert float(rows["AIR"][1]) < 4 < float(rows["GlobalMean"][1])


@pytest.mark.filterwarnings("default::air_recsys.exceptions.DataWarning")
def test_scores_are_on_the_scale_and_unknown_ids_are_told(room: Path) -> None:
    asked = f"air-recsys predict {room}/jokes.air --item joke-03 --user"
    header, even, odd = answers(f"{asked} u00 --user u01")
    assert header == ["user", "item", "score", "deviation", "source"]
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


def test_systems_are_compared_on_it(room: Path) -> None:
    line = f"air-recsys compare {room}/jokes.csv --models GlobalMean,Biases --k 3"
    told = shell(f"{line} --rating-scale=-10,10 --missing 99")
    assert told.status == 0
    errors = next(words for words in map(str.split, told.out.splitlines()) if words[:1] == ["GlobalMean"])
    assert 3 < float(errors[1]) < 9


def test_a_table_of_pairs_is_scored_row_by_row(room: Path) -> None:
    pairs = pd.DataFrame({"User": ["u03", "u00", "u03"], "ITEM": ["joke-01", "joke-01", "joke-01"]})
    pairs.to_csv(room / "pairs.csv", index=False)
    assert answers(f"air-recsys predict {room}/jokes.air --pairs {room}/pairs.csv --out {room}/scores.csv") == [
        ["wrote", "3", "scores", "to", f"{room}/scores.csv"]
    ]
    found = pd.read_csv(room / "scores.csv")
    assert found["user"].tolist() == pairs["User"].tolist()
    np.testing.assert_allclose(found["score"], AIR.load(room / "jokes.air").predict(found["user"], found["item"]))
    refuses(f"air-recsys predict {room}/jokes.air --user u00", "expected --user with --item, or --pairs alone")


def test_an_unknown_reader_gets_what_all_like_best_first(room: Path) -> None:
    _, *rows = answers(f"air-recsys recommend {room}/jokes.air --user zoe --n 12")
    scores = [float(row[2]) for row in rows]
    assert len(rows) == 12
    assert scores == sorted(scores, reverse=True)
    assert {row[-1] for row in rows} == {"popular"}
    rated = jokes().replace(99, np.nan)
    damped = (rated.sum() + 5 * np.nanmean(rated)) / (rated.count() + 5)
    assert scores[0] == pytest.approx(damped.max(), abs=1e-3)


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


def test_the_same_in_python(room: Path) -> None:
    table = jokes()
    how = {"n_sweeps": 20, "n_factors": 2, "random_state": 0, "device": "cpu", "clip": True}
    with pytest.raises(DataError, match=r"to be 99, where all others lie in -10\.\.10"):
        AIR.for_ratings(**how).fit(table)
    with pytest.warns(DataWarning, match=re.escape("part of the scale: state rating_scale=(-10, 10)")):
        assert AIR.for_ratings(**how).fit(table.replace(99, np.nan)).rating_scale_ == (-10, 10)
    with pytest.raises(DataError, match=r"expected ratings in -10\.\.10 \(rating_scale\), .*: 99;"):
        AIR.for_ratings(**how).fit(table, rating_scale=(-10, 10))
    model = AIR.for_ratings(**how).fit(table.replace(99, np.nan), rating_scale=(-10, 10))
    read = read_ratings(room / "jokes.csv", rating_scale=(-10, 10), missing=99)
    assert model.interactions_.user_ids.tolist() == read.user_ids.tolist() == READERS
    np.testing.assert_array_equal(model.interactions_.to_dense(), read.to_dense())
    assert abs(model.predict(READERS, JOKES[0])).max() <= 10
    with pytest.raises(DataError, match=r"expected ratings in -10\.\.10 \(the scale of the training data\), found 99"):
        model.partial_fit(pd.DataFrame({"user": ["u00"], "item": ["joke-00"], "rating": [99]}))
    with pytest.warns(DataWarning, match="1 of 2 pairs get a mean rating"):
        model.predict(["u00", "zoe"], "joke-03")
    with pytest.raises(UnknownIdError, match="the nearest known are 'joke-03'"):
        model.predict("u00", "joke 03")
