"""Runs are kept, found again, and never done twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from reproduction_cases import AIR, GIVEN, options, small_recipe, use_small_cases

from air_recsys.exceptions import DataError, DataFileError, ParameterError
from benchmarks.paper import runs
from benchmarks.paper.runs import Options, Run, all_runs, outcomes
from benchmarks.paper.systems import Outcome

KNN = {"model": "KNN", "n_neighbors": 3}
GRAPHS = {
    "late": GIVEN | {"graphs_of": "AIR", "graphs_at": 10},
    "AIR": AIR | {"snapshot_epochs": [5, 10]},
}


@pytest.fixture
def calls(monkeypatch):
    """Every training asked for, by system and seed; nothing is trained."""
    use_small_cases(monkeypatch)
    called = []

    def run_system(recipe, settings, seed, **how):
        called.append((settings["model"], seed))
        return Outcome({"nmae": float(len(called)), "seconds": 0.0})

    monkeypatch.setattr(runs, "run_system", run_system)
    return called


def numbers(found):
    """Figures of each run without the time that it took."""
    return {
        (run.system, run.seed): {name: value for name, value in outcome.numbers.items() if name != "seconds"}
        for run, outcome in found.items()
    }


# ---------------------------------------------------------------- which runs


def test_all_runs_are_every_system_and_seed():
    recipe = small_recipe()
    assert [(run.system, run.seed) for run in all_runs([recipe])] == [("AIR", 0), ("KNN", 0), ("AIR", 1), ("KNN", 1)]
    assert [(run.system, run.seed) for run in all_runs([recipe], [5, 6], ["KNN"])] == [("KNN", 5), ("KNN", 6)]
    assert len(all_runs([recipe, small_recipe(systems={"SVD": {"model": "IterativeSVD"}})], systems=["SVD"])) == 2


# ---------------------------------------------------------------- paths


def path(recipe=None, system="AIR", seed=0, **how) -> Path:
    return Run(recipe or small_recipe(), system, seed).path(Options(Path("data"), Path("runs"), **how))


def test_the_path_changes_with_what_matters_and_with_nothing_else():
    others = [
        *(path(seed=1), path(quick=True), path(validation=0.1), path(validation=0.2), path(system="KNN")),
        *(path(small_recipe(mask="patch")), path(small_recipe(missing=0.4)), path(small_recipe(data="ic"))),
        path(small_recipe(keep=("curves", "graphs"))),
        *(path(small_recipe(systems={"AIR": AIR | change})) for change in ({"n_epochs": 21}, {"depth": 2})),
    ]
    same = [
        path(small_recipe(title="other", note="other", published={}, seeds=(0, 7))),
        path(small_recipe(systems={"KNN": KNN | {"n_neighbors": 4}, "AIR": dict(reversed(AIR.items()))})),
        path(device="cpu"),
    ]
    assert len({path(), *others}) == 1 + len(others)
    assert {path(), *same} == {path()}
    graphs = [small_recipe(systems=GRAPHS | {"AIR": GRAPHS["AIR"] | change}) for change in ({}, {"depth": 2})]
    assert path(graphs[0], "late") != path(graphs[1], "late")  # those of another system


# ---------------------------------------------------------------- nothing twice


def test_nothing_is_computed_twice(calls, tmp_path):
    chosen = all_runs([small_recipe()])
    first = outcomes(chosen, options(tmp_path), "test")
    assert list(first) == chosen
    assert calls == [("AIR", 0), ("KNN", 0), ("AIR", 1), ("KNN", 1)]
    again = outcomes(chosen, options(tmp_path), "test")
    assert len(calls) == 4
    assert numbers(again) == numbers(first)
    more = outcomes(all_runs([small_recipe(title="other")], [0, 1, 2]), options(tmp_path), "test")
    assert calls[4:] == [("AIR", 2), ("KNN", 2)]
    assert numbers(first).items() <= numbers(more).items()
    outcomes(chosen, options(tmp_path, quick=True), "test")
    assert len(calls) == 10


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ParameterError("odd")])
@pytest.mark.parametrize("k", [1, 4])
def test_an_interruption_keeps_what_is_done(calls, tmp_path, monkeypatch, k, error):
    chosen, how, whole = all_runs([small_recipe()]), options(tmp_path), runs.run_system

    def interrupted(*args, **kwargs):
        if len(calls) == k - 1:
            raise error
        return whole(*args, **kwargs)

    monkeypatch.setattr(runs, "run_system", interrupted)
    with pytest.raises(type(error)):
        outcomes(chosen, how, "test")
    assert len(list(how.folder.iterdir())) == len(calls) == k - 1
    monkeypatch.setattr(runs, "run_system", whole)
    found = outcomes(chosen, how, "test")
    assert calls == [("AIR", 0), ("KNN", 0), ("AIR", 1), ("KNN", 1)]  # only the rest
    assert [values["nmae"] for values in numbers(found).values()] == [1, 2, 3, 4]


def test_a_broken_file_is_told_before_any_work(calls, tmp_path):
    chosen, how = all_runs([small_recipe()]), options(tmp_path)
    outcomes(chosen[1:2], how, "test")
    file = chosen[1].path(how)
    file.write_bytes(file.read_bytes()[:50])
    calls.clear()
    with pytest.raises(DataFileError, match=file.name):
        outcomes(chosen, how, "test")
    assert calls == []
    file.unlink()
    assert len(outcomes(chosen, how, "test")) == 4


def test_data_that_is_missing_is_told_before_any_work(calls, tmp_path, monkeypatch):
    recipes = [small_recipe(), small_recipe(row="last", data="baboon")]
    chosen, how = all_runs(recipes), options(tmp_path)
    outcomes(chosen[-4:], how, "test")

    def absent(data, root):
        raise DataError(f"no {data}")

    monkeypatch.setattr(runs, "load_case", absent)
    assert len(outcomes(chosen[-4:], how, "test")) == 4  # what is done needs no data
    calls.clear()
    with pytest.raises(DataError, match="no rank-5"):
        outcomes(chosen, how, "test")
    assert calls == []


# ---------------------------------------------------------------- runs that take the graphs of another


def test_a_system_that_takes_graphs_runs_after_the_other(tmp_path, monkeypatch):
    use_small_cases(monkeypatch)
    recipe = small_recipe(systems=GRAPHS, keep=("curves", "graphs"), seeds=(0,))
    order, whole = [], runs.run_system

    def watched(recipe, settings, seed, **how):
        order.append((settings["model"], how["graphs"]))
        return whole(recipe, settings, seed, **how)

    monkeypatch.setattr(runs, "run_system", watched)
    found = outcomes(all_runs([recipe]), options(tmp_path), "test")
    assert [run.system for run in found] == ["late", "AIR"]
    assert [model for model, _ in order] == ["AIR", "DirichletDMF"]
    assert order[0][1] is None
    given, kept = order[1][1], {run.system: outcome.arrays for run, outcome in found.items()}["AIR"]
    assert set(given) == {f"{kind}_graph_{epoch}" for kind in ("user", "item") for epoch in (5, 10)}
    for name, array in kept.items():
        np.testing.assert_array_equal(given[name], array)
