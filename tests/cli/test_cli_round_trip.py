"""Train, ask, measure: every command on tables of every kind, and JSON with the figures that are printed."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from cli_cases import SHORT, cli, fill, ratings, read_json

import air_recsys.report.demo
from air_recsys import AIR
from air_recsys.evaluation.results.table import format_number
from air_recsys.evaluation.systems import beside_ranker as systems_of
from air_recsys.models import GraphRanker

PROGRAM = Path(sys.executable).with_name("air-recsys")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables and models, good and bad."""
    return fill(tmp_path_factory.mktemp("cli"))


def write_table(path, ids):
    frame = ratings(ids)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


@pytest.mark.parametrize("ids", ["integer", "text"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_train_writes_the_model_that_the_library_would_train(tmp_path, ids, suffix):
    table, model = write_table(tmp_path / f"table{suffix}", ids), tmp_path / "m.air"
    ended = cli("train", table, "--model", model, "--json", tmp_path / "t.json", *SHORT)
    assert ended.status == 0
    assert f"wrote {model}" in ended.out
    figures = read_json(tmp_path / "t.json")
    assert figures["epochs"] == 20  # sweeps of the posterior
    assert figures["validation_rmse"] is None
    frame = ratings(ids)
    same = AIR.for_ratings(n_sweeps=20, n_factors=2, graph_neighbors=2, random_state=0, device="cpu").fit(frame)
    loaded = AIR.load(model)
    assert loaded.predict(frame["user"], frame["item"]).tolist() == pytest.approx(
        same.predict(frame["user"], frame["item"]).tolist(), rel=1e-5
    )
    assert figures["noise"] == pytest.approx(same.history_["noise"].iloc[-1], rel=1e-5)
    assert figures["objective"] is None


def test_other_column_names_separator_preset_and_seed(tmp_path):
    frame = ratings("text").rename(columns={"user": "who", "item": "what", "rating": "stars"})
    frame.to_csv(tmp_path / "t.txt", sep="|", index=False)
    names = ["--user-column", "who", "--item-column", "what", "--rating-column", "stars", "--sep", "|"]
    asked = ["--preset", "completion", "--seed", 3, "--device", "cpu", "--set", "n_epochs=5"]
    assert cli("train", tmp_path / "t.txt", "--model", tmp_path / "m.air", *names, *asked).status == 0
    model = AIR.load(tmp_path / "m.air")
    assert (model.random_state, model.n_factors, model.n_iter_) == (3, "auto", 5)


@pytest.mark.parametrize(("ids", "user", "stranger"), [("integer", "10", "77"), ("text", "u10", "nobody")])
def test_recommend_prints_and_writes_what_the_model_answers(folder, tmp_path, ids, user, stranger):
    target = tmp_path / "r.json"
    asked = ["--user", user, "--user", stranger, "--n", 3, "--include-seen", "--json", target]
    ended = cli("recommend", folder / f"{ids}.air", *asked)
    assert ended.status == 0
    rows = read_json(target)
    kind = int if ids == "integer" else str
    expected = AIR.load(folder / f"{ids}.air").recommend([kind(user), kind(stranger)], n=3, exclude_seen=False)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert [row["score"] for row in rows] == pytest.approx(expected["score"].tolist(), rel=1e-6)
    assert [row["source"] for row in rows] == ["model"] * 3 + ["popular"] * 3
    assert all(format_number(row["score"]) in ended.out for row in rows)


def test_recommend_leaves_out_what_the_user_has_rated(folder, tmp_path):
    assert cli("recommend", folder / "text.air", "--user", "u10", "--n", 6, "--json", tmp_path / "r.json").status == 0
    assert [row["item"] for row in read_json(tmp_path / "r.json")] == ["i5"]


def test_a_list_that_is_shorter_than_asked_is_told_and_no_error(folder):
    ended = cli("recommend", folder / "text.air", "--user", "u10", "--user", "nobody", "--n", 10_000)
    assert ended.status == 0
    assert "note: fewer than 10000 items are left for 2 of 2 user(s)" in ended.err
    assert cli("recommend", folder / "text.air", "--user", "u10", "--n", 1).err == ""


def test_lists_to_be_measured_have_at_most_all_items(folder):
    asked = ["--ranking", "--k", 5000, "--set", "n_steps=2", "--set", "n_factors=2", "--device", "cpu"]
    ended = cli("evaluate", folder / "text.csv", *asked)
    assert ended.status == 0, ended.err
    assert "note: fewer than 5000 items are left (--k): lists have at most 6\n" in ended.err
    assert "Lists of 6 items for 7 users" in ended.out


def test_a_user_who_has_rated_all_gets_a_sentence(tmp_path):
    table = ratings("text")
    rest = pd.DataFrame({"user": ["u10"], "item": ["i5"], "rating": [3.0]})
    pd.concat([table, rest]).to_csv(tmp_path / "all.csv", index=False)
    assert cli("train", tmp_path / "all.csv", *SHORT, "--model", tmp_path / "m.air").status == 0
    ended = cli("recommend", tmp_path / "m.air", "--user", "u10", "--json", tmp_path / "r.json")
    told = "note: no item is left for 1 of 1 user(s), who rated all 6 (--include-seen): 'u10'\n"
    assert (ended.status, ended.out, ended.err) == (0, "", told)
    assert read_json(tmp_path / "r.json") == []
    assert cli("recommend", tmp_path / "m.air", "--user", "u10", "--include-seen").err == ""
    ended = cli("recommend", tmp_path / "m.air", "--user", "u11", "--item", "i0", "--exclude", "i0")
    told = "note: no item is left for 1 of 1 user(s) of those that --item and --exclude allow: 'u11'\n"
    assert (ended.status, ended.out, ended.err) == (0, "", told)


@pytest.mark.parametrize(("ids", "first"), [("integer", ""), ("text", "i")])
def test_titles_stand_beside_the_items(folder, tmp_path, ids, first):
    pd.DataFrame({"id": [f"{first}5", f"{first}1"], "title": ["Heat", "Fargo, 1996"]}).to_csv(
        tmp_path / "t.csv", index=False
    )
    user, titles = "10" if ids == "integer" else "u10", ["--titles", tmp_path / "t.csv"]
    asked = [folder / f"{ids}.air", "--n", 5, "--json", tmp_path / "r.json", *titles]
    for command in (("recommend", "--user", user, "--include-seen"), ("similar", "--item", f"{first}0")):
        ended = cli(command[0], *asked, *command[1:])
        assert ended.status == 0, ended.err
        named = {str(row["item"]): row["title"] for row in read_json(tmp_path / "r.json")}
        assert "Heat" in named.values()
        assert set(named.items()) <= {(f"{first}5", "Heat"), (f"{first}1", "Fargo, 1996")} | {
            (f"{first}{number}", "") for number in (0, 2, 3, 4)
        }
        assert set(named.values()) - {""} <= set(re.findall(r"Heat|Fargo, 1996", ended.out))
    ended = cli("similar", folder / f"{ids}.air", "--user", user, *titles)
    assert (ended.status, ended.err) == (
        1,
        "error: expected --titles with --item, whose items it names, found it with --user\n",
    )


@pytest.mark.parametrize(("ids", "stranger", "item"), [("integer", 77, 0), ("text", "new", "i0")])
def test_recommend_folds_new_ratings_in(folder, tmp_path, ids, stranger, item):
    new = pd.DataFrame({"user": [stranger], "item": [item], "rating": [5.0]})
    new.to_csv(tmp_path / "new.csv", index=False)
    before = (folder / f"{ids}.air").read_bytes()
    ended = cli("recommend", folder / f"{ids}.air", "--ratings", tmp_path / "new.csv", "--json", tmp_path / "r.json")
    assert ended.status == 0
    rows = read_json(tmp_path / "r.json")
    model = AIR.load(folder / f"{ids}.air").partial_fit(new)
    expected = model.recommend(stranger, n=model.interactions_.n_items)
    assert [row["item"] for row in rows] == expected["item"].tolist()
    assert item not in {row["item"] for row in rows}
    assert {row["source"] for row in rows} == {"model"}
    assert (folder / f"{ids}.air").read_bytes() == before


@pytest.mark.parametrize(("ids", "user", "item"), [("integer", "10", "0"), ("text", "u10", "i0")])
def test_similar_of_a_user_and_of_an_item(folder, tmp_path, ids, user, item):
    model, kind = AIR.load(folder / f"{ids}.air"), int if ids == "integer" else str
    expected = {"user": model.similar_users(kind(user), 2), "item": model.similar_items(kind(item), 2)}
    for side, id in (("user", user), ("item", item)):
        target = tmp_path / f"{side}.json"
        ended = cli("similar", folder / f"{ids}.air", f"--{side}", id, "--n", 2, "--json", target)
        assert ended.status == 0
        rows = read_json(target)
        assert [row[side] for row in rows] == expected[side][side].tolist()
        assert all(format_number(row["weight"]) in ended.out for row in rows)


@pytest.mark.parametrize("side", ["users", "items"])
def test_graph_describes_the_graph_and_writes_it(folder, tmp_path, side):
    graphml, target = tmp_path / "g.graphml", tmp_path / "g.json"
    ended = cli("graph", folder / "text.air", "--side", side, "--graphml", graphml, "--json", target)
    assert ended.status == 0
    figures, written = read_json(target), nx.read_graphml(graphml)
    assert (figures["nodes"], figures["edges"]) == (len(written), written.number_of_edges())
    assert f"{figures['nodes']} {side}, {figures['edges']} edges" in ended.out
    assert set(figures["communities"]) == set(written)
    assert f"{len(set(figures['communities'].values()))} communities" in ended.out


@pytest.mark.parametrize("how", [[], ["--folds", 2], ["--test-fraction", 0.3, "--seed", 1]])
def test_evaluate_prints_and_writes_the_error_of_every_model(folder, tmp_path, how):
    target = tmp_path / "e.json"
    ended = cli("evaluate", folder / "text.csv", *how, *SHORT, "--peers", "svd, knnbaseline", "--json", target)
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


def test_a_ranker_is_trained_and_makes_lists_for_known_and_new_users(folder, tmp_path):
    target, figures = tmp_path / "lists.air", tmp_path / "f.json"
    ended = cli(
        "train", folder / "text.csv", "--ranking", "--model", target, "--set", "n_factors=3", "--json", figures
    )
    assert ended.status == 0, ended.err
    assert "NDCG@20 on parts hidden at random: " in ended.out
    assert read_json(figures)["ndcg"] > 0
    model = GraphRanker.load(target)
    known, item = model.interactions_.user_ids[0], model.interactions_.item_ids[0]
    ended = cli("recommend", target, "--user", known, "--n", 3, "--json", tmp_path / "r.json")
    assert ended.status == 0, ended.err
    expected = model.recommend(known, 3)
    assert [row["item"] for row in read_json(tmp_path / "r.json")] == expected["item"].tolist()
    pd.DataFrame({"user": ["eve"], "item": [item], "rating": [5]}).to_csv(tmp_path / "new.csv", index=False)
    how = ["--ratings", tmp_path / "new.csv", "--user", "eve", "--user", known, "--n", 3]
    ended = cli("recommend", target, *how, "--json", tmp_path / "r.json")
    assert ended.status == 0, ended.err
    rows = read_json(tmp_path / "r.json")
    assert [row["user"] for row in rows] == ["eve"] * 3 + [known] * len(expected)
    new = pd.DataFrame({"user": ["eve"], "item": [item], "rating": [5.0]})
    assert [row["item"] for row in rows[:3]] == model.fold_in(new).recommend(3)["item"].tolist()
    assert [row["item"] for row in rows[3:]] == expected["item"].tolist()


def test_a_ranker_with_times_chooses_on_the_latest_part(tmp_path):
    pairs = np.argwhere(np.random.default_rng(0).random((40, 12)) < 0.6)
    times = np.random.default_rng(1).permutation(len(pairs))
    pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "when": times}).to_csv(tmp_path / "likes.csv", index=False)
    how = ["--ranking", "--model", tmp_path / "m.air", "--set", "n_factors=2", "--set", "n_steps=2"]
    ended = cli("train", tmp_path / "likes.csv", *how, "--timestamp-column", "when")
    assert ended.status == 0, ended.err
    assert "NDCG@20 on the latest fifths of all: " in ended.out
    ended = cli("train", tmp_path / "likes.csv", *how, "--timestamp-column", "when", "--set", "validation=last")
    assert "NDCG@20 on the latest fifth of each user's: " in ended.out


