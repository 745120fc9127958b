"""`air-recsys evaluate`, `compare`, `tune` and `demo` measure as the library does, and write what they print."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import SHORT, cli, ratings, read_json

from air_recsys import AIR, Interactions
from air_recsys.evaluation import comparing
from air_recsys.evaluation.experiment import here
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results.table import format_number
from air_recsys.evaluation.systems import beside_ranker as systems_of
from air_recsys.evaluation.tuning import tune
from benchmarks.accuracy import ratings as bench
from benchmarks.accuracy.ratings import rating_systems


@pytest.mark.parametrize("how", [["--folds", 2], ["--test-fraction", 0.3, "--seed", 1]])
def test_the_error_of_every_model_is_printed_and_written(shelf, tmp_path, how):
    target = tmp_path / "e.json"
    ended = cli("evaluate", shelf / "text.csv", *how, *SHORT, "--peers", "svd, knnbaseline", "--json", target)
    assert ended.status == 0
    report = read_json(target)
    names = ["AIR", "BiasModel", "GlobalMean", "Surprise SVD", "Surprise KNNBaseline"]
    assert [row["model"] for row in report["rows"]] == names
    assert len(report["single_runs"]) == len(names) * (2 if "--folds" in how else 1)
    for row in report["rows"]:
        assert row["model"] in ended.out
        assert all(format_number(row[name]) in ended.out for name in ("rmse", "mae", "nmae"))
    assert "n_sweeps=20" in report["protocol"]
    assert report["protocol"] in ended.out
    assert report["versions"]["air-recsys"]
    assert report["machine"]["threads"] >= 1


def test_dmf_stands_beside_an_air_of_the_same_objective(shelf, tmp_path):
    chosen = ["--set", "solver=adam", "--set", "n_epochs=5", "--set", "n_factors=2", "--device", "cpu"]
    ended = cli("evaluate", shelf / "text.csv", *chosen, "--json", tmp_path / "e.json")
    assert ended.status == 0, ended.err
    rows = read_json(tmp_path / "e.json")["rows"]
    assert [row["model"] for row in rows] == ["AIR", "DMF", "BiasModel", "GlobalMean"]


def test_lists_are_measured_beside_those_of_peers(shelf, tmp_path):
    how = ["--ranking", "--k", 3, "--set", "n_factors=3", "--peers", "als", "--json", tmp_path / "e.json"]
    ended = cli("evaluate", shelf / "text.csv", *how)
    assert ended.status == 0, ended.err
    report = read_json(tmp_path / "e.json")
    assert [row["system"] for row in report["rows"]] == ["GraphRanker", "most popular", "implicit ALS"]
    assert {"ndcg@3", "ndcg low", "p", "mrr@3", "coverage", "novelty"} < set(report["rows"][0])
    assert "20% of each user's held out" in report["protocol"]
    assert report["protocol"] in ended.out
    assert "by the number of training items" in ended.out


def test_lists_to_be_measured_have_at_most_all_items(shelf):
    asked = ["--ranking", "--k", 5000, "--set", "n_steps=2", "--set", "n_factors=2", "--device", "cpu"]
    ended = cli("evaluate", shelf / "text.csv", *asked)
    assert ended.status == 0, ended.err
    assert "note: fewer than 5000 items are left (--k): lists have at most 6\n" in ended.err
    assert "Lists of 6 items for 7 users" in ended.out


@pytest.mark.parametrize(
    ("split", "options", "told", "n_users"),
    [
        ("users", ["--test-fraction", 0.3], "30% of the users held out of the training, 80%", 6),
        ("last", [], "the last of each user's held out", 20),
        ("last", ["--last", 2], "the last 2 of each user's held out", 20),
        ("last", ["--test-fraction", 0.3], "the latest 30% of each user's held out", 20),
        ("time", [], "the latest 20% of all held out", None),
    ],
)
def test_lists_are_measured_of_the_parts_that_are_asked_for(tmp_path, monkeypatch, split, options, told, n_users):
    validations = []

    def listers(peers, seed, of_ranker, **how):
        validations.append(of_ranker["validation"])
        return systems_of(peers, seed, of_ranker, **how)

    monkeypatch.setattr("air_recsys.evaluation.systems.beside_ranker", listers)
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((20, 12)) < 0.5)
    rows = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "when": rng.permutation(len(pairs))})
    rows.drop(columns="when" if split == "users" else []).to_csv(tmp_path / "likes.csv", index=False)
    how = ["--ranking", "--k", 3, "--set", "n_factors=3", "--set", "n_steps=3", "--split", split, *options]
    how += [] if split == "users" else ["--timestamp-column", "when"]
    ended = cli("evaluate", tmp_path / "likes.csv", *how, "--json", tmp_path / "e.json")
    assert ended.status == 0, ended.err
    assert told in ended.out
    assert validations == [split]  # the settings are chosen on a part of the same kind
    report = read_json(tmp_path / "e.json")
    assert n_users is None or report["title"] == f"Lists of 3 items for {n_users} users"
    assert {"recall low", "mrr high", "p holm"} < set(report["rows"][0])
    assert "recall low" not in ended.out


@pytest.mark.data
def test_real_data(data_root, tmp_path):
    target, common = tmp_path / "r.json", ["--device", "cpu", "--data", data_root]
    ended = cli("evaluate", "--dataset", "movielens-100k", "--set", "n_sweeps=2", *common, "--json", target)
    assert ended.status == 0, ended.err
    errors = {row["model"]: row["rmse"] for row in read_json(target)["rows"]}
    assert 1.1 < errors["GlobalMean"] < 1.15  # the standard deviation of the ratings


def test_datasets_list(tmp_path):
    ended = cli("datasets", "list", "--json", tmp_path / "d.json")
    assert ended.status == 0
    rows = read_json(tmp_path / "d.json")
    assert all(row["name"] in ended.out and row["terms"] and isinstance(row["fetchable"], bool) for row in rows)


def test_the_demo_predicts_explains_and_writes_what_it_says(tmp_path):
    out, target = tmp_path / "deep" / "out", tmp_path / "d.json"
    ended = cli("demo", "--out", out, "--device", "cpu", "--seed", 1, "--missing", 0.6, "--json", target)
    assert ended.status == 0
    expected = ["completion.png", "films.html", "model.air", "predictions.png", "ratings.csv"]
    assert sorted(path.name for path in out.iterdir()) == expected
    assert all(str(out / name) in ended.out for name in expected)
    assert AIR.load(out / "model.air").interactions_.density == pytest.approx(0.4, abs=0.02)
    assert (out / "completion.png").read_bytes().startswith(b"\x89PNG")
    figures = read_json(target)
    errors = {row["model"]: row["RMSE"] for row in figures["models"]}
    assert errors["AIR"] < errors["BiasModel"] < errors["Mean"]
    assert all(format_number(error) in ended.out for error in errors.values())
    assert min(row["NMI"] for row in figures["groups"]) > 0.9
    assert "60% of the ratings hidden, seed 1" in ended.out
    held = float(re.search(r"intervals of AIR hold ([0-9.]+)%", ended.out)[1])
    assert 87 < held < 95
    assert "is expected to rate" in ended.out
    for genre in ("Crime", "War", "Animation", "Space", "Romance"):
        assert re.search(rf"^ +20 +{genre} ", ended.out, re.MULTILINE)
    assert {"versions", "machine"} < set(figures)


def test_the_next_commands_of_the_demo_run_on_the_ratings_that_it_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = cli("demo", "--out", ".", "--device", "cpu")
    commands = re.findall(r"^  air-recsys (.+)$", ended.out, re.MULTILINE)
    assert len(commands) == 3
    for command in commands:
        done = cli(*[word.replace("NAME", "Ann A.") for word in command.split()])
        assert done.status == 0


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
        ("ratings.csv", ["--folds", "2", "--relevant", "2"], "relevant for lists are test ratings of at least 2\n"),
        ("ratings.csv", ["--folds", "2"], "2 random folds"),
        ("ratings.csv", ["--split", "time", "--timestamp-column", "day"], "the latest 10%"),
        ("ratings.csv", ["--test-fraction", "0.4"], "40% held out at random"),
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
        (["--folds", "3", "--split", "time"], "--folds does not read --split"),
        (["--ranking", "--relevant", "4"], "--ranking does not read --relevant"),
        (["--others", "lists.csv"], "--others expects NAME=FILE, each name once, found 'lists.csv'"),
        (["--others", "mine=none.csv"], "expected a file with lists, found no file 'none.csv'"),
        (["--others", "mine=likes.csv", "--folds", "2"], "a single training part for lists made elsewhere, found 2"),
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


@pytest.mark.usefixtures("at_once")
def test_lists_and_ratings_made_elsewhere_and_groups_of_users_are_compared(files, monkeypatch):
    monkeypatch.chdir(files)
    test = pd.read_csv("test.csv")
    lists = pd.DataFrame({"userId": np.repeat(test["user"].unique(), 6), "itemId": [f"i{n}" for n in range(6)] * 8})
    lists.assign(rank=lists.index % 6 + 1).to_csv("lists.csv", index=False)
    test.to_csv("exact.csv", index=False)
    pd.DataFrame({"user": test["user"].unique(), "side": ["a", "b"] * 4}).to_csv("users.csv", index=False)
    others = ["--others", "mine=lists.csv", "--others", "exact=exact.csv", "--json", "found.json"]
    parts = ["train.csv", "--test", "test.csv", "--models", "Biases", "--groups", "users.csv", "--k", 2]
    ended = cli("compare", *parts, *others, "--out", "page.html")
    assert ended.status == 0, ended.err
    found = read_json(files / "found.json")
    assert [row.get("rmse") == 0 for row in found["rows"]] == [False, False, True]
    assert {(row["attribute"], row["group"]) for row in found["groups"]} == {("side", "a"), ("side", "b")}
    assert found["verdict"] in ended.out
    page = Path("page.html").read_text()
    assert found["verdict"] in page
    assert "by groups of users" in page
    chosen = ["--ranking", "--k", 2, "--set", "n_steps=2", "--set", "n_factors=2", "--device", "cpu"]
    ranked = cli("evaluate", "likes.csv", *chosen, "--others", "mine=lists.csv")
    assert ranked.status == 0, ranked.err
    assert "mine" in ranked.out
    rated = cli("evaluate", "train.csv", *SHORT, "--others", "mine=lists.csv")
    assert rated.err == "error: mine: expected ratings, with a column rating, found lists made elsewhere, by rank\n"


@pytest.mark.usefixtures("at_once")
def test_figures_are_those_of_the_benchmark(files):
    names = ["AIR", "Biases", "Surprise BaselineOnly"]
    options = ["--models", ",".join(names), "--k", "2", "--json", files / "found.json"]
    ended = cli("compare", files / "train.csv", "--test", files / "test.csv", *options)
    assert ended.status == 0, ended.err
    systems = {name: system for name, system in rating_systems("ml-100k").items() if name in names}
    parts = [Interactions.from_frame(pd.read_csv(files / f"{part}.csv")) for part in ("train", "test")]
    expected = {row["system"]: row for row in bench.bench_ratings("ml-100k", [Fold("all", *parts)], systems).rows}
    for row in read_json(files / "found.json")["rows"]:
        for name in ("rmse", "mae"):
            assert row[name] == pytest.approx(expected[row["system"]][name], rel=1e-6)


FEW = [*SHORT, "--trials", 3]
FIXED = {"n_sweeps": [20], "n_factors": [2], "graph_neighbors": [2]}


def test_tune_prints_and_writes_what_the_library_finds(shelf, tmp_path):
    target, model = tmp_path / "t.json", tmp_path / "best.air"
    ended = cli("tune", shelf / "text.csv", *FEW, "--metric", "mae", "--seed", 4, "--json", target, "--save", model)
    assert ended.status == 0, ended.err
    expected = tune(ratings("text"), space=FIXED, n_trials=3, metric="mae", random_state=4, device="cpu")
    figures = read_json(target)
    assert figures["best_params"] == expected.best_params
    assert figures["best_value"] == pytest.approx(expected.best_value)
    assert (figures["metric"], figures["preset"], len(figures["trials"])) == ("mae", "ratings", 3)
    assert figures["trials"][0]["value"] == figures["best_value"]
    assert figures["protocol"] == expected.protocol
    assert figures["versions"]["air-recsys"]
    assert figures["protocol"] in ended.out
    assert all(format_number(trial["value"]) in ended.out for trial in figures["trials"])
    assert all(f"--set {name}={value}" in ended.out for name, value in expected.best_params.items())
    assert "this is a validation value" in ended.out
    assert f"wrote {model}, fitted on all" in ended.out
    frame = ratings("text")
    saved, again = AIR.load(model), expected.model().fit(frame)
    assert saved.interactions_.n_ratings == len(frame)
    assert saved.predict(frame["user"], frame["item"]).tolist() == pytest.approx(
        again.predict(frame["user"], frame["item"]).tolist(), rel=1e-5
    )


def test_the_settings_that_are_printed_are_options_of_train(shelf, tmp_path):
    ended = cli("tune", shelf / "text.csv", *FEW, "--json", tmp_path / "t.json")
    words = [word for line in ended.out.splitlines() if line.startswith("  --set") for word in line.split()]
    assert cli("train", shelf / "text.csv", "--model", tmp_path / "m.air", "--device", "cpu", *words).status == 0
    model = AIR.load(tmp_path / "m.air")
    best = read_json(tmp_path / "t.json")["best_params"]
    learned = model.get_params(deep=False) | model.solver.get_params()
    assert {name: learned[name] for name in best} == best


def test_a_study_goes_on_and_another_search_is_refused(shelf, tmp_path):
    study, target = tmp_path / "s.db", tmp_path / "t.json"
    begun = ["tune", shelf / "text.csv", *SHORT, "--study", study, "--json", target]
    assert cli(*begun, "--trials", 1).status == 0
    first = read_json(target)
    assert cli(*begun, "--trials", 3).status == 0
    second = read_json(target)
    assert (len(first["trials"]), len(second["trials"])) == (1, 3)
    assert first["trials"][0] in second["trials"]
    ended = cli(*begun, "--trials", 3, "--metric", "mae")
    assert ended.status == 1
    assert ended.err.splitlines()[-1].startswith("error: the study 'air_recsys' was made with metric=rmse, found mae")


def test_ranges_and_choices(shelf, tmp_path):
    domains = ["--space", "weight_decay=2:5", "--space", "schedule=linear,constant", "--space", "n_epochs=10"]
    domains += ["--space", "solver=adam", "--device", "cpu"]
    ended = cli("tune", shelf / "integer.csv", *domains, "--trials", 6, "--json", tmp_path / "t.json")
    assert ended.status == 0, ended.err
    trials = read_json(tmp_path / "t.json")["trials"]
    assert all(2 <= trial["weight_decay"] <= 5 for trial in trials[1:])
    assert {trial["schedule"] for trial in trials} <= {"linear", "constant"}
