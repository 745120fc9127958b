"""The commands that measure accuracy: what they refuse before any work, and what they write."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from workshop_cases import invoked

from air_recsys.data.sets.monti import MontiGraphs
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.folds import holdout_folds
from air_recsys.evaluation.results.table import ResultTable
from air_recsys.exceptions import ParameterError
from benchmarks.accuracy.ratings_data import RATING_SETS
from benchmarks.commands import accuracy


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Invoke the commands with a folder of data that is not looked at."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path))
    return partial(invoked, {"ratings": accuracy.ratings, "affinities": accuracy.affinities})


@pytest.fixture
def movielens(monkeypatch):
    """Planted data in place of MovieLens, and of what is known of its users and films."""
    data = make_planted_ratings(30, 20, 300, 2, 2).interactions
    users = pd.DataFrame({"age": np.arange(30)}, index=data.user_ids)
    items = pd.DataFrame({"title": ["x"] * 20, "year": np.arange(20)}, index=data.item_ids)
    for name, made in (("load_movielens", data), ("load_movielens_users", users), ("load_movielens_items", items)):
        monkeypatch.setattr(f"benchmarks.accuracy.ratings_data.{name}", lambda root, variant, made=made: made)
    return data


@pytest.fixture
def given(monkeypatch):
    """Planted data in place of all sets; what the measurement is called with."""
    calls = []
    folds = holdout_folds(make_planted_ratings(20, 15, 150, 2, 2).interactions, 0.2, 0)
    for name, entry in RATING_SETS.items():
        monkeypatch.setitem(RATING_SETS, name, entry._replace(load=lambda root: folds))

    def bench(name, parts, systems, **options):
        calls.append((name, parts, systems, options))
        return ResultTable(f"Error on {name}", "protocol", [{"system": "AIR", "rmse": 0.9}], ["AIR: settings"])

    monkeypatch.setattr("benchmarks.accuracy.ratings.bench_ratings", bench)
    return calls, folds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--system", "SVD"), "--system must be one of 'AIR'"),
        (("--fold", "u9"), "--fold must be one of 'hold-out', found 'u9'"),
        (("--ablation",), "--ablation compares settings.*expected --validation"),
        (("--air", "width=3"), "--set expects NAME=VALUE with a parameter of AIR"),
        (
            ("--system", "AIR", "--system", "Biases", "--air", "n_epochs=3"),
            "none of the systems AIR, Biases reads n_epochs",
        ),
        (("--json", "none/x.json"), "expected an existing folder for x.json"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(run, given, arguments, message):
    with pytest.raises(ParameterError, match=message):
        run("ratings", *arguments)
    assert given[0] == []


def test_every_set_is_measured_and_tells_its_command(run, given):
    result = run("ratings", "--set", "douban", "--set", "ml-1m", "--system", "Surprise SVD", "--json", "x.json")
    assert result.exit_code == 0
    (first, parts, systems, _), (second, *_) = given[0]
    assert (first, second) == ("douban", "ml-1m")
    assert parts == given[1]
    assert list(systems) == ["Surprise SVD"]
    written = json.loads(Path("x.json").read_text(encoding="utf-8"))
    assert [report["title"] for report in written["reports"]] == ["Error on douban", "Error on ml-1m"]
    command = "`python -m benchmarks ratings --set douban --system 'Surprise SVD'`"
    assert written["reports"][0]["notes"] == [command, "AIR: settings"]
    assert {"versions", "machine"} <= set(written)
    assert command in result.stdout


def test_validation_parts_and_settings_reach_the_measurement(run, given):
    run("ratings", "--set", "ml-1m", "--validation", "--air", "n_factors=3", "--seed", "2", "--threads", "2")
    ((_, parts, systems, options),) = given[0]
    (fold,) = given[1]
    assert parts[0].train.n_ratings + parts[0].test.n_ratings == fold.train.n_ratings
    assert systems["AIR"].settings == "AIR.for_ratings(n_factors=3)"
    assert options == {"validation": True, "origin": None, "timed": False, "seed": 2, "threads": 2}


def test_ablations_take_the_place_of_the_systems(run, given):
    result = run("ratings", "--set", "douban", "--validation", "--ablation", "--air", "n_sweeps=5")
    ((_, _, systems, _),) = given[0]
    assert {"AIR", "no pattern", "adam"} <= set(systems)
    assert systems["no pattern"].settings == "AIR.for_ratings(pattern_features=0, n_sweeps=5)"
    assert systems["adam"].settings == "AIR.for_ratings(solver='adam')"  # knows no sweeps
    assert "`python -m benchmarks ratings --set douban --air n_sweeps=5 --validation --ablation`" in result.stdout


def test_few_ratings_and_hidden_users_and_items_are_folds(run, given, movielens):
    result = run("ratings", "--set", "ml-100k", "--keep", "0.2", "--cold", "item", "--cold", "user", "--features")
    ((_, parts, systems, options),) = given[0]
    assert [part.name for part in parts] == ["20% kept", "cold items", "cold users"]
    few, items, users = parts
    assert few.train.n_ratings == movielens.n_ratings // 5
    assert few.train.n_ratings + few.test.n_ratings == movielens.n_ratings
    hidden = set(items.test.item_ids[items.test.item_index])
    assert len(hidden) == 2
    assert not hidden & set(items.train.item_ids)
    assert len(np.unique(users.test.user_index)) == 3
    assert "year" in options["origin"]
    assert (
        "`python -m benchmarks ratings --set ml-100k --cold item --cold user --keep 0.2 --features`" in result.stdout
    )
    told = systems["AIR"].train(items.train)
    assert told.interactions_.n_features == (1, 1)
    assert hidden <= set(told.interactions_.item_ids)
    assert systems["AIR without features"].train(items.train).interactions_.n_features == (0, 0)


def test_validation_parts_of_regimes_are_within_what_they_show(run, given, movielens):
    run("ratings", "--set", "ml-1m", "--keep", "0.5", "--cold", "item", "--validation")
    ((_, parts, _, _),) = given[0]
    assert parts[0].train.n_ratings + parts[0].test.n_ratings == movielens.n_ratings // 2
    assert parts[1].train.n_ratings + parts[1].test.n_ratings < movielens.n_ratings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "douban", "--features"), "a set that tells of users and items, ml-100k or ml-1m, found 'douban'"),
        (("--set", "ml-100k", "--keep", "1.5"), "--keep must"),
        (("--set", "ml-100k", "--keep", "0.5", "--fold", "u1"), "expected them without --fold"),
        (("--set", "ml-100k", "--features", "--ablation", "--validation"), "expected it without --features"),
        (("--set", "ml-100k", "--times", "--ablation", "--validation"), "without --features, --graphs and --times"),
        (("--set", "ml-100k", "--graphs"), "a set that comes with graphs, flixster or douban, found 'ml-100k'"),
    ],
)
def test_regimes_that_there_are_not_are_refused(run, given, movielens, arguments, message):
    with pytest.raises(ParameterError, match=message):
        run("ratings", *arguments)
    assert given[0] == []


def test_graphs_of_a_set_are_shown_to_those_that_read_them(run, given, monkeypatch):
    graphs = MontiGraphs(sp.csr_array(np.kron(np.eye(10), [[0.0, 1.0], [1.0, 0.0]])), None)
    monkeypatch.setattr("benchmarks.accuracy.ratings_data.load_monti_graphs", lambda root, name: graphs)
    result = run("ratings", "--set", "douban", "--graphs", "--air", "user_graph_strength=0.5")
    ((_, (fold,), systems, options),) = given[0]
    assert list(systems) == ["AIR", "AIR langevin", "AIR without graphs", "AIR langevin without graphs"]
    assert options["origin"].endswith("beside the ratings the graphs of Monti et al.")
    assert systems["AIR"].train(fold.train).user_graph_strength_ == 0.5
    assert systems["AIR without graphs"].train(fold.train).user_graph_strength_ == 0
    assert "`python -m benchmarks ratings --set douban --air user_graph_strength=0.5 --graphs`" in result.stdout


def test_affinities_are_measured_by_what_is_hidden(run, monkeypatch):
    calls = []

    def bench(data, setting, names, **options):
        calls.append((data, setting, names, options))
        return ResultTable("Affinities", "protocol", [{"system": "AIR", "mse": 0.2}], [])

    monkeypatch.setattr("air_recsys.datasets.load_davis", lambda root: "davis")
    monkeypatch.setattr("benchmarks.accuracy.affinities.bench_affinities", bench)
    result = run("affinities", "--setting", "pairs", "--setting", "both", "--system", "AIR", "--validation")
    assert [call[:3] for call in calls] == [("davis", "pairs", ["AIR"]), ("davis", "both", ["AIR"])]
    assert calls[0][3] == {"validation": True, "seed": 0, "threads": 1}
    assert "`python -m benchmarks affinities --setting both --system AIR --validation`" in result.stdout