def test_evaluate_measures_lists(folder, tmp_path):
    target = tmp_path / "e.json"
    how = ["--ranking", "--k", 3, "--set", "n_factors=3", "--peers", "als"]
    ended = cli("evaluate", folder / "text.csv", *how, "--json", target)
    assert ended.status == 0, ended.err
    report = read_json(target)
    assert [row["system"] for row in report["rows"]] == ["GraphRanker", "most popular", "implicit ALS"]
    assert {"ndcg@3", "ndcg low", "p", "mrr@3", "coverage", "novelty"} < set(report["rows"][0])
    assert "20% of each user's held out" in report["protocol"]
    assert report["protocol"] in ended.out
    assert "by the number of training items" in ended.out


@pytest.mark.parametrize(
    ("split", "told"), [("last", "the last of each user's held out"), ("time", "the latest 20% of all held out")]
)
def test_evaluate_measures_lists_in_time(tmp_path, split, told):
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((20, 12)) < 0.5)
    rows = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "rating": 1, "when": rng.permutation(len(pairs))})
    rows.to_csv(tmp_path / "likes.csv", index=False)
    how = ["--ranking", "--k", 3, "--set", "n_factors=3", "--split", split, "--timestamp-column", "when"]
    ended = cli("evaluate", tmp_path / "likes.csv", *how)
    assert ended.status == 0, ended.err
    assert told in ended.out


