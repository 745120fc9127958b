"""Files of release 0.1.0: they load, hold what this release learns too, and their checkpoints go on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_cases import ITEMS, USERS, all_scores, by_paper, frame
from safetensors import safe_open
from safetensors.numpy import save_file

from air_recsys import AIR, DMF, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import CheckpointError, ModelFileError
from air_recsys.models import KNN, PNMC, RDMF, DirichletDMF, GraphRanker, IterativeSVD, PatchAIR, Recommender
from air_recsys.models.solvers import Adam, Langevin, Sweeping

FOLDER = Path(__file__).parent / "release_0_1_0"
CPU: dict[str, Any] = {"device": "cpu", "random_state": 0, "dtype": "float64"}
STEPS: dict[str, Any] = {"n_epochs": 60, "init_std": 0.1}
SHORT: dict[str, Any] = STEPS | CPU
SMALL: dict[str, Any] = {"n_factors": 3, "graph_neighbors": 3, "graph_refresh": 10, **CPU}
OF_INTERACTIONS: dict[str, Any] = {"schedule": "cooldown", "learning_rate": 3e-3, "graph_rate": 0.3, "init_mean": 0.0}
WATCHED: dict[str, Any] = {"validation_fraction": 0.2, "patience": 4, "evaluate_every": 2}
# The models of release_0_1_0/make.py, without what their solvers never read, and with the numbers of its presets.
MODELS: dict[str, Any] = {
    "completion": lambda: by_paper(**SHORT, snapshot_epochs=(20,)),
    "interactions": lambda: AIR(
        pattern_graphs=True, graph_neighbors=5, solver=Adam(**OF_INTERACTIONS, **STEPS), **CPU
    ),
    "ratings": lambda: AIR.for_ratings(n_sweeps=30, **SMALL),
    "ratings-one-graph": lambda: AIR.for_ratings(**SMALL, user_graph_reg=0, n_sweeps=8),
    "langevin": lambda: AIR.for_ratings(solver="langevin", n_sweeps=12, **SMALL),
    "adam": lambda: AIR.for_ratings(solver="adam", scale=False, **SMALL),
    "transforms": lambda: by_paper(transforms=(("columns", 1e-4, 2),), tv_reg=1e-3, **SHORT),
    "unobserved": lambda: AIR(n_factors=3, solver=Adam(unobserved_weight=0.1, scale=False, **STEPS), **CPU),
    "watched": lambda: AIR.for_ratings(solver="adam", scale=False, **WATCHED, **SMALL),
    "dmf": lambda: DMF(**SHORT),
    "rdmf": lambda: RDMF(**SHORT),
    "dirichlet": lambda: DirichletDMF(n_neighbors=3, **SHORT),
    "knn": lambda: KNN(n_neighbors=3),
    "svd": lambda: IterativeSVD(rank=2, n_iterations=20, random_state=0),
    "pnmc": lambda: PNMC(patch=3, n_similar=4, rank=2, n_rounds=1),
    "patches": lambda: PatchAIR(patch=3, stride=1, n_factors=2, n_epochs=20, graph_neighbors=3, **CPU),
    "ranker": lambda: GraphRanker(n_factors=3, settings={}),
    "bias": BiasModel,
    "mean": GlobalMean,
}
CUT = {"completion": 40, "adam": 20, "ratings": 10, "langevin": 6, "watched": 6, "dmf": 40}  # epochs, or sweeps
DRAWN = 0.1  # root mean squared difference of two chains that see features of other signs; other seeds differ by 0.16
CLOSE: dict[str, float] = {"rtol": 1e-6, "atol": 1e-8}  # other processors, other last bits


@pytest.fixture(autouse=True)
def plain_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps stop at the optimum, and see the pattern, as those of the release did."""
    monkeypatch.setattr("air_recsys.nn.posterior.posterior._PAST", 0.0)
    monkeypatch.setattr("air_recsys.nn.posterior.features._FLOOR", 0.0)
    monkeypatch.setattr("air_recsys.nn.posterior.features._SHARE", 1.0)
    monkeypatch.setattr("air_recsys.nn.posterior.prior._RIDGE", 100.0)


def data() -> Interactions:
    return Interactions.from_frame(frame())


def assert_close(found: Recommender, expected: Recommender) -> None:
    """Both hold the same scores, graphs and history, up to what another processor makes of them.

    Of a chain up to what other signs of the features make of it: that release took those of LAPACK.
    """
    if isinstance(getattr(found, "solver", None), Langevin):
        assert np.sqrt(np.mean((all_scores(found) - all_scores(expected)) ** 2)) < DRAWN
        assert found.history_["epoch"].tolist() == expected.history_["epoch"].tolist()
        return
    np.testing.assert_allclose(all_scores(found), all_scores(expected), **CLOSE)
    for name in ("user_adjacency_", "item_adjacency_"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) is (other is None)
        if one is not None:
            np.testing.assert_allclose(one.toarray(), other.toarray(), **CLOSE)
    one, other = found.history_, expected.history_
    assert one.columns.tolist() == other.columns.tolist()
    for name in one.columns.drop("seconds", errors="ignore"):
        np.testing.assert_allclose(one[name].to_numpy(float), other[name].to_numpy(float), **CLOSE)


