"""The commands that time the library: what they refuse before any work, and what they write."""

import json
from functools import partial

import pytest
from workshop_cases import invoked

from air_recsys.evaluation.results.table import ResultTable
from air_recsys.exceptions import ParameterError
from benchmarks.commands import speed as module
from benchmarks.speed import SPLIT

ENDS = ResultTable("Time", "protocol", [{"model": "AIR", "seconds": 2.0, "rmse": 0.9}])
CURVES = ResultTable("Along", "protocol", [{"model": "AIR", "seconds": 1.0, "rmse": 1.0}])
GROWTH = ResultTable(
    "Growth", "protocol", [{"sweep": "n_users", "n_users": n, "epoch_seconds": n / 10} for n in (10, 20)]
)
EXPONENTS = ResultTable("Exponents", "protocol", [{"sweep": "n_users", "epoch_seconds": 1.0}])


@pytest.fixture
def run():
    commands = {"speed": module.speed, "scale": module.scale, "reading": module.reading, "ranks": module.ranks}
    return partial(invoked, commands)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed", "--part", "accuracy", "--figure", "x.png"), "--figure draws the part ratings, found"),
        (("scale", "--figure", "x.txt"), r"the suffix of --figure must be one of '\.png'"),
        (("scale", "--sweep", "n_users=10,x"), "--sweep expects NAME=N,N,... with whole numbers"),
        (("scale", "--sweep", "depth=2"), "a sweep must be one of"),
        (("scale", "--set", "n_factors=3"), r"found \['n_factors'\], which are sizes here"),
        (("speed", "--set", "width=3"), "--set expects NAME=VALUE with a parameter of AIR"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_work(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=message):
        run(*arguments)
    assert not list(tmp_path.iterdir())


def test_speed_writes_all_reports_and_draws_the_errors(run, tmp_path, monkeypatch):
    given = {}

    def bench(load, entrants, *, title, threads):
        given["air"], given["threads"] = entrants["AIR"].arguments[0], threads
        return ENDS, CURVES

    monkeypatch.setattr("benchmarks.speed.bench_ratings", bench)
    file, figure = tmp_path / "speed.json", tmp_path / "speed.svg"
    result = run(
        *("speed", "--part", "ratings", "--data", tmp_path, "--set", "n_epochs=7", "--threads", 2),
        *("--json", file, "--figure", figure),
    )
    assert result.exit_code == 0
    assert given == {"air": {"n_epochs": 7}, "threads": 2}
    assert "Time" in result.output
    assert "Along" not in result.output  # curves are for the file
    written = json.loads(file.read_text())
    assert [report["title"] for report in written["reports"]] == ["Time", "Along"]
    assert {"versions", "machine"} <= written.keys()
    assert figure.stat().st_size > 0


def test_scale_sweeps_and_trains(run, tmp_path, monkeypatch):
    given = {}

    def growth(points, settings, *, seed, threads):
        given["points"], given["settings"] = points, settings
        return GROWTH, EXPONENTS

    def planted(size, settings, *, seed, threads):
        given["trained"] = size
        return ENDS, CURVES

    monkeypatch.setattr("benchmarks.scale.bench_growth", growth)
    monkeypatch.setattr("benchmarks.scale.bench_planted", planted)
    file, figure = tmp_path / "scale.json", tmp_path / "scale.png"
    sizes = ("--users", 60, "--items", 40, "--ratings", 900, "--factors", 3, "--neighbors", 5)
    run("scale", *sizes, "--sweep", "n_users=50,60", "--train", 800, "--json", file, "--figure", figure)
    assert given["settings"] == {"solver": "variational"}
    assert [tuple(size) for _, size in given["points"]] == [(900, 50, 40, 3, 5), (900, 60, 40, 3, 5)]
    assert tuple(given["trained"]) == (800, 60, 40, 3, 5)
    assert len(json.loads(file.read_text())["reports"]) == 4
    assert figure.read_bytes().startswith(b"\x89PNG")
    del given["trained"]
    run("scale", *sizes, "--train", 0, "--solver", "langevin", "--set", "n_sweeps=9")
    assert "trained" not in given
    assert given["settings"] == {"solver": "langevin", "n_sweeps": 9}


def test_reading_measures_the_formats_that_are_asked_for(run, tmp_path, monkeypatch):
    given = {}

    def bench(rows, formats):
        given["rows"], given["formats"] = rows, formats
        return ENDS

    monkeypatch.setattr("benchmarks.reading.bench_reading", bench)
    file = tmp_path / "reading.json"
    assert run("reading", "--rows", 500, "--format", "csv", "--json", file).exit_code == 0
    assert given == {"rows": 500, "formats": ["csv"]}
    assert len(json.loads(file.read_text())["reports"]) == 1
    run("reading", "--json", file)
    assert given == {"rows": 3_000_000, "formats": ["parquet", "csv"]}


def test_ranks_train_on_movielens_or_on_what_is_planted(run, tmp_path, monkeypatch):
    given = []

    def bench(load, settings, *, title, n_ranks, repeats, seed):
        given.append((load, settings, title, list(n_ranks), repeats, seed))
        return ENDS

    monkeypatch.setattr("benchmarks.ranks.bench_ranks", bench)
    file = tmp_path / "ranks.json"
    assert run("ranks", "--data", tmp_path, "--json", file).exit_code == 0
    sizes = ("--ratings", 900, "--users", 60, "--items", 40)
    run("ranks", *sizes, "--ranks", 2, "--ranks", 3, "--set", "n_sweeps=3", "--repeats", 1, "--seed", 5)
    whole, planted = given
    assert whole[0].args == (tmp_path,)
    assert whole[1:] == ({}, SPLIT, [2], 3, 0)
    assert planted[0]().train.n_ratings == 810
    assert planted[1] == {"n_sweeps": 3}
    assert "900 planted ratings of 60 users and 40 items" in planted[2]
    assert planted[3:] == ([2, 3], 1, 5)
    assert len(json.loads(file.read_text())["reports"]) == 1
