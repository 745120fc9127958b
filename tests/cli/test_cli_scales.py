"""Ratings below 0, repeated pairs, and likes without ratings, from the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import SHORT, cli

from air_recsys.models import AIR, GraphRanker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scale of -10..10 with one repeated pair, and a new user's rating."""
    rows = [("a", "x", -9.5), ("a", "y", 4), ("b", "x", -8), ("b", "y", 5), ("b", "z", 1), ("c", "z", 2)]
    rows += [("c", "x", -9), ("c", "x", -7), ("d", "y", 3), ("d", "z", 0)]
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(tmp_path / "scale.csv", index=False)
    (tmp_path / "new.csv").write_text("user,item,rating\ne,x,-9\n")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--negative"], "--duplicates"),
        (["--negative", "--duplicates", "x"], "mean"),
    ],
)
def test_each_is_refused_with_its_option_until_it_is_meant(folder: Path, options: list[str], message: str) -> None:
    for command in ("train", "evaluate", "tune"):
        ended = cli(command, folder / "scale.csv", *options)
        assert ended.status in (1, 2)
        assert message in ended.err


def test_a_scale_with_negative_ratings_is_found_and_said(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = cli("train", folder / "scale.csv", "--model", folder / "found.air", "--duplicates", "mean", *SHORT)
    assert ended.status == 0
    told = "ratings below 0 are taken as part of the scale: state rating_scale=(-9.5, 5) (in the shell --rating-scale="
    assert ended.err.count(told) == 1
    assert AIR.load(folder / "found.air").rating_scale_ == (-9.5, 5)


def test_a_single_value_below_zero_is_a_code_until_it_is_meant(folder: Path) -> None:
    (folder / "code.csv").write_text("user,item,rating\na,x,-1\na,y,7\nb,x,10\nb,y,-1\n", encoding="utf-8")
    ended = cli("train", folder / "code.csv", "--model", folder / "code.air", *SHORT)
    assert ended.status == 1
    assert "found 2 negative, the first in row 0: -1; if these are no code for missing" in ended.err


def test_a_scale_with_negative_ratings_is_trained_asked_and_measured(folder: Path) -> None:
    model, how = folder / "model.air", ["--negative", "--duplicates", "mean"]
    assert cli("train", folder / "scale.csv", "--model", model, *how, *SHORT).status == 0
    data = AIR.load(model).interactions_
    assert (data.n_ratings, data.ratings.min()) == (9, -9.5)
    assert data.to_frame().set_index(["user", "item"]).loc[("c", "x"), "rating"] == -8
    lists = cli("recommend", model, "--ratings", folder / "new.csv", "--n", 1)
    assert lists.status == 0
    assert lists.out.splitlines()[1].split()[0] == "e"
    measured = cli("evaluate", folder / "scale.csv", *how, *SHORT)
    assert (measured.status, "rmse" in measured.out) == (0, True)


def test_a_parameter_that_is_nearly_one_is_named(folder: Path) -> None:
    ended = cli("train", folder / "new.csv", "--negative", "--set", "n_factor=3")
    assert "is n_factors meant?" in ended.err


def test_likes_need_no_column_of_ratings(tmp_path: Path) -> None:
    users, items = np.nonzero(np.random.default_rng(0).random((30, 12)) < 0.4)
    likes = pd.DataFrame({"user": [f"u{user}" for user in users], "item": [f"i{item}" for item in items]})
    pd.concat([likes, likes.head(3)]).to_csv(tmp_path / "likes.csv", index=False)
    pd.DataFrame({"user": ["eve"], "item": ["i3"]}).to_csv(tmp_path / "new.csv", index=False)
    model, how = tmp_path / "lists.air", ["--ranking", "--set", "n_factors=3"]
    assert cli("train", tmp_path / "likes.csv", "--model", model, *how).status == 0
    assert GraphRanker.load(model).interactions_.n_ratings == len(likes)
    assert cli("recommend", model, "--ratings", tmp_path / "new.csv", "--n", 2).status == 0
    measured = cli("evaluate", tmp_path / "likes.csv", *how, "--k", 3, "--peers", "als")
    assert (measured.status, "GraphRanker" in measured.out) == (0, True)
    refused = cli("evaluate", tmp_path / "likes.csv", *how, "--rating-column", "stars")
    assert "--ranking does not read --rating-column" in refused.err


def test_what_is_not_read_is_refused(folder: Path) -> None:
    for arguments, message in (
        (("evaluate", "--dataset", "movielens-100k", "--negative"), "--dataset does not read --negative"),
        (("evaluate", "--dataset", "movielens-100k", "--duplicates", "mean"), "--dataset does not read --duplicates"),
        (("train", folder / "scale.csv", "--ranking", "--negative"), "--ranking does not read --negative"),
    ):
        assert message in cli(*arguments).err