def test_a_ranker_of_that_release_scores_as_it_did():
    """By graphs and singular vectors alone, with the powers and weights that were its defaults."""
    loaded = Recommender.load(FOLDER / "ranker.air")
    x = (data().to_csr().toarray() != 0).astype(float)
    counts, graphs = x.sum(axis=0), [loaded.item_adjacency_, loaded.user_adjacency_]
    parts = [
        (1.0, (x * counts**-0.25) @ graphs[0] * counts**0.25),
        (0.3, graphs[1] @ (x * counts**-0.25)),
        (0.3, loaded.user_factors_ @ loaded.item_factors_.T),
    ]
    expected = sum(weight * part / np.linalg.norm(part, axis=1, keepdims=True) for weight, part in parts)
    np.testing.assert_allclose(all_scores(loaded), expected.ravel(), rtol=1e-5, atol=1e-7)
    new = loaded.fold_in(data()).recommend(3)  # the new user's own edges differ
    assert set(new["source"]) == {"model"}
    assert loaded.get_params(deep=False) == MODELS["ranker"]().get_params(deep=False)
    assert_close(loaded.fit(data()), MODELS["ranker"]().fit(data()))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "ranker"])
def test_a_file_holds_what_is_learned_today(name):
    loaded, fresh = Recommender.load(FOLDER / f"{name}.air"), MODELS[name]().fit(data())
    assert type(loaded) is type(fresh)
    before, today = loaded.get_params(deep=False), MODELS[name]().get_params(deep=False)
    assert before.pop("verbose", False) is False  # its default then
    today.pop("verbose", None)
    assert before == today
    assert_close(loaded, fresh)
    for attribute in ("n_iter_", "stopped_by_", "device_"):
        assert getattr(loaded, attribute, None) == getattr(fresh, attribute, None)
    assert_close(loaded.fit(data()), fresh)  # it can be fitted anew


@pytest.mark.parametrize("name", ["ratings", "ratings-one-graph", "adam", "completion", "interactions"])
def test_a_loaded_file_knows_new_rows_reasons_and_deviations(name):
    loaded: Any = Recommender.load(FOLDER / f"{name}.air")
    fresh = MODELS[name]().fit(data())
    new = frame().iloc[:6].assign(user="eve")
    for one, other in zip(loaded.fold_in(new), fresh.fold_in(new), strict=True):
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-5, atol=1e-6)
    reasons = [model.explain(USERS[1], ITEMS[2]).items["contribution"] for model in (loaded, fresh)]
    np.testing.assert_allclose(*reasons, rtol=1e-4, atol=1e-6)
    assert loaded.knows_deviations_ == fresh.knows_deviations_
    if loaded.knows_deviations_:
        deviations = [model.predict(USERS, ITEMS[3], return_std=True)[1] for model in (loaded, fresh)]
        np.testing.assert_allclose(*deviations, **CLOSE)


@pytest.mark.parametrize("name", CUT)
def test_a_checkpoint_goes_on_to_what_the_release_came_to(name):
    model = MODELS[name]().fit(data(), resume_from=FOLDER / f"{name}.ckpt")
    assert_close(model, Recommender.load(FOLDER / f"{name}.air"))
    assert model.history_["epoch"].max() > CUT[name]


def test_a_checkpoint_of_plain_sweeps_goes_on_past_the_optimum(monkeypatch):
    monkeypatch.undo()
    model = MODELS["ratings"]().fit(data(), resume_from=FOLDER / "ratings.ckpt")
    difference = all_scores(model) - all_scores(Recommender.load(FOLDER / "ratings.air"))
    assert 0 < np.sqrt(np.mean(difference**2)) < DRAWN


def test_a_loaded_chain_knows_new_rows_reasons_and_deviations():
    loaded: Any = Recommender.load(FOLDER / "langevin.air")
    resumed: Any = MODELS["langevin"]().fit(data(), resume_from=FOLDER / "langevin.ckpt")
    new = frame().iloc[:6].assign(user="eve")
    expected, found = (
        model.fold_in(new).factors @ model.item_factors_.T + model.fold_in(new).biases[:, None]
        for model in (loaded, resumed)
    )
    assert np.sqrt(np.mean((found - expected) ** 2)) < DRAWN
    for model in (loaded, resumed):
        explanation = model.explain(USERS[1], ITEMS[2])
        assert explanation.total() == pytest.approx(explanation.score)
    one, other = (model.predict(USERS, ITEMS[3], return_std=True)[1] for model in (loaded, resumed))
    np.testing.assert_allclose(one, other, rtol=0.3)


@pytest.mark.parametrize("name", ["ratings", "langevin", "watched"])
def test_a_checkpoint_of_version_2_goes_on_as_well(name):
    model = MODELS[name]()
    if isinstance(model.solver, Sweeping):
        model.set_params(solver__pattern_features=100)  # the default then
    model.fit(data(), resume_from=FOLDER.parent / "checkpoints_version_2" / f"{name}.ckpt")
    assert_close(model, MODELS[name]().fit(data()))
    assert model.history_["epoch"].max() > CUT[name]


def test_a_checkpoint_of_other_parameters_is_refused_by_those_that_count():
    with pytest.raises(CheckpointError, match="was written with n_factors=3, found n_factors=2"):
        MODELS["ratings"]().set_params(n_factors=2).fit(data(), resume_from=FOLDER / "ratings.ckpt")
    with pytest.raises(CheckpointError, match="was written with solver__depth=2, found solver__depth=3"):
        MODELS["adam"]().set_params(solver__depth=3).fit(data(), resume_from=FOLDER / "adam.ckpt")
    with pytest.raises(CheckpointError, match="with solver__name='variational', found solver__name='langevin'"):
        AIR.for_ratings(solver="langevin", **SMALL).fit(data(), resume_from=FOLDER / "ratings.ckpt")


def test_a_parameter_that_there_is_no_more_is_named(tmp_path):
    with safe_open(FOLDER / "completion.air", framework="numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, not a dict
    metadata["parameters"] = json.dumps(json.loads(metadata["parameters"]) | {"dropout": 0.5})
    save_file(arrays, tmp_path / "model.air", metadata)
    with pytest.raises(ModelFileError, match="AIR has no parameter 'dropout' any more"):
        AIR.load(tmp_path / "model.air")
