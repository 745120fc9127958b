"""Runs are kept, found again, and never done twice."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
from reproduction_cases import AIR, GIVEN, options, small_recipe, use_small_cases

from air_recsys.exceptions import AirRecsysError, DataError, DataFileError, ParameterError
from benchmarks.paper import runs
from benchmarks.paper.runs import Options, Run, all_runs, mean_and_deviation, outcomes
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


def test_unknown_systems_are_told():
    with pytest.raises(ParameterError, match=r"systems must be of \['AIR', 'KNN'\], found 'knn'"):
        all_runs([small_recipe()], systems=["AIR", "knn"])


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"validation": -0.1}, "validation"), ({"validation": float("nan")}, "validation"), ({"jobs": 0}, "jobs")],
)
def test_options_out_of_range(tmp_path, changes, word):
    with pytest.raises(ParameterError, match=f"{word} must be"):
        options(tmp_path, **changes)


# ---------------------------------------------------------------- paths


def path(recipe=None, system="AIR", seed=0, **how) -> Path:
    return Run(recipe or small_recipe(), system, seed).path(Options(Path("data"), Path("runs"), **how))


@pytest.mark.parametrize(
    "other",
    [
        path(seed=1),
        path(quick=True),
        path(validation=0.1),
        path(validation=0.2),
        path(system="KNN"),
        path(small_recipe(mask="patch")),
        path(small_recipe(missing=0.4)),
        path(small_recipe(data="ic")),
        path(small_recipe(keep=("curves", "graphs"))),
        path(small_recipe(systems={"AIR": AIR | {"n_epochs": 21}})),
        path(small_recipe(systems={"AIR": AIR | {"depth": 2}})),
    ],
)
def test_the_path_changes_with_what_matters(other):
    assert other != path()


@pytest.mark.parametrize(
    "same",
    [
        path(small_recipe(title="other", note="other", published={}, seeds=(0, 7))),
        path(small_recipe(systems={"KNN": KNN | {"n_neighbors": 4}, "AIR": dict(reversed(AIR.items()))})),
        path(jobs=4),
        path(device="cpu"),
    ],
)
def test_the_path_does_not_change_with_anything_else(same):
    assert same == path()


def test_the_path_changes_with_the_settings_of_the_system_whose_graphs_are_taken():
    recipe = small_recipe(systems=GRAPHS)
    other = small_recipe(systems=GRAPHS | {"AIR": GRAPHS["AIR"] | {"depth": 2}})
    assert path(recipe, "late") != path(other, "late")


def test_paths_of_systems_with_odd_names_are_files_of_the_folder():
    recipe = small_recipe(systems={"a/b": KNN, "a b": KNN | {"n_neighbors": 2}, "DMF+DE": KNN})
    found = {path(recipe, system) for system in recipe.systems}
    assert len(found) == 3
    assert {one.parent for one in found} == {Path("runs")}


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
@pytest.mark.parametrize("k", [1, 2, 4])
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


# ---------------------------------------------------------------- side by side


def test_two_jobs_give_the_figures_of_one(tmp_path):
    systems = {"DMF": {"model": "DMF", "n_epochs": 20, "init_std": 0.1}, "SVD": {"model": "IterativeSVD"}}
    chosen = all_runs([small_recipe(systems=systems, seeds=(0,))])  # of rank 5, on 100 x 100: no data is needed
    one = outcomes(chosen, options(tmp_path / "one"), "test")
    two = outcomes(chosen, options(tmp_path / "two", jobs=2), "test")
    assert numbers(one) == numbers(two)
    assert [outcome.curves for outcome in one.values()] == [outcome.curves for outcome in two.values()]


def test_an_error_in_another_process_finds_its_way_back_and_names_its_run(tmp_path):
    wild = {"model": "DMF", "n_epochs": 400, "learning_rate": 1e9, "dtype": "float64"}
    run = all_runs([small_recipe(systems={"wild": wild}, seeds=(0,))])[0]
    with pytest.raises(AirRecsysError) as raised:
        runs._execute_apart(run, options(tmp_path))
    returned = pickle.loads(pickle.dumps(raised.value))  # as between processes
    assert str(returned).startswith("small, wild, seed 0: training diverged")


def test_mean_and_deviation():
    assert mean_and_deviation([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    mean, deviation = mean_and_deviation([1.0])
    assert mean == 1
    assert np.isnan(deviation)


def test_options_are_not_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Options(Path(), Path()).jobs = 2  # type: ignore[misc]
