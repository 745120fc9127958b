"""`air-recsys explain`: what the library answers, as text and as JSON."""

import json

import pandas as pd
import pytest
from cli_cases import cli, fill, read_json

from air_recsys import AIR


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


@pytest.mark.parametrize(("ids", "user", "item"), [("integer", 10, 5), ("text", "u10", "i5")])
def test_it_prints_and_writes_what_the_model_answers(folder, tmp_path, ids, user, item):
    model = folder / f"{ids}.air"
    ended = cli("explain", model, "--user", user, "--item", item, "--n", 3, "--json", tmp_path / "e.json")
    assert ended.status == 0
    expected = AIR.load(model).explain(user, item, n=3)
    assert ended.out == f"{expected}\n"
    written = read_json(tmp_path / "e.json")
    assert written == expected.to_dict()
    assert (written["user"], written["item"]) == (user, item)
    assert sum(written["parts"].values()) == pytest.approx(written["score"], abs=1e-5)


@pytest.mark.parametrize("ids", ["integer", "text"])
def test_titles_name_the_items(folder, tmp_path, ids):
    item = "5" if ids == "integer" else "i5"
    table = pd.DataFrame({"id": [item, "0" if ids == "integer" else "i0"], "title": ["Heat", "Fargo"]})
    table.to_csv(tmp_path / "titles.csv", index=False)
    user = "10" if ids == "integer" else "u10"
    ended = cli("explain", folder / f"{ids}.air", "--user", user, "--item", item, "--titles", tmp_path / "titles.csv")
    assert ended.status == 0
    assert f"user {user}, item {item} (Heat): score" in ended.out
    assert "Fargo" in ended.out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("text.air", "--user", "u10"), 2, "Missing option '--item'"),
        (("text.air", "--user", "nobody", "--item", "i5"), 1, "1 user id(s) were not in the training data: 'nobody'"),
        (("text.air", "--user", "u10", "--item", "i99"), 1, "1 item id(s) were not in the training data: 'i99'"),
        (("integer.air", "--user", "ten", "--item", "5"), 1, "this model's ids are integers, found 'ten'"),
        (("text.air", "--user", "u10", "--item", "i5", "--n", "0"), 1, "n must be an integer >= 1, found 0"),
        (
            ("bias.air", "--user", "u10", "--item", "i5"),
            1,
            "only AIR, DMF and GraphRanker explain their scores, found a model of class",
        ),
        (("none.air", "--user", "u10", "--item", "i5"), 1, "expected a model file, found no file"),
        (("truncated.air", "--user", "u10", "--item", "i5"), 1, "is not a whole air_recsys model file"),
        (("text.air", "--user", "u10", "--item", "i5", "--json", "no/such/e.json"), 1, "expected an existing folder"),
    ],
)
def test_bad_input_ends_with_one_line(folder, arguments, status, message):
    model, *rest = arguments
    ended = cli("explain", folder / model, *rest)
    assert ended.status == status
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""


def test_a_score_of_a_ranker_is_told_by_item_and_term(folder, tmp_path):
    model, figures = tmp_path / "lists.air", tmp_path / "e.json"
    likes = tmp_path / "likes.csv"
    rows = [(f"u{user}", f"i{item}", 1) for user in range(12) for item in range(9) if (user + item) % 3 or not item]
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(likes, index=False)
    assert cli("train", likes, "--ranking", "--model", model, "--set", "n_factors=3").status == 0
    ended = cli("explain", model, "--user", "u0", "--item", "i3", "--n", "2", "--json", figures)
    assert ended.status == 0, ended.err
    assert ended.out.startswith("user u0, item i3: score ")
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert sum(told["parts"].values()) == pytest.approx(told["score"], rel=1e-4)
    assert len(told["items"]) == 2
