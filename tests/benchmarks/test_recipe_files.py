"""Every recipe is whole, and every system of it can be built."""

from __future__ import annotations

import dataclasses
from importlib import resources

import numpy as np
import pytest
from reproduction_cases import M, N, ring, small_case

from air_recsys import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models.trained import TrainedRecommender
from benchmarks.recipes import DATA, KEPT, MASKS, SCARCE, Recipe, recipe, recipes_of
from benchmarks.systems import BY_HOLES, make_model

FOLDER = resources.files("benchmarks") / "recipes"
GROUPS = sorted(entry.name for entry in FOLDER.iterdir() if entry.is_dir())
RECIPES = [one for group in GROUPS for one in recipes_of(group)]
BY_NAME = {one.name: one for one in RECIPES}
# What `model_for` chooses is no model before the holes are there.
SYSTEMS = [
    (name, system)
    for name, one in BY_NAME.items()
    for system in one.systems
    if one.systems[system]["model"] != BY_HOLES
]
RANDOM = ("random", "either")

# Table 1 as printed: KNN, SVD, PNMC, DMF, RDMF, DMF+DE, AIR.
COLUMNS = ("KNN", "SVD", "PNMC", "DMF", "RDMF", "DMF+DE", "AIR")
NA = None
PRINTED = {
    "barbara-random": (0.083, 0.0621, 0.0622, 0.0613, 0.0494, NA, 0.0471),
    "barbara-patch": (0.1563, 0.2324, 0.2055, 0.7664, 0.3025, NA, 0.1195),
    "barbara-texture": (0.0712, 0.1331, 0.1100, 0.3885, 0.1864, NA, 0.0692),
    "baboon-random": (0.0831, 0.1631, 0.0965, 0.2134, 0.0926, NA, 0.0814),
    "baboon-patch": (0.1195, 0.1571, 0.1722, 0.8133, 0.2111, NA, 0.1316),
    "baboon-texture": (0.1237, 0.1815, 0.1488, 0.5835, 0.2818, NA, 0.1208),
    "syn-netflix-70": (0.0032, 0.0376, NA, 0.0003, NA, 0.0008, 0.0002),
    "syn-netflix-75": (0.0046, 0.0378, NA, 0.0004, NA, 0.0009, 0.0003),
    "syn-netflix-80": (0.0092, 0.0414, NA, 0.0014, NA, 0.0012, 0.0007),
    "ic": (0.0169, 0.0547, NA, 0.0773, NA, 0.0151, 0.0134),
    "gpcr": (0.0409, 0.0565, NA, 0.1513, NA, 0.0245, 0.0271),
}
MISSING = {"random": 0.3, "70": 0.7, "75": 0.75, "80": 0.8, "ic": 0.2, "gpcr": 0.2}
# Table 2 as printed, seconds on a V100: DMF, RDMF, AIR by size and depth.
SECONDS = {
    (100, 2): (31.55, 44.24, 59.53),
    (100, 3): (33.93, 46.81, 61.53),
    (100, 4): (36.52, 49.16, 61.59),
    (170, 2): (35.15, 47.67, 65.81),
    (170, 3): (37.97, 51.47, 67.97),
    (170, 4): (41.38, 55.11, 70.86),
    (240, 2): (43.57, 53.36, 82.21),
    (240, 3): (46.50, 59.89, 83.32),
    (240, 4): (52.24, 61.89, 88.34),
}

every_recipe = pytest.mark.parametrize("one", RECIPES, ids=BY_NAME)
every_system = pytest.mark.parametrize(
    ("name", "system"), SYSTEMS, ids=[f"{name}:{system}" for name, system in SYSTEMS]
)


def settings_of(one: Recipe, system: str) -> tuple[dict, dict[str, np.ndarray] | None]:
    """What a run gives to `make_model`: the settings, and the arrays of the run whose graphs it takes."""
    settings = dict(one.systems[system])
    source = settings.pop("graphs_of", None)
    if source is None:
        return settings, None
    graphs = {}
    for epoch in one.systems[source]["snapshot_epochs"]:
        graphs |= {f"user_graph_{epoch}": ring(M).toarray(), f"item_graph_{epoch}": ring(N).toarray()}
    return settings, graphs


def test_there_are_recipes_of_the_table_and_of_every_figure():
    assert {"table1", "fig-depth", "fig-heatmaps", "fig-trajectories"} <= set(GROUPS)
    assert all(recipes_of(group) for group in GROUPS)


