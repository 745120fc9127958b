"""The command that measures lists: what it refuses before any work, and what it writes."""

import json
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from workshop_cases import invoked

from air_recsys import Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results.table import ResultTable
from air_recsys.exceptions import DataFileError, ParameterError
from air_recsys.splits import user_holdout
from benchmarks.accuracy.ranking_data import BY_DEFAULT, RANKING_SETS
from benchmarks.commands import accuracy


@pytest.fixture
def calls(monkeypatch, tmp_path):
    """Made data in place of all sets; what the measurement is called with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIR_RECSYS_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    data = Interactions.from_csr(sp.csr_array((rng.random((20, 30)) < 0.4).astype(float)))
    split = user_holdout(data, 0.2, 0)
    fold = Fold("test", data.select(split.train), data.select(split.test))
    for name, entry in RANKING_SETS.items():
        monkeypatch.setitem(RANKING_SETS, name, entry._replace(load=lambda root: fold))
    called = []

    def bench(name, part, systems, **options):
        called.append((name, part, systems, options))
        rows = [{"system": "x", "recall@20": 0.5}]
        return ResultTable(f"Lists on {name}", "protocol", rows), ResultTable(f"Intervals on {name}", "protocol", rows)

    monkeypatch.setattr("benchmarks.accuracy.ranking.bench_ranking", bench)
    return called


invoke = partial(invoked, {"ranking": accuracy.ranking})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--system", "SVD"), "--system must be one of 'GraphRanker'"),
        (("--ranker", "width=3"), "--set expects NAME=VALUE with a parameter of GraphRanker"),
        (("--json", "none/x.json"), "expected an existing folder for x.json"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(calls, arguments, message):
    with pytest.raises(ParameterError, match=message):
        invoke(*arguments)
    assert not calls


def test_a_set_that_cannot_be_read_is_refused_before_any_work(calls, monkeypatch):
    def load(root):
        raise DataFileError("expected the order, found sorted lines")

    monkeypatch.setitem(RANKING_SETS, "gowalla-order", RANKING_SETS["gowalla-order"]._replace(load=load))
    with pytest.raises(DataFileError, match="expected the order"):
        invoke("--set", "ml-1m", "--set", "gowalla-order", "--system", "Popularity")
    assert not calls


def test_all_sets_and_the_systems_of_each_by_default(calls):
    invoke("--system", "GraphRanker", "--system", "Popularity")
    assert [name for name, *_ in calls] == list(BY_DEFAULT)
    assert [list(systems) for _, _, systems, _ in calls] == [["GraphRanker", "Popularity"]] * len(BY_DEFAULT)
    pytest.importorskip("implicit")
    invoke("--set", "gowalla", "--set", "ml-1m")
    assert ["EASE" in systems for _, _, systems, _ in calls[-2:]] == [False, True]


def test_what_is_written_tells_the_command_and_the_machine(calls, tmp_path):
    written = tmp_path / "lists.json"
    options = ("--set", "gowalla", "--system", "Popularity", "--validation", "--ranker", "n_factors=5", "--seed", 3)
    result = invoke(*options, "--threads", 2, "--json", written)
    assert "Lists on gowalla" in result.output
    content = json.loads(written.read_text())
    assert set(content) == {"reports", "versions", "machine"}
    assert "Intervals on gowalla" in result.output
    first, second = (report["notes"][0] for report in content["reports"])
    assert first == second
    assert first == (
        "`python -m benchmarks ranking --set gowalla --system Popularity --ranker n_factors=5 --validation --seed 3`"
    )
    _, part, _, rest = calls[0]
    assert part.name == "validation"
    assert rest == {"seed": 3, "threads": 2}
