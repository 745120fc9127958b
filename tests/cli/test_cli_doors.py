"""Options that take what people have: probabilities, filters of whole tables, titles under other names."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from cli_cases import cli, fill, read_json

from air_recsys import AIR


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


def test_predict_prints_the_probability_of_each_value(folder, tmp_path):
    asked = ["predict", folder / "text.air", "--user", "u10", "--item", "i0", "--item", "i1", "--probabilities"]
    ended = cli(*asked, "--json", tmp_path / "found.json", "--out", tmp_path / "found.csv")
    assert ended.status == 0, ended.err
    found, model = pd.read_csv(tmp_path / "found.csv"), AIR.load(folder / "text.air")
    names = [f"p({value:g})" for value in model.rating_values_]
    assert list(found.columns) == ["user", "item", "score", "deviation", "source", *names]
    assert found[names].to_numpy() == pytest.approx(model.predict_proba("u10", ["i0", "i1"]))
    assert [row["p(5)"] for row in read_json(tmp_path / "found.json")["scores"]] == found["p(5)"].tolist()


def test_an_unknown_id_is_told_once_beside_probabilities(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = cli(
            "predict", folder / "text.air", "--user", "u10", *("--item", "i0", "--item", "i99"), "--probabilities"
        )
    assert ended.status == 0
    assert ended.err.count("1 of 2 pairs get a mean rating") == 1
    assert "user mean" in ended.out


def test_a_model_without_probabilities_is_told(folder):
    ended = cli("predict", folder / "bias.air", "--user", "u10", "--item", "i0", "--probabilities")
    assert ended.status != 0
    assert ended.err == "error: --probabilities needs a model of AIR.for_ratings(), found a BiasModel\n"


@pytest.mark.parametrize("header", ["id,title", "item,title", "movieId,Title", "Movie,movieId,genres", "isbn,name"])
def test_titles_have_ids_under_the_names_of_ratings(folder, tmp_path, header):
    names = header.split(",")
    ids = next(name for name in names if name in ("id", "item", "movieId", "isbn"))
    row = ["i0" if name == ids else f"the {name}" for name in names]
    (tmp_path / "titles.csv").write_text("\n".join([header, ",".join(row)]), encoding="utf-8")
    asked = ["recommend", folder / "text.air", "--user", "u10", "--include-seen", "--n", "6"]
    ended = cli(*asked, "--titles", tmp_path / "titles.csv")
    assert ended.status == 0, ended.err
    assert f"the {next(name for name in names if name != ids)}" in ended.out


def test_a_column_of_ids_under_another_name_is_named(folder, tmp_path):
    (tmp_path / "titles.csv").write_text("code,title\ni0,Heat\n", encoding="utf-8")
    ended = cli("similar", folder / "text.air", "--item", "i0", "--titles", tmp_path / "titles.csv")
    assert ended.status == 1
    assert "found ['code', 'title']; rename 'code', which holds ids of the model, to id" in ended.err


def test_titles_of_other_items_are_told_with_both_ids(folder, tmp_path):
    (tmp_path / "titles.csv").write_text("movieId,title\n7,Heat\n", encoding="utf-8")
    ended = cli("similar", folder / "text.air", "--item", "i0", "--titles", tmp_path / "titles.csv")
    assert (
        "none of their ids in its column 'movieId': they are such as 'i0', those of the file such as '7'" in ended.err
    )