@every_recipe
def test_keys_are_known_and_values_from_the_allowed_sets(one):
    assert set(recipe(one.name)) <= {field.name for field in dataclasses.fields(Recipe)} - {"name"}
    assert one.title
    assert one.data in DATA
    assert one.mask in MASKS
    assert set(one.keep) <= set(KEPT)
    assert len(set(one.keep)) == len(one.keep)
    assert (one.mask == "drawn") is (one.data == SCARCE)
    assert one.mask in (*RANDOM, "drawn") or small_case(one.data).picture
    assert one.row


@every_recipe
def test_the_missing_share_is_given_for_random_masks_alone(one):
    assert ("missing" in recipe(one.name)) is (one.mask in RANDOM)
    assert one.mask not in RANDOM or 0 < one.missing < 1


@every_recipe
def test_seeds_are_distinct(one):
    assert one.seeds
    assert len(set(one.seeds)) == len(one.seeds)
    assert all(isinstance(seed, int) and seed >= 0 for seed in one.seeds)


@every_recipe
def test_published_systems_are_run_and_told_where_they_come_from(one):
    assert set(one.published) <= set(one.systems)
    assert all(0 < value < 1 for value in one.published.values())
    lines = (FOLDER / f"{one.name}.toml").read_text(encoding="utf-8").splitlines()
    assert ("[published]" in lines) is bool(one.published)
    assert all(lines[row - 1].startswith("# ") for row, line in enumerate(lines) if line == "[published]")


@pytest.mark.parametrize("group", GROUPS)
def test_titles_and_rows_of_a_group_are_unique(group):
    recipes = recipes_of(group)
    assert len({one.title for one in recipes}) == len({one.row for one in recipes}) == len(recipes)


@every_system
@pytest.mark.parametrize("quick", [False, True])
def test_every_system_is_a_model_whose_parameters_are_valid(name, system, quick):
    one = BY_NAME[name]
    case = small_case(one.data)
    settings, graphs = settings_of(one, system)
    model = make_model(settings, case, 3, quick, "cpu", graphs)
    model.check(Interactions.from_dense(case.truth, allow_negative=True))
    parameters = model.get_params()
    assert parameters.get("random_state", 3) == 3
    assert parameters.get("device", "cpu") == "cpu"
    assert not {"random_state", "device", "verbose"} & set(settings)  # these are the caller's
    if quick and "n_epochs" in parameters:
        assert parameters["n_epochs"] <= 60


@every_system
def test_what_a_recipe_keeps_its_systems_have(name, system):
    one, settings = BY_NAME[name], BY_NAME[name].systems[system]
    settings_given, graphs = settings_of(one, system)
    model = make_model(settings_given, small_case(one.data), 0, graphs=graphs)
    assert "curves" not in one.keep or isinstance(model, TrainedRecommender)
    if "snapshot_epochs" in settings:
        assert "graphs" in one.keep
        assert max(settings["snapshot_epochs"]) <= settings["n_epochs"]
    if settings.get("side"):
        assert small_case(one.data).side is not None


@every_system
def test_graphs_come_from_a_system_that_keeps_them(name, system):
    one, settings = BY_NAME[name], BY_NAME[name].systems[system]
    assert ("graphs_of" in settings) is ("graphs_at" in settings)
    if "graphs_of" in settings:
        source = one.systems[settings["graphs_of"]]
        assert "graphs" in one.keep
        assert "graphs_of" not in source
        assert settings["graphs_at"] in source["snapshot_epochs"]


def test_table_1_has_the_rows_and_the_figures_of_the_paper():
    table = recipes_of("table1")
    assert [one.row for one in table] == list(PRINTED)
    for one in table:
        printed = {name: value for name, value in zip(COLUMNS, PRINTED[one.row], strict=True) if value is not None}
        assert one.published == printed, one.row
        assert set(one.systems) == {*printed, "AIR tuned"}  # the verdicts compare with every baseline
        assert one.missing == MISSING.get(one.row.rpartition("-")[2], 0.0)
        data, _, mask = one.row.rpartition("-") if "-" in one.row else (one.row, "", "random")
        assert (one.data, one.mask) == (data, mask if mask in MASKS else "random")


def test_table_2_has_the_seconds_of_the_paper():
    rows = recipe("table2")["rows"]
    assert {(row["size"], row["depth"]): (row["DMF"], row["RDMF"], row["AIR"]) for row in rows} == SECONDS
    assert len(rows) == len(SECONDS)


def test_unknown_parameters_are_told():
    with pytest.raises(ParameterError, match="KNN has no parameter 'neighbors'"):
        make_model({"model": "KNN", "neighbors": 3}, small_case("rank-5"), 0)
