"""`air-recsys train`: tables of every kind, what is known beside them, scales, and what of the way is kept."""

import io
import os
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from cli_cases import SHORT, assert_refused, cli, ratings, read_json
from page_reader import data_of

from air_recsys import AIR
from air_recsys.cli import options
from air_recsys.models import GraphRanker


def write_table(path, ids="integer"):
    frame = ratings(ids)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="," if path.suffix == ".csv" else "\t")
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "table.csv")


def trained(*arguments):
    """Train, and return what was said."""
    ended = cli("train", *arguments)
    assert ended.status == 0, ended.err
    return ended


@pytest.mark.parametrize(("ids", "suffix"), [("integer", ".csv"), ("text", ".tsv"), ("text", ".parquet")])
def test_the_model_is_the_one_that_the_library_would_train(tmp_path, ids, suffix):
    table, model = write_table(tmp_path / f"table{suffix}", ids), tmp_path / "m.air"
    assert f"wrote {model}" in trained(table, "--model", model, "--json", tmp_path / "t.json", *SHORT).out
    figures, frame = read_json(tmp_path / "t.json"), ratings(ids)
    assert figures["epochs"] == 20  # sweeps of the posterior
    assert (figures["validation_rmse"], figures["objective"]) == (None, None)
    same = AIR.for_ratings(n_sweeps=20, n_factors=2, graph_neighbors=2, random_state=0, device="cpu").fit(frame)
    found, expected = (each.predict(frame["user"], frame["item"]).tolist() for each in (AIR.load(model), same))
    assert found == pytest.approx(expected, rel=1e-5)
    assert figures["noise"] == pytest.approx(same.history_["noise"].iloc[-1], rel=1e-5)


def test_other_column_names_separator_preset_and_seed(tmp_path):
    frame = ratings("text").rename(columns={"user": "who", "item": "what", "rating": "stars"})
    frame.to_csv(tmp_path / "t.txt", sep="|", index=False)
    names = ["--user-column", "who", "--item-column", "what", "--rating-column", "stars", "--sep", "|"]
    asked = ["--preset", "completion", "--seed", 3, "--device", "cpu", "--set", "n_epochs=5"]
    trained(tmp_path / "t.txt", "--model", tmp_path / "m.air", *names, *asked)
    model = AIR.load(tmp_path / "m.air")
    assert (model.random_state, model.n_factors, model.n_iter_) == (3, "auto", 5)


def test_settings_keep_their_kind(capsys):
    texts = ["n_epochs=5", "learning_rate=1e-2", "patience=None", "clip=True", "schedule=cosine", "device=cuda:1"]
    expected = {"n_epochs": 5, "learning_rate": 0.01, "patience": None, "clip": True}
    assert options.parse_settings(texts) == expected | {"schedule": "cosine", "device": "cuda:1"}
    assert options.parse_settings(None) == {}
    assert options.parse_settings(["n_epochs=5", "n_epochs=6"]) == {"n_epochs": 6}
    assert capsys.readouterr().err == "note: n_epochs stands twice, and the last one counts\n"


@pytest.mark.usefixtures("plain_handlers")
def test_ctrl_c_is_told_with_what_was_learned_and_the_same_command_goes_on(table, tmp_path, monkeypatch):
    replace = os.replace

    def interrupted(*names):
        monkeypatch.undo()
        replace(*names)
        signal.raise_signal(signal.SIGINT)

    model, common = tmp_path / "model.air", ["--set", "solver=langevin", *SHORT]
    command = ["train", table, "--model", model, "--checkpoint", tmp_path / "run.ckpt", "--every", 5, *common]
    monkeypatch.setattr(os, "replace", interrupted)  # the first file that is whole is a checkpoint
    ended = cli(*command)
    assert (ended.status, AIR.load(model).stopped_by_) == (130, "interrupt")
    assert "training was interrupted at sweep" in ended.out
    trained(*command[1:])
    trained(table, "--model", tmp_path / "whole.air", *common)
    resumed, expected = AIR.load(model), AIR.load(tmp_path / "whole.air")
    assert (resumed.stopped_by_, resumed.n_iter_) == ("n_sweeps", 20)
    np.testing.assert_array_equal(resumed.user_factors_, expected.user_factors_)