def test_evaluate_measures_lists_of_users_held_out_and_of_several_last_items(tmp_path, monkeypatch):
    validations = []

    def listers(peers, seed, of_ranker, **how):
        validations.append(of_ranker["validation"])
        return systems_of(peers, seed, of_ranker, **how)

    monkeypatch.setattr("air_recsys.evaluation.systems.beside_ranker", listers)
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((20, 12)) < 0.5)
    rows = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "when": rng.permutation(len(pairs))})
    rows.to_csv(tmp_path / "likes.csv", index=False)
    target, how = tmp_path / "e.json", ["--ranking", "--k", 3, "--set", "n_factors=3", "--set", "n_steps=3"]
    for options, told, n_users in (
        (["--split", "users", "--test-fraction", 0.3], "30% of the users held out of the training, 80%", 6),
        (["--split", "last", "--last", 2, "--timestamp-column", "when"], "the last 2 of each user's held out", 20),
        (
            ["--split", "last", "--test-fraction", 0.3, "--timestamp-column", "when"],
            "the latest 30% of each user's held out",
            20,
        ),
    ):
        ended = cli("evaluate", tmp_path / "likes.csv", *how, *options, "--json", target)
        assert ended.status == 0, ended.err
        assert told in ended.out
        assert validations.pop() == options[1]  # the settings are chosen on a part of the same kind
        report = read_json(target)
        assert report["title"] == f"Lists of 3 items for {n_users} users"
        assert {"recall low", "mrr high", "p holm"} < set(report["rows"][0])
        assert "recall low" not in ended.out


