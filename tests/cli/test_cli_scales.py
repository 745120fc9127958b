"""Ratings below 0 and repeated pairs, from the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from cli_cases import SHORT, cli

from air_recsys import AIR


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
    [([], "--negative"), (["--negative"], "--duplicates"), (["--negative", "--duplicates", "x"], "mean")],
)
def test_each_is_refused_with_its_option_until_it_is_meant(folder: Path, options: list[str], message: str) -> None:
    for command in ("train", "evaluate", "tune"):
        ended = cli(command, folder / "scale.csv", *options)
        assert ended.status in (1, 2)
        assert message in ended.err


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
