"""Recipes are whole, and running them covers every case, system and seed."""

import math
from importlib import resources
from typing import Any

import numpy as np
import pytest

from air_recsys import AIR, DMF
from air_recsys.exceptions import ParameterError
from air_recsys.models.presets import PRESETS
from air_recsys.solvers import Adam
from benchmarks import reproduce as reproduction
from benchmarks.commands.reproduce import reproduce_app
from benchmarks.recipes import recipe
from benchmarks.reproduce import CASES, Case, reproduce, systems

FILES = [entry.name for entry in (resources.files("benchmarks") / "recipes").iterdir()]
NAMES = sorted(name.removesuffix(".toml") for name in FILES if name.endswith(".toml") and name != "table2.toml")
GROUPS = [name for name in FILES if not name.endswith((".toml", ".py"))]
TINY = np.random.default_rng(0).random((12, 15))
SYSTEMS = {"AIR", "AIR dense", "DMF"}


def test_every_recipe_has_cases_and_a_command():
    assert sorted(CASES) == NAMES
    commands = {str(command.name) for command in reproduce_app.registered_commands}
    assert {*NAMES, *GROUPS, "table2"} <= commands


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_whole(name):
    chosen = recipe(name)
    keys = {"missing", "seeds", "systems", "preset", "published", "settings", "dmf"}
    assert set(chosen) - {"sets"} == keys
    assert all(0 < share < 1 for share in chosen["missing"])
    assert all(isinstance(seed, int) for seed in chosen["seeds"])
    assert len(set(chosen["seeds"])) == len(chosen["seeds"]) >= 1
    assert {"AIR", "DMF"} <= set(chosen["systems"]) <= SYSTEMS
    assert chosen["preset"] in PRESETS


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_table_has_its_published_figure(name):
    chosen = recipe(name)
    rows = chosen.get("sets", chosen["missing"])
    assert "AIR" in chosen["published"]
    for values in chosen["published"].values():
        assert len(values) == len(rows)
        assert all(isinstance(value, float) and 0 < value < 1 for value in values)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_parameters_of_air_that_it_accepts(name):
    chosen = recipe(name)
    assert not {"random_state", "device", "verbose"} & set(chosen["settings"])  # these are the caller's
    model = AIR.of_preset(chosen["preset"], **chosen["settings"] | {"n_epochs": 2, "device": "cpu", "random_state": 0})
    assert model.fit(TINY).n_iter_ == 2


@pytest.mark.parametrize("name", NAMES)
def test_settings_of_dmf_are_parameters_that_it_accepts(name):
    chosen = recipe(name)
    assert set(chosen["dmf"]) <= set(DMF().get_params())
    assert not {"random_state", "device", "verbose"} & set(chosen["dmf"])
    model = DMF.like(AIR.of_preset(chosen["preset"], **chosen["settings"], device="cpu", random_state=0))
    assert model.set_params(**chosen["dmf"] | {"n_epochs": 2}).fit(TINY).n_iter_ == 2


def test_unknown_recipes_are_named():
    with pytest.raises(ParameterError, match=r"expected a recipe of .*syn-netflix.*, found 'netflix'"):
        recipe("netflix")


def test_systems_share_all_settings_but_the_graphs_and_those_of_dmf_itself():
    adam = Adam(n_epochs=7, depth=4, user_graph_reg=0.5)
    air = AIR(solver=adam, graph_neighbors=5, random_state=3)
    made: Any = dict(systems(air, ["AIR", "AIR dense", "DMF"], {"init_std": 0.3}))
    assert list(made) == ["AIR", "AIR dense", "DMF"]
    assert made["AIR"].get_params() == air.get_params()
    assert made["AIR"] is not air
    assert made["AIR dense"].get_params() == air.get_params() | {"graph_neighbors": None}
    assert isinstance(made["DMF"], DMF)
    assert made["DMF"].get_params() == DMF.like(air).get_params() | {"init_std": 0.3}


# ---------------------------------------------------------------- runs


@pytest.fixture(autouse=True)
def short_dmf(monkeypatch):
    """DMF has epochs of its own, which no override shortens."""

    def short(name):
        chosen = recipe(name)
        return chosen | {"dmf": chosen["dmf"] | {"n_epochs": 3}}

    monkeypatch.setattr(reproduction, "recipe", short)