def test_a_checkpoint_of_other_settings_is_an_error_with_a_way_out(table, tmp_path):
    common = [table, "--model", tmp_path / "model.air", "--checkpoint", tmp_path / "run.ckpt", "--device", "cpu"]
    trained(*common, "--set", "n_sweeps=5")
    ended = cli("train", *common, "--set", "n_sweeps=6")
    assert_refused(ended, "written with solver__n_sweeps=5, found solver__n_sweeps=6; give another path")


def test_tables_of_features(table, tmp_path):
    model, frame = tmp_path / "m.air", ratings("integer")
    items = pd.DataFrame({"item": [*frame["item"].unique(), 999], "year": range(1990, 1991 + frame["item"].nunique())})
    users = pd.DataFrame({"user": frame["user"].unique()})
    users["side"] = np.where(np.arange(len(users)) % 2, "a", "b")
    items.rename(columns={"item": "code"}).to_csv(tmp_path / "items.csv", index=False)
    users.to_csv(tmp_path / "users.tsv", index=False, sep="\t")
    files = (
        "--item-features",
        tmp_path / "items.csv",
        "--user-features",
        tmp_path / "users.tsv",
        "--item-id-column",
        "code",
    )
    told = trained(table, "--model", model, *files, *SHORT).out
    assert f"1 features of {len(items)} items, 1 of them without a rating" in told
    loaded = AIR.load(model)
    assert loaded.interactions_.n_features == (2, 1)
    assert loaded.interactions_.item_ids[-1] == 999
    assert cli("recommend", model, "--user", str(frame["user"].iloc[0]), "--n", "3").status == 0
    frame[["user", "item"]].to_csv(tmp_path / "likes.csv", index=False)
    how = ("--ranking", "--set", "settings={}", "--set", "n_factors=3", "--set", "n_steps=3")
    told = trained(tmp_path / "likes.csv", "--model", model, *files, *how).out
    assert f"1 features of {len(items)} items, 1 of them without a rating" in told
    assert "999" in cli("recommend", model, "--user", str(frame["user"].iloc[0]), "--item", "999").out


def test_similarities(table, tmp_path):
    model, items = tmp_path / "m.air", [*ratings("integer")["item"].unique(), 999]
    pairs = pd.DataFrame({"a": items[:-1], "b": items[1:], "similarity": 0.5})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    given = ("--item-similarity", tmp_path / "pairs.csv", "--set", "item_graph_strength=0.5")
    told = trained(table, "--model", model, *given, *SHORT).out
    assert f"similarities of {len(items)} items, 1 of them without a rating" in told
    loaded = AIR.load(model)
    assert loaded.item_graph_strength_ == 0.5
    assert loaded.interactions_.item_ids[-1] == 999


def test_times(tmp_path):
    table, model, frame = tmp_path / "table.csv", tmp_path / "m.air", ratings("integer")
    frame.assign(seconds=1_600_000_000 + 60 * np.arange(len(frame))).to_csv(table, index=False)
    trained(table, "--model", model, "--timestamp-column", "seconds", *SHORT)
    loaded = AIR.load(model)
    assert loaded.get_params()["solver__time"] == "drift"
    assert loaded.drift_ is not None
    assert loaded.interactions_.timestamps is not None
    adam = cli("train", table, "--model", model, "--timestamp-column", "seconds", "--set", "solver=adam")
    assert_refused(adam, "does not read time")


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--item-features", "item,year\nx,1990\ny,1991\n", "ids are integers, found"),
        ("--item-features", "code,year\n1,1990\n", "expected the column 'item'"),
        ("--item-features", None, "found no file"),
        ("--item-similarity", pd.DataFrame(1 - np.eye(7)).to_csv(), "looks like distances"),
        ("--timestamp-column", "", "side.csv"),
    ],
)
def test_what_cannot_be_read_beside_a_table(table, tmp_path, option, content, message):
    if content is not None:
        (tmp_path / "side.csv").write_text(content)
    ended = cli("train", table, "--model", tmp_path / "m.air", option, tmp_path / "side.csv", *SHORT)
    assert_refused(ended, message)
    assert not (tmp_path / "m.air").exists()