def test_evaluate_has_dmf_beside_an_air_of_the_same_objective(folder, tmp_path):
    chosen = ["--set", "solver=adam", "--set", "n_epochs=5", "--set", "n_factors=2", "--device", "cpu"]
    ended = cli("evaluate", folder / "text.csv", *chosen, "--json", tmp_path / "e.json")
    assert ended.status == 0, ended.err
    rows = read_json(tmp_path / "e.json")["rows"]
    assert [row["model"] for row in rows] == ["AIR", "DMF", "BiasModel", "GlobalMean"]


def test_datasets_list(tmp_path):
    ended = cli("datasets", "list", "--json", tmp_path / "d.json")
    assert ended.status == 0
    rows = read_json(tmp_path / "d.json")
    assert all(row["name"] in ended.out and row["terms"] and isinstance(row["fetchable"], bool) for row in rows)


def test_demo_writes_model_graphs_picture_and_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(air_recsys.report.demo, "DMF_SETTINGS", air_recsys.report.demo.DMF_SETTINGS | {"n_epochs": 20})
    short = partial(AIR.for_completion, n_epochs=20, settings="fixed")
    monkeypatch.setattr(air_recsys.report.demo.AIR, "for_completion", short)
    out, target = tmp_path / "deep" / "out", tmp_path / "d.json"
    ended = cli("demo", "--out", out, "--device", "cpu", "--json", target)
    assert ended.status == 0
    expected = ["completion.png", "item_graph.graphml", "model.air", "user_graph.graphml"]
    assert sorted(path.name for path in out.iterdir()) == expected
    assert all(str(out / name) in ended.out for name in expected)
    assert AIR.load(out / "model.air").n_iter_ == 20
    assert len(nx.read_graphml(out / "user_graph.graphml")) == 150
    assert (out / "completion.png").read_bytes().startswith(b"\x89PNG")
    figures = read_json(target)
    assert [row["model"] for row in figures["models"]] == ["AIR", "DMF", "BiasModel", "Mean"]
    assert all(format_number(row["nmae"]) in ended.out for row in figures["models"])
    assert [row["graph"] for row in figures["groups"]] == ["users", "items"]
    assert {"versions", "machine"} < set(figures)