@pytest.fixture
def toy(monkeypatch):
    """Two small matrices instead of the data, with and without groups."""
    groups = np.repeat([0, 1], 6)
    truth = np.array([[1.0, 4.0], [5.0, 2.0]])[groups][:, groups]

    def cases(chosen, root):
        return [
            Case("toy", 0.3, truth, (groups, groups), {"AIR": 0.1, "DMF": 0.2}),
            Case("bare", 0.2, truth, None, {"AIR": 0.3}),
        ]

    monkeypatch.setitem(reproduction.CASES, "syn-netflix", cases)


SHORT = {"n_epochs": 3, "graph_neighbors": 3}


@pytest.mark.usefixtures("toy")
def test_reproduce_runs_every_case_system_and_seed(tmp_path):
    means, single = reproduce("syn-netflix", tmp_path, seeds=2, overrides=SHORT, device="cpu", progress=False)
    keys = [(row["data"], row["seed"], row["system"]) for row in single.rows]
    assert keys == [(data, seed, name) for data in ("toy", "bare") for seed in (0, 1) for name in ("AIR", "DMF")]
    assert [(row["data"], row["system"]) for row in means.rows] == [
        (data, name) for data in ("toy", "bare") for name in ("AIR", "DMF")
    ]
    for row in means.rows:
        runs = [run for run in single.rows if (run["data"], run["system"]) == (row["data"], row["system"])]
        assert row["nmae"] == pytest.approx(np.mean([run["nmae"] for run in runs]))
    assert [row["published"] for row in means.rows[:3]] == [0.1, 0.2, 0.3]
    assert math.isnan(means.rows[3]["published"])
    assert ["user_auc" in row for row in single.rows[::2]] == [True, True, False, False]


@pytest.mark.usefixtures("toy")
def test_reproduce_tells_its_protocol_and_repeats_itself(tmp_path):
    first, again = (
        reproduce("syn-netflix", tmp_path, seeds=1, overrides=SHORT, device="cpu", progress=False)[0] for _ in range(2)
    )
    assert [row["nmae"] for row in first.rows] == [row["nmae"] for row in again.rows]
    assert "seeds [0]" in first.protocol
    assert "the hidden entries" in first.protocol
    assert "graph_neighbors=3" in first.protocol
    assert "DMF: the same without graphs and with learning_rate=" in first.protocol
    assert "AIR.for_completion" in first.protocol
    chosen = reproduce(
        "syn-netflix", tmp_path, seeds=1, overrides=SHORT, validation=0.25, device="cpu", progress=False
    )[0]
    assert "asked for 25% of the observed entries" in chosen.protocol
    assert [row["nmae"] for row in chosen.rows] != [row["nmae"] for row in first.rows]


@pytest.mark.usefixtures("toy")
def test_reproduce_starts_at_the_first_seed_asked_for(tmp_path):
    _, single = reproduce(
        "syn-netflix", tmp_path, seeds=2, first_seed=5, overrides=SHORT, device="cpu", progress=False
    )
    assert {row["seed"] for row in single.rows} == {5, 6}
    assert "seeds [5, 6]" in single.protocol


@pytest.mark.usefixtures("toy")
def test_overrides_go_before_the_seed_and_the_device(tmp_path):
    asked = SHORT | {"random_state": 5, "device": "cpu"}
    means, _ = reproduce("syn-netflix", tmp_path, seeds=1, overrides=asked, device="cuda:99", progress=False)
    assert "random_state=5" in means.protocol


@pytest.mark.data
@pytest.mark.parametrize(("name", "n_rows"), [("syn-netflix", 6), ("dti-completion", 6)])
def test_reproduce_on_the_real_data(name, n_rows, data_root):
    means, single = reproduce(name, data_root, seeds=1, overrides={"n_epochs": 5}, device="cpu", progress=False)
    assert len(means.rows) == len(single.rows) == n_rows
    published = recipe(name)["published"]
    for row in means.rows:
        assert 0 < row["nmae"] < 1
        assert row["published"] in published[row["system"].partition(" ")[0]]
