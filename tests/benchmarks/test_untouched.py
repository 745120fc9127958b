"""Untouched presets: means and standard errors, masks of two generators, and what a picture's holes ask for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproduction_cases import made_up, options, small_recipe, use_small_cases

from air_recsys.exceptions import ParameterError
from benchmarks import untouched as module
from benchmarks.cases import Case, load_case, observed_entries
from benchmarks.recipes import MADE, recipes_of
from benchmarks.untouched import untouched

PRESET = {"model": "AIR", "preset": "completion"}
HOLES = {"model": "by holes"}


@pytest.fixture
def made(monkeypatch):
    """One recipe whose results are made up."""
    recipe = small_recipe(name="untouched/00-a", title="A", systems={"AIR": PRESET, "by holes": HOLES}, mask="either")
    monkeypatch.setattr(module, "recipes_of", lambda group: [recipe])
    monkeypatch.setattr(module, "outcomes", made_up({("A", "AIR"): [0.1, 0.3], ("A", "by holes"): [0.2, 0.2]}))


@pytest.mark.usefixtures("made")
def test_means_have_their_standard_errors(tmp_path):
    means, single = untouched(options(tmp_path))
    rows = {row["model"]: row for row in means.rows}
    assert list(rows) == ["AIR.for_completion()", "images.model_for"]
    first = rows["AIR.for_completion()"]
    assert (first["runs"], first["nmae"]) == (2, pytest.approx(0.2))
    assert first["nmae s.e."] == pytest.approx(math.sqrt(0.02) / math.sqrt(2))
    assert rows["images.model_for"]["nmae s.e."] == 0
    assert len(single.rows) == 4
    assert "without any parameter" in means.protocol


@pytest.mark.usefixtures("made")
def test_rows_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ParameterError, match=r"rows must be of \['a'\], found 'b'"):
        untouched(options(tmp_path), rows=["b"])


def test_presets_are_untouched_in_every_recipe():
    for recipe in recipes_of("untouched"):
        assert all(set(settings) <= {"model", "preset"} for settings in recipe.systems.values())
        assert min(recipe.seeds) >= 20  # settings were chosen below


@pytest.mark.parametrize("seed", [20, 21])
def test_odd_seeds_draw_by_the_older_generator(seed):
    case = Case(np.zeros((30, 40)))
    recipe = small_recipe(mask="either", missing=0.3)
    drawn = np.random.RandomState(seed) if seed % 2 else np.random.default_rng(seed)
    np.testing.assert_array_equal(observed_entries(recipe, case, "nowhere", seed), drawn.random((30, 40)) >= 0.3)


@pytest.mark.parametrize("name", ["made-small", "made-large-groups"])
def test_made_matrices_have_their_groups(name, tmp_path):
    m, n, user_groups, item_groups, noise = MADE[name]
    case = load_case(name, tmp_path)
    assert case.truth.shape == (m, n)
    assert case.groups is not None
    assert [np.unique(side).size for side in case.groups] == [user_groups, item_groups]
    assert (np.unique(case.truth).size > user_groups * item_groups) is (noise > 0)


def test_a_quick_run_takes_a_model_for_the_holes(tmp_path, monkeypatch):
    both = {"AIR": PRESET, "by holes": HOLES}
    recipe = small_recipe(name="untouched/00-b", title="B", data="barbara", seeds=(20,), systems=both, keep=())
    use_small_cases(monkeypatch)
    monkeypatch.setattr(module, "recipes_of", lambda group: [recipe])
    means, _ = untouched(options(tmp_path, quick=True))
    assert [row["runs"] for row in means.rows] == [1, 1]
    assert all(0 < row["nmae"] < 10 for row in means.rows)
