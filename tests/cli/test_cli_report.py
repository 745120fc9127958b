"""The command ``report``: the library's page, its figures as JSON, and every fault in one line before any work."""

import pandas as pd
import pytest
from cli_cases import cli, fill, ratings, read_json

from air_recsys import AIR
from air_recsys.evaluation.held_out import evaluate_model
from air_recsys.evaluation.results.table import format_number


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


@pytest.mark.parametrize("ids", ["integer", "text"])
def test_report_writes_a_page_and_prints_the_errors(folder, tmp_path, ids):
    out, target = tmp_path / "page.html", tmp_path / "r.json"
    test = folder / f"{ids}.csv"
    ended = cli("report", folder / f"{ids}.air", "--out", out, "--test", test, "--json", target)
    assert ended.status == 0, ended.err
    expected = evaluate_model(AIR.load(folder / f"{ids}.air"), ratings(ids))
    figures = read_json(target)
    assert figures["models"] == [
        {name: value if name == "model" else pytest.approx(value) for name, value in row.items()}
        for row in expected.rows
    ]
    assert figures["versions"]["air-recsys"]
    assert all(format_number(row["rmse"]) in ended.out for row in expected.rows)
    assert "are among the training ratings" in ended.out
    assert f"wrote {out}" in ended.out
    assert "no snapshots of the graphs" in out.read_text(encoding="utf-8")


def test_titles_are_found_by_id(folder, tmp_path):
    out = tmp_path / "page.html"
    titles = tmp_path / "titles.csv"
    for ids, prefix in (("integer", ""), ("text", "i")):
        names = {"id": [f"{prefix}{item}" for item in range(6)], "title": [f"<b>Film {item}" for item in range(6)]}
        pd.DataFrame(names).to_csv(titles, index=False)
        ended = cli("report", folder / f"{ids}.air", "--out", out, "--titles", titles)
        assert ended.status == 0, ended.err
        assert "&lt;b&gt;Film 5" in out.read_text(encoding="utf-8")


def test_text_ids_that_look_like_numbers(tmp_path):
    data = ratings("integer").astype({"user": str, "item": str})
    data.loc[0, "user"] = "someone"
    AIR.for_completion(n_epochs=10, device="cpu", random_state=0).fit(data).save(tmp_path / "model.air")
    ratings("integer").to_csv(tmp_path / "test.csv", index=False)
    ended = cli("report", tmp_path / "model.air", "--out", tmp_path / "page.html", "--test", tmp_path / "test.csv")
    assert ended.status == 0, ended.err
    assert "not in the training data" not in ended.out


def test_evaluate_fits_anew(folder, tmp_path):
    ended = cli("report", folder / "text.air", "--out", tmp_path / "page.html", "--evaluate")
    assert ended.status == 0, ended.err
    assert "Error on ratings held out" in ended.out
    assert "Error on ratings held out" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_model_without_graphs(folder, tmp_path):
    ended = cli("report", folder / "bias.air", "--out", tmp_path / "page.html")
    assert ended.status == 0, ended.err
    assert "Training error" in ended.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{}/truncated.air"], "is not a whole air_recsys model file"),
        (["{}/missing.air"], "expected a model file"),
        (["{}/text.air", "--test", "{}/words.csv"], "many"),
        (["{}/text.air", "--test", "{}/text.csv", "--evaluate"], "expected --test or --evaluate, found both"),
        (["{}/text.air", "--titles", "{}/text.csv"], "must be distinct, found 'i0' twice"),
        (["{}/text.air", "--titles", "{}/missing.csv"], "expected a CSV with the model's item ids"),
        (["{}/text.air", "--titles", "{}/empty.csv"], "expected a CSV with the model's item ids"),
        (["{}/text.air", "--titles", "{}/binary.csv"], "expected a CSV with the model's item ids"),
        (["{}/text.air", "--titles", "{}/strange.csv"], "found none of their ids"),
        (["{}/text.air", "--json", "{}/no/r.json"], "expected an existing folder"),
    ],
)
def test_faults_are_one_line_and_leave_no_page(folder, tmp_path, arguments, message):
    pd.DataFrame({"id": ["x"], "title": ["y"]}).to_csv(folder / "strange.csv", index=False)
    out = tmp_path / "page.html"
    ended = cli("report", *[part.format(folder) for part in arguments], "--out", out)
    assert ended.status > 0
    assert message in ended.err
    assert len(ended.err.splitlines()) == 1
    assert not out.exists()


def test_a_page_that_could_not_be_written(folder, tmp_path):
    for out in (tmp_path, tmp_path / "no" / "page.html"):
        ended = cli("report", folder / "text.air", "--out", out)
        assert ended.status == 1
        assert "folder" in ended.err
    assert list(tmp_path.iterdir()) == []
