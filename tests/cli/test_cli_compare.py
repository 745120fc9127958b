"""`air-recsys compare`: from files to tables, JSON and a page; its figures are those of `benchmarks ratings`."""

import numpy as np
import pandas as pd
import pytest
from cli_cases import cli, ratings, read_json

from air_recsys.datasets import load_movielens_fold
from air_recsys.evaluation import comparing
from air_recsys.evaluation.experiment import here
from air_recsys.evaluation.folds import Fold
from benchmarks.accuracy import ratings as bench
from benchmarks.accuracy.ratings import rating_systems


@pytest.fixture
def at_once(monkeypatch):
    """Train in this process: starting one takes seconds."""

    monkeypatch.setattr(comparing, "process_place", lambda threads: here)
    monkeypatch.setattr(bench, "process_place", lambda threads: here)


@pytest.fixture
def files(tmp_path):
    """Ratings whole, in two parts, and as likes."""
    frame = ratings("text")
    frame["day"] = np.random.default_rng(0).permutation(len(frame))
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    frame.iloc[::2].to_csv(tmp_path / "train.csv", index=False)
    frame.iloc[1::2].to_csv(tmp_path / "test.csv", index=False)
    frame[["user", "item"]].to_csv(tmp_path / "likes.csv", index=False)
    return tmp_path


def test_processes_apart_give_tables_json_and_a_page(files):
    out = ["--json", files / "found.json", "--out", files / "page.html"]
    ended = cli("compare", files / "ratings.csv", "--models", "biases, popularity", "--k", "2", *out)
    assert ended.status == 0, ended.err
    assert ended.out.startswith("Errors of predicted ratings\nratings.csv: 8 users, 6 items")
    written = read_json(files / "found.json")
    assert [row["system"] for row in written["rows"]] == ["Biases", "Popularity"]
    assert written["rows"][0]["memory_mib"] >= 0
    assert "Biases beside 1 other system" in (files / "page.html").read_text()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("file", "options", "told"),
    [
        ("ratings.csv", ["--folds", "2"], "2 random folds"),
        ("ratings.csv", ["--split", "time", "--timestamp-column", "day"], "the latest 10%"),
        ("ratings.csv", ["--test-fraction", "0.4"], "40% held out at random"),
        ("ratings.csv", ["--relevant", "2"], "relevant for lists are test ratings of at least 2\n"),
        ("train.csv", ["--test", "test.csv"], "given test ratings"),
        ("likes.csv", ["--ranking"], "all test items are relevant"),
    ],
)
def test_parts_are_those_that_are_asked_for(files, monkeypatch, file, options, told):
    monkeypatch.chdir(files)
    ended = cli("compare", file, "--models", "Popularity,Biases", "--k", "2", *options)
    assert ended.status == 0, ended.err
    assert told in ended.out


@pytest.mark.usefixtures("at_once")
def test_settings_reach_air(files):
    options = ["--set", "n_factors=2", "--set", "n_sweeps=3", "--k", "2", "--json", files / "found.json"]
    ended = cli("compare", files / "ratings.csv", "--models", "AIR,Biases", *options)
    assert ended.status == 0, ended.err
    assert read_json(files / "found.json")["settings"]["AIR"] == "AIR.for_ratings(n_factors=2, n_sweeps=3)"


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("parts", [["likes.csv", "--ranking"], ["train.csv", "--test", "test.csv"]])
def test_lists_longer_than_the_items_are_told_and_no_error(files, monkeypatch, parts):
    monkeypatch.chdir(files)
    ended, most = (cli("compare", *parts, "--models", "Popularity", "--k", k) for k in (99, 6))
    assert (ended.status, most.status) == (0, 0), ended.err
    assert "note: fewer than 99 items are left (--k): lists have at most 6\n" in ended.err
    assert "note" not in most.err
    assert "ndcg@6" in ended.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--models", "Surprize SVD"], "no system is called 'Surprize SVD': did you mean Surprise SVD?"),
        (["--models", "Biases", "--set", "n_factors=2"], "none of the systems Biases reads n_factors"),
        (["--test", "test.csv", "--folds", "3"], "--test does not read --folds"),
        (["--folds", "3", "--split", "time"], "--folds makes random folds"),
        (["--ranking", "--relevant", "4"], "with --ranking all test items are relevant"),
        (["--split", "time"], "expected ratings with timestamps"),
        (["--out", "none/page.html"], "expected an existing folder for page.html"),
    ],
)
def test_bad_options_are_refused_before_any_training(files, monkeypatch, options, message):
    monkeypatch.chdir(files)
    monkeypatch.setattr(comparing, "process_place", None)
    ended = cli("compare", "ratings.csv", *options)
    assert ended.status == 1
    assert message in ended.err


@pytest.mark.data
@pytest.mark.usefixtures("at_once")
def test_figures_on_movielens_are_those_of_the_benchmark(data_root, tmp_path):
    parts = []
    for part in ("base", "test"):
        table = pd.read_csv(data_root / "ml-100k" / f"u1.{part}", sep="\t", names=["user", "item", "rating", "time"])
        table.to_csv(tmp_path / f"{part}.csv", index=False)
        parts.append(tmp_path / f"{part}.csv")
    names = ["AIR", "Biases", "Surprise BaselineOnly"]
    options = ["--models", ",".join(names), "--users", "20", "--json", tmp_path / "found.json"]
    ended = cli("compare", parts[0], "--test", parts[1], *options)
    assert ended.status == 0, ended.err
    systems = {name: system for name, system in rating_systems("ml-100k").items() if name in names}
    report = bench.bench_ratings("ml-100k", [Fold("u1", *load_movielens_fold(data_root, "u1"))], systems)
    expected = {row["system"]: row for row in report.rows}
    for row in read_json(tmp_path / "found.json")["rows"]:
        for name in ("rmse", "mae"):
            assert row[name] == pytest.approx(expected[row["system"]][name], rel=1e-6)
    assert 0.87 < expected["AIR"]["rmse"] < 0.89
