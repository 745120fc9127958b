"""Every recipe is whole, and every kind of system in it can be built."""

from __future__ import annotations

import pytest
from reproduction_cases import M, N, ring, small_case

from air_recsys import Interactions
from air_recsys.exceptions import ParameterError
from air_recsys.models.trained import TrainedRecommender
from benchmarks.paper.cases import MADE
from benchmarks.paper.figures import DRAWINGS
from benchmarks.paper.recipes import SCARCE, content_of, parse_seeds, recipes_of
from benchmarks.paper.systems import BY_HOLES, make_model

GROUPS = ("table1", "ours", "untouched", *DRAWINGS)
RECIPES = {f"{group}/{one.row}": one for group in GROUPS for one in recipes_of(group)}
RANDOM = ("random", "either")
MASKS = (*RANDOM, "patch", "texture", "drawn")
DATA = ("barbara", "baboon", "syn-netflix", "ic", "gpcr", "rank-5", SCARCE, *MADE)


def kinds_of_systems():
    """A system of every data, model and set of parameters, without models that wait for the holes of a picture."""
    places = {
        (small_kind(one.data), settings["model"], tuple(sorted(settings))): (name, system)
        for name, one in RECIPES.items()
        for system, settings in one.systems.items()
        if settings["model"] != BY_HOLES
    }
    return sorted(places.values())


def small_kind(data):
    """What tells the stand-ins of two data sets apart."""
    return "picture" if data in ("barbara", "baboon") else "pairs" if data in ("ic", "gpcr") else data


@pytest.mark.parametrize("group", GROUPS)
def test_rows_are_whole(group):
    recipes = recipes_of(group)
    assert content_of(group)["title"]
    assert len({one.title for one in recipes}) == len({one.row for one in recipes}) == len(recipes) > 0
    for one in recipes:
        assert one.data in DATA
        assert one.mask in MASKS
        assert set(one.keep) <= {"curves", "graphs"}
        assert (one.mask == "drawn") is (one.data == SCARCE)
        assert one.mask in (*RANDOM, "drawn") or small_case(one.data).picture
        assert (0 < one.missing < 1) is (one.mask in RANDOM)
        assert one.seeds
        assert set(one.published) <= set(one.systems)
        assert all(0 < value < 1 for value in one.published.values())


def test_what_systems_need_is_kept():
    for one in RECIPES.values():
        for settings in one.systems.values():
            assert not {"random_state", "device", "verbose"} & set(settings)  # these are the caller's
            assert ("graphs_of" in settings) is ("graphs_at" in settings)
            if "graphs_of" in settings:
                source = one.systems[settings["graphs_of"]]
                assert "graphs_of" not in source
                assert settings["graphs_at"] in source["snapshot_epochs"]
            if {"graphs_of", "snapshot_epochs"} & set(settings):
                assert "graphs" in one.keep
            if "snapshot_epochs" in settings:
                assert max(settings["snapshot_epochs"]) <= settings["n_epochs"]
            assert not settings.get("side") or small_case(one.data).side is not None


@pytest.mark.parametrize(("name", "system"), kinds_of_systems(), ids=":".join)
def test_every_kind_of_system_is_a_model_whose_parameters_are_valid(name, system):
    one = RECIPES[name]
    settings, case, graphs = dict(one.systems[system]), small_case(one.data), None
    if (source := settings.pop("graphs_of", None)) is not None:
        graphs = {}
        for epoch in one.systems[source]["snapshot_epochs"]:
            graphs |= {f"user_graph_{epoch}": ring(M).toarray(), f"item_graph_{epoch}": ring(N).toarray()}
    for quick in (False, True):
        model = make_model(settings, case, 3, quick, "cpu", graphs)
        model.check(Interactions.from_dense(case.truth, allow_negative=True))
        parameters = model.get_params()
        assert parameters.get("random_state", 3) == 3
        assert parameters.get("device", "cpu") == "cpu"
        assert not quick or parameters.get("n_epochs", 0) <= 60
        assert "curves" not in one.keep or isinstance(model, TrainedRecommender)
    if settings.get("dense"):
        assert model.get_params()["graph_neighbors"] is None


def test_unknown_rows_and_parameters_are_told():
    with pytest.raises(ParameterError, match=r"rows must be of \['barbara-random', .*\], found 'd'"):
        recipes_of("table1", ["ic", "d"])
    with pytest.raises(ParameterError, match="KNN has no parameter 'neighbors'"):
        make_model({"model": "KNN", "neighbors": 3}, small_case("rank-5"), 0)


@pytest.mark.parametrize("parts", [["a"], ["1.."], [1, 1], ["5..2"], [-1]])
def test_seeds_that_are_none(parts):
    with pytest.raises(ParameterError, match="seeds must be"):
        parse_seeds(parts)