@pytest.fixture
def scale(tmp_path):
    """A scale of -10..10 with one repeated pair."""
    rows = [("a", "x", -9.5), ("a", "y", 4), ("b", "x", -8), ("b", "y", 5), ("b", "z", 1), ("c", "z", 2)]
    rows += [("c", "x", -9), ("c", "x", -7), ("d", "y", 3), ("d", "z", 0)]
    pd.DataFrame(rows, columns=["user", "item", "rating"]).to_csv(tmp_path / "scale.csv", index=False)
    return tmp_path / "scale.csv"


def test_repeated_pairs_are_refused_until_it_is_said_what_they_mean(scale):
    for command in ("train", "evaluate", "tune"):
        assert_refused(cli(command, scale, "--negative"), "--duplicates")
    assert_refused(cli("train", scale, "--negative", "--duplicates", "x"), "mean")


def test_a_scale_with_negative_ratings_is_found_and_said(scale, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        ended = trained(scale, "--model", tmp_path / "found.air", "--duplicates", "mean", *SHORT)
    told = "ratings below 0 are taken as part of the scale: state rating_scale=(-9.5, 5) (in the shell --rating-scale="
    assert ended.err.count(told) == 1
    assert AIR.load(tmp_path / "found.air").rating_scale_ == (-9.5, 5)
    (tmp_path / "code.csv").write_text("user,item,rating\na,x,-1\na,y,7\nb,x,10\nb,y,-1\n", encoding="utf-8")
    ended = cli("train", tmp_path / "code.csv", "--model", tmp_path / "code.air", *SHORT)
    assert_refused(ended, "found 2 negative, the first in row 0: -1; if these are no code for missing")


def test_a_scale_with_negative_ratings_is_trained_asked_and_measured(scale, tmp_path):
    model, how = tmp_path / "model.air", ["--negative", "--duplicates", "mean"]
    trained(scale, "--model", model, *how, *SHORT)
    data = AIR.load(model).interactions_
    assert (data.n_ratings, data.ratings.min()) == (9, -9.5)
    assert data.to_frame().set_index(["user", "item"]).loc[("c", "x"), "rating"] == -8
    (tmp_path / "new.csv").write_text("user,item,rating\ne,x,-9\n")
    lists = cli("recommend", model, "--ratings", tmp_path / "new.csv", "--n", 1)
    assert lists.status == 0
    assert lists.out.splitlines()[1].split()[0] == "e"
    measured = cli("evaluate", scale, *how, *SHORT)
    assert (measured.status, "rmse" in measured.out) == (0, True)


def test_a_ranker_with_times_chooses_on_the_latest_part(tmp_path):
    pairs = np.argwhere(np.random.default_rng(0).random((40, 12)) < 0.6)
    times = np.random.default_rng(1).permutation(len(pairs))
    pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "when": times}).to_csv(tmp_path / "likes.csv", index=False)
    how = [tmp_path / "likes.csv", "--ranking", "--model", tmp_path / "m.air", "--set", "n_factors=2"]
    how += ["--set", "n_steps=2", "--timestamp-column", "when"]
    assert "NDCG@20 on the latest fifths of all: " in trained(*how).out
    assert "NDCG@20 on the latest fifth of each user's: " in trained(*how, "--set", "validation=last").out