@pytest.mark.data
def test_evaluate_on_real_data(data_root, tmp_path):
    target, common = tmp_path / "r.json", ["--device", "cpu", "--data", data_root]
    ended = cli("evaluate", "--dataset", "movielens-100k", "--set", "n_sweeps=2", *common, "--json", target)
    assert ended.status == 0, ended.err
    errors = {row["model"]: row["rmse"] for row in read_json(target)["rows"]}
    assert 1.1 < errors["GlobalMean"] < 1.15  # the standard deviation of the ratings


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed beside this Python")
def test_the_installed_program(folder, tmp_path):
    good = subprocess.run(
        [PROGRAM, "similar", folder / "text.air", "--item", "i0", "--json", tmp_path / "s.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (good.returncode, good.stderr) == (0, "")
    assert read_json(tmp_path / "s.json")[0]["item"] in good.stdout
    bad = subprocess.run(
        [PROGRAM, "train", tmp_path / "none.csv", "--device", "cpu"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 1
    assert bad.stderr.splitlines() == [f"error: expected a file with ratings, found no file '{tmp_path / 'none.csv'}'"]


def test_train_takes_tables_of_features(tmp_path):
    table, model = write_table(tmp_path / "table.csv", "integer"), tmp_path / "m.air"
    frame = ratings("integer")
    items = pd.DataFrame({"item": [*frame["item"].unique(), 999], "year": range(1990, 1991 + frame["item"].nunique())})
    users = pd.DataFrame({"user": frame["user"].unique()})
    users["side"] = np.where(np.arange(len(users)) % 2, "a", "b")
    items.to_csv(tmp_path / "items.csv", index=False)
    users.to_csv(tmp_path / "users.tsv", index=False, sep="\t")
    files = ("--item-features", tmp_path / "items.csv", "--user-features", tmp_path / "users.tsv")
    ended = cli("train", table, "--model", model, *files, *SHORT)
    assert ended.status == 0
    assert f"1 features of {len(items)} items, 1 of them without a rating" in ended.out
    loaded = AIR.load(model)
    assert loaded.interactions_.n_features == (2, 1)
    assert loaded.interactions_.item_ids[-1] == 999
    assert cli("recommend", model, "--user", str(frame["user"].iloc[0]), "--n", "3").status == 0


def test_train_takes_similarities(tmp_path):
    table, model = write_table(tmp_path / "table.csv", "integer"), tmp_path / "m.air"
    items = [*ratings("integer")["item"].unique(), 999]
    pairs = pd.DataFrame({"a": items[:-1], "b": items[1:], "similarity": 0.5})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    options = ("--item-similarity", tmp_path / "pairs.csv", "--set", "item_graph_strength=0.5")
    ended = cli("train", table, "--model", model, *options, *SHORT)
    assert ended.status == 0, ended.err
    assert f"similarities of {len(items)} items, 1 of them without a rating" in ended.out
    loaded = AIR.load(model)
    assert loaded.item_graph_strength_ == 0.5
    assert loaded.interactions_.item_ids[-1] == 999
    square = pd.DataFrame(1 - np.eye(len(items)), index=items, columns=items)
    square.to_csv(tmp_path / "distances.csv")
    refused = cli("train", table, "--model", model, "--item-similarity", tmp_path / "distances.csv", *SHORT)
    assert refused.status != 0
    assert "looks like distances" in refused.err


def test_train_learns_what_times_do(tmp_path):
    table, model = tmp_path / "table.csv", tmp_path / "m.air"
    frame = ratings("integer")
    frame.assign(seconds=1_600_000_000 + 60 * np.arange(len(frame))).to_csv(table, index=False)
    ended = cli("train", table, "--model", model, "--timestamp-column", "seconds", *SHORT)
    assert ended.status == 0
    loaded = AIR.load(model)
    assert loaded.get_params()["solver__time"] == "drift"
    assert loaded.drift_ is not None
    assert loaded.interactions_.timestamps is not None
    refused = cli("train", table, "--model", model, "--timestamp-column", "seconds", "--set", "solver=adam")
    assert refused.status != 0
    assert "does not read time" in refused.err
    missing = cli("train", table, "--model", model, "--timestamp-column", "when", *SHORT)
    assert missing.status != 0
    assert "when" in missing.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("item,year\nx,1990\ny,1991\n", "ids are integers, found"),
        ("id,year\n1,1990\n", "expected the column 'item'"),
        (None, "found no file"),
    ],
)
def test_features_that_cannot_be_read_end_with_a_message(tmp_path, content, message):
    table, items = write_table(tmp_path / "table.csv", "integer"), tmp_path / "items.csv"
    if content is not None:
        items.write_text(content)
    ended = cli("train", table, "--model", tmp_path / "m.air", "--item-features", items, *SHORT)
    assert ended.status != 0
    assert message in ended.err
    assert not (tmp_path / "m.air").exists()
