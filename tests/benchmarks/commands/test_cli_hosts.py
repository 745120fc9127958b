"""The command that measures the adapters: what it writes, and what it hands on."""

import json

import numpy as np
import pytest
from workshop_cases import invoked

from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.evaluation.results.table import ResultTable
from benchmarks.commands import accuracy


def run(*arguments):
    return invoked({"hosts": accuracy.hosts}, *arguments)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path))
    return tmp_path


def test_tables_are_printed_and_written(folder, monkeypatch):
    data = make_planted_ratings(20, 15, 150, 2, 2).interactions
    monkeypatch.setattr("benchmarks.hosts.load_movielens", lambda root, variant: data)
    ended = run("--host", "surprise", "--json", folder / "r.json")
    assert ended.exit_code == 0
    written = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    (report,) = written["reports"]
    assert report["title"] in ended.stdout
    assert all(np.isfinite(row["rmse"]) for row in report["rows"])
    assert "surprise" in " ".join(written["versions"])


def test_which_likes_and_which_splits_are_handed_on(folder, monkeypatch):
    asked = []

    def recorded(host, root, **what):
        asked.append((host, what))
        return [ResultTable("Made up", "nothing", [{"ndcg": 0.5}])]

    monkeypatch.setattr("benchmarks.hosts.bench_host", recorded)
    chosen = ("--set", "douban", "--set", "movielens-1m", "--seeds", 2, "--first-seed", 40)
    assert run("--host", "implicit", *chosen).exit_code == 0
    assert run("--host", "implicit").exit_code == 0
    some, whole = ({"sets": ["douban", "movielens-1m"], "seeds": range(40, 42)}, {"sets": (), "seeds": None})
    assert asked == [("implicit", some), ("implicit", whole)]


def test_an_unknown_host_is_told():
    ended = run("--host", "lenskit")
    assert ended.exit_code == 2
    assert "lenskit" in ended.output