def test_a_ranker_of_events_learns_what_each_kind_counts(tmp_path):
    pairs = np.argwhere(np.random.default_rng(0).random((40, 12)) < 0.6)
    kinds = np.where(np.arange(len(pairs)) % 2, "buy", "view")
    table = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "what": kinds})
    for file, write in (("events.csv", table.to_csv), ("events.parquet", table.to_parquet)):
        write(tmp_path / file, index=False)
        how = [
            tmp_path / file,
            "--ranking",
            "--model",
            tmp_path / "m.air",
            "--set",
            "n_factors=2",
            "--set",
            "n_steps=2",
        ]
        assert "; view counts " in trained(*how, "--kind-column", "what", "--target", "buy").out
        loaded = GraphRanker.load(tmp_path / "m.air").interactions_
        assert (loaded.n_ratings, loaded.kinds.beside["view"].n_ratings) == (
            (kinds == "buy").sum(),
            (kinds == "view").sum(),
        )
    refused = cli("train", tmp_path / "events.csv", "--target", "buy", "--model", tmp_path / "m.air")
    assert "--target" in refused.err


def test_a_ranker_of_ratings_is_told_what_a_like_is(tmp_path):
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((40, 12)) < 0.6)
    table = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "rating": rng.integers(1, 6, len(pairs))})
    table.to_csv(tmp_path / "ratings.csv", index=False)
    how = [tmp_path / "ratings.csv", "--ranking", "--liked", 4, "--model", tmp_path / "m.air"]
    told = trained(*how, "--set", "n_factors=2", "--set", "n_steps=2").out
    assert f"like: rating >= 4 ({100 * (table['rating'] >= 4).mean():.0f} % of the ratings); " in told
    assert "--liked" in cli("train", *how[:1], *how[2:]).err
    table.head(3).to_csv(tmp_path / "new.csv", index=False)
    assert cli("recommend", tmp_path / "m.air", "--ratings", tmp_path / "new.csv").status == 0


def test_snapshots_are_in_the_file_on_the_page_and_in_the_report(table, tmp_path):
    model, page, report = tmp_path / "model.air", tmp_path / "page.html", tmp_path / "report.html"
    assert "kept the graphs of the sweeps 0, 1, 3, 7" in trained(table, "--model", model, "--snapshots", 4, *SHORT).out
    assert sorted(AIR.load(model).snapshots_) == [0, 1, 3, 7]
    assert cli("graph", model, "--html", page).status == 0
    for graph in data_of(page)["graphs"]:
        assert [step["epoch"] for step in graph["steps"]] == [0, 1, 3, 7, None]
    assert cli("report", model, "--out", report).status == 0
    text = report.read_text(encoding="utf-8")
    assert "The graphs through training" in text
    assert "no snapshots" not in text
    trained(table, "--model", tmp_path / "own.air", "--set", "snapshot_epochs=[0,7]", *SHORT)
    assert sorted(AIR.load(tmp_path / "own.air").snapshots_) == [0, 7]


FORMS = {
    "a pipe": ("-", "utf-8", ["-"]),
    "Latin-1": ("t.csv", "latin-1", ["--encoding", "latin-1"]),
    "quotes that are none": ("t.csv", "utf-8", ["--no-quote"]),
    "another suffix": ("t.inter", "utf-16", []),
}


@pytest.mark.parametrize("form", FORMS)
def test_files_that_people_have(form, tmp_path, monkeypatch):
    name, encoding, options_of = FORMS[form]
    frame = ratings("text")
    first = frame["user"].iloc[0]
    frame["user"] = frame["user"].replace(first, '"Käse' if form == "quotes that are none" else "Käse")
    content = "\n".join([",".join(frame.columns), *frame.astype(str).agg(",".join, axis=1)]).encode(encoding)
    if name == "-":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    else:
        (tmp_path / name).write_bytes(content)
        options_of = [tmp_path / name, *options_of]
    assert "warning" not in trained(*options_of, "--model", tmp_path / "m.air", *SHORT).err
    assert set(AIR.load(tmp_path / "m.air").interactions_.user_ids) == set(frame["user"])


def test_play_counts_are_named(tmp_path):
    frame = ratings("integer")
    frame["rating"] = 1 + (np.arange(len(frame)) % 3 == 0) * 10 * np.arange(len(frame))
    frame.to_csv(tmp_path / "plays.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        told = trained(tmp_path / "plays.csv", "--model", tmp_path / "m.air", *SHORT).err
    assert "counts as of plays are likes, AIR.for_likes (in the shell --ranking)" in told
