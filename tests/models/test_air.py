"""`AIR`: presets and calls, validation, precision, chance, divergence, limits of scores and weights of ratings."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from model_cases import CPU, MODELS, USERS, by_paper, dense, fitted, frame, global_numpy_state, trained_models
from sklearn.base import clone

from air_recsys import AIR, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, DataWarning, DivergenceError
from air_recsys.metrics import average_precision, rmse
from air_recsys.models import KNN
from air_recsys.models.presets import PRESETS
from air_recsys.models.ratings import is_binary, limited, pushed
from air_recsys.models.solvers import (
    SOLVERS,
    Adam,
    Langevin,
    Sweeping,
    Variational,
    as_solver,
    parameter_names,
    solver_for,
)
from air_recsys.testing import all_scores

HISTORY = ["epoch", "fit", "user_energy", "item_energy", "decay", "further", "objective", "validation_rmse"]
HISTORY += ["learning_rate", "seconds", "noise"]


def small(**options: Any) -> Any:
    """An AIR model that is trained in no time, with some parameters changed."""
    return by_paper(**CPU | {"n_epochs": 60, "init_std": 0.1, "schedule": "constant"} | options)


# -------------------------------------------------------------------- presets and calls


@pytest.mark.parametrize("name", PRESETS)
def test_presets_differ_from_the_defaults_where_they_say_and_can_be_overridden(name):
    model, preset = getattr(AIR, f"for_{name}")(), PRESETS[name]
    assert model.get_params(deep=False) == AIR().get_params(deep=False) | preset.model | {"solver": model.solver}
    assert model.solver == SOLVERS[preset.solver](**preset.solvers.get(preset.solver, {}), **preset.unasked)
    assert AIR.of_preset(name).get_params() == model.get_params()
    changed = getattr(AIR, f"for_{name}")(n_factors=7, random_state=3)
    assert changed.get_params() == model.get_params() | {"n_factors": 7, "random_state": 3}
    for solver, values in preset.solvers.items():
        changed = getattr(AIR, f"for_{name}")(solver=solver, schedule="linear")
        assert changed.solver == SOLVERS[solver](**values | {"schedule": "linear"})


OF_ADAM_ALONE = {*parameter_names(Adam)} - {*parameter_names(Variational), "user_graph_reg", "item_graph_reg"}
NAMES = {"AIR": AIR, "Adam": Adam, "Variational": Variational, "Langevin": Langevin}
WRITTEN = [
    "AIR()",
    "AIR(device='cpu', n_factors=3)",
    "AIR(solver=Variational(n_sweeps=5))",
    "AIR.for_ratings(clip=False, random_state=0, n_sweeps=40)",
    "AIR.for_ratings(solver='langevin')",
    "AIR.for_ratings(graph_neighbors=None, graph_refresh=None)",
    "AIR.for_interactions(n_factors=20, n_epochs=300)",
    "AIR.auto(random_state=0)",
]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_model_is_shown_as_it_is_written(written):
    assert repr(eval(written, NAMES)) == written


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("AIR")])
def test_the_repr_is_a_call_that_makes_the_same_model(name):
    model = MODELS[name]()
    assert repr(eval(repr(model), NAMES).get_params()) == repr(model.get_params())
    assert repr(clone(model)) == repr(model) == repr(fitted(MODELS[name]))


def test_lines_of_a_repr_are_short_and_still_a_call():
    model = AIR.for_completion(n_factors=12, random_state=123456789, dtype="float64", patience=3, max_memory="16GB")
    model.set_params(validation_fraction=0.123456789, solver__learning_rate=0.01234567)
    lines = repr(model).splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 100
    assert repr(eval(repr(model), NAMES).get_params()) == repr(model.get_params())


def test_what_is_no_solver_and_no_number_is_shown_too():
    assert repr(AIR(solver="variational")) == "AIR(solver=Variational())"
    assert "solver=3" in repr(AIR(solver=3))
    assert repr(AIR.for_ratings(random_state=np.random.default_rng(0))).startswith("AIR.for_ratings(random_state=Gen")


@pytest.mark.parametrize(
    ("settings", "solver"),
    [
        ({}, "variational"),
        ({"n_sweeps": 3}, "variational"),
        ({"n_factors": 5, "clip": False, "adjacency": "global_sum"}, "variational"),
        ({"user_graph_reg": 0, "item_graph_reg": "auto"}, "variational"),
        ({"n_factors": None}, "adam"),
        ({"user_graph_reg": 1e-3}, "adam"),
        ({"depth": 3, "item_graph_reg": 0.5}, "adam"),
        *(({name: None}, "adam") for name in sorted(OF_ADAM_ALONE)),
    ],
)
def test_auto_is_the_solver_of_the_preset_that_reads_every_setting(settings, solver):
    assert as_solver(solver_for(settings)).name == solver
    parameters = AIR.for_ratings(solver=solver, **settings).get_params()
    assert {name: parameters.get(name, parameters.get(f"solver__{name}")) for name in settings} == settings


# -------------------------------------------------------------------- history and results


@trained_models
def test_history_is_the_course_of_training_in_numbers(make):
    model = fitted(make)
    history = model.history_
    assert list(history.columns) == HISTORY
    assert history["epoch"].iloc[-1] == model.n_iter_ == model.engine().n_steps(model.interactions_)
    assert model.device_ == "cpu"
    if isinstance(getattr(model, "solver", None), Sweeping):
        assert model.stopped_by_ == "n_sweeps"
        assert history["epoch"].iloc[0] == 1
        assert (history["noise"] > 0).all()
    else:
        assert model.stopped_by_ == "n_epochs"
        assert history["epoch"].iloc[0] == 0
        assert history["objective"].iloc[-1] < history["objective"].iloc[0]
    assert history["validation_rmse"].isna().all()


def test_weight_one_for_unobserved_pairs_is_training_on_zeros():
    pairs = dense() > 3
    options = {"n_factors": 4, "dtype": "float64"}
    weighted = small(unobserved_weight=1.0, **options).fit(np.where(pairs, 1.0, np.nan))
    zeros = small(**options).fit(pairs.astype(float))
    np.testing.assert_allclose(weighted.user_factors_, zeros.user_factors_, atol=1e-9)
    np.testing.assert_allclose(weighted.history_["objective"], zeros.history_["objective"], rtol=1e-9)


# -------------------------------------------------------------------- validation


def validation_split():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((30, 20)) < 0.7)
    ratings = np.where(rows % 2 == columns % 2, 4.5, 1.5) + rng.normal(size=rows.size)
    data = Interactions(rows, columns, ratings, range(30), range(20), allow_negative=True)
    held_out = rng.random(rows.size) < 0.2
    return data.select(~held_out), data.select(held_out)


@pytest.mark.parametrize("scale", [False, True])
def test_given_validation_ratings_are_watched_and_their_best_state_is_kept(scale):
    train, held_out = validation_split()
    options = CPU | {"n_epochs": 3000, "patience": 3, "weight_decay": 0.0, "n_factors": 8, "clip": False}
    records = []
    model = AIR.for_ratings(solver="adam", scale=scale, **options)
    model.fit(train, validation=held_out, callbacks=[records.append])
    assert [record.validation_rmse for record in records] == model.history_["validation_rmse"].tolist()
    best = model.history_.loc[model.history_["validation_rmse"].idxmin()]
    assert model.stopped_by_ == "patience"
    assert model.n_iter_ == best["epoch"] < 3000
    scores = model.predict(held_out.user_ids[held_out.user_index], held_out.item_ids[held_out.item_index])
    assert rmse(held_out.ratings, scores) == pytest.approx(best["validation_rmse"], rel=1e-5)
    assert model.interactions_.n_ratings == train.n_ratings
    with pytest.warns(DataWarning, match=f"^{train.n_ratings} of {train.n_ratings} ratings of the validation are in"):
        AIR.for_ratings(n_sweeps=1, **CPU).fit(train, validation=train)


def test_the_held_out_part_is_not_trained_on_and_its_best_state_is_kept():
    """An absurd rating cannot be learned in the fits that hold it out."""
    table = frame()
    table.loc[0, "rating"] = 50.0
    pair = table.loc[[0], "user"], table.loc[[0], "item"]
    options = {"n_epochs": 1000, "learning_rate": 6e-3, "validation_fraction": 0.5, "evaluate_every": 5}
    models = [small(random_state=seed, patience=20, **options).fit(table) for seed in range(3)]
    assert min(model.predict(*pair)[0] for model in models) < 10
    for model in models:
        history = model.history_.set_index("epoch")["validation_rmse"]
        assert model.n_iter_ == history.idxmin()
        assert model.stopped_by_ != "patience" or history.index[-1] == model.n_iter_ + 20 * 5
        assert model.interactions_.n_ratings == len(table)


def test_foreign_validation_ratings_are_refused_before_any_work():
    train, held_out = validation_split()
    foreign = Interactions.from_frame(held_out.to_frame().query("user > 3"), allow_negative=True)
    model = small()
    for given in (foreign, held_out.to_frame()):
        with pytest.raises(DataError, match="validation must"):
            model.fit(train, validation=given)
    assert not hasattr(model, "interactions_")
    model.fit(train)  # nothing of the failed call is left
    assert model.history_["validation_rmse"].isna().all()


# -------------------------------------------------------------------- precision, chance, divergence


@trained_models
def test_factors_have_the_precision_asked_for(make):
    for model, dtype in ((fitted(make), "float32"), (make(dtype="float64").fit(frame()), "float64")):
        for name in ("user_factors_", "item_factors_", "user_biases_", "item_biases_"):
            assert getattr(model, name).dtype == dtype
        assert all_scores(model).dtype == np.float64


@trained_models
def test_another_seed_gives_another_model_and_no_global_state_moves(make):
    torch_state, numpy_state = torch.get_rng_state(), global_numpy_state()
    other = make(random_state=1).fit(frame())
    assert not np.array_equal(other.user_factors_, fitted(make).user_factors_)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(global_numpy_state(), numpy_state)


def test_every_kind_of_random_state_is_chance_that_can_be_repeated_and_none_cannot():
    def factors(state):
        return small(n_epochs=5, validation_fraction=0.2, random_state=state).fit(frame()).user_factors_

    for kind in (int, np.int64, np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(factors(kind(3)), factors(kind(3)))
    np.testing.assert_array_equal(factors(3), factors(np.random.default_rng(3)))
    assert not np.array_equal(factors(None), factors(None))


@pytest.mark.parametrize("options", [{}, {"graph_neighbors": 3}, {"n_factors": 3, "biases": True}])
def test_divergence_names_the_epoch_and_the_remedy_and_leaves_a_model(options):
    model = small(evaluate_every=5, learning_rate=1e3, **options)
    message = r"training diverged: the objective is \S+ at epoch \d+ with learning_rate=1000; lower learning_rate"
    with pytest.raises(DivergenceError, match=message) as caught:
        model.fit(frame())
    assert f"The model holds the last good state, of epoch {model.n_iter_}" in str(caught.value)
    assert (model.stopped_by_, model.n_iter_) == ("divergence", caught.value.last_good_epoch)
    assert np.isfinite(all_scores(model)).all()
    assert np.isfinite(model.history_["objective"]).all()
    assert len(model.recommend(USERS[1], 2)) == 2
    assert np.isfinite(model.user_graph_.to_scipy().data).all()


# -------------------------------------------------------------------- limits: scores of 0/1 data are pushed to 0 and 1

FEW: dict[str, Any] = {"n_epochs": 60, **CPU}
PAIRS = np.divmod(np.arange(20 * 15), 15)


def groups(high: float = 1.0) -> Interactions:
    """Two groups of users, each with its items, and a third of the pairs hidden."""
    truth = np.where((PAIRS[0] % 2 == PAIRS[1] % 2).reshape(20, 15), high, 0.0)
    hidden = np.random.default_rng(0).random(truth.shape) < 1 / 3
    return Interactions.from_dense(np.where(hidden, np.nan, truth))


def scores(clip: Any, data: Interactions, **options: Any) -> np.ndarray:
    return AIR.for_interactions(clip=clip, **FEW | options).fit(data).predict(*PAIRS)


def test_pushing_keeps_the_order_and_ends_between_0_and_1():
    given = np.linspace(-0.3, 1.0, 200)
    found = pushed(given)
    assert (np.diff(found) > 0).all()
    assert 0 < found.min() < found.max() < 1
    np.testing.assert_array_equal(pushed(np.array([-1e6, 1e6])), [0, 1])
    given = np.array([-2.0, 0.4, 7.0])
    np.testing.assert_array_equal(limited(given, False, (0.0, 1.0), binary=True), given)
    np.testing.assert_array_equal(limited(given, True, (0.0, 1.0), binary=True), [0, 0.4, 1])
    for ratings, expected in (([0.0, 1, 1], True), ([1.0, 1], False), ([0.0, 0], False), ([0.0, 1, 2], False)):
        assert is_binary(np.array(ratings)) is expected


def test_pushed_scores_are_those_of_the_preset_and_rank_as_they_were():
    data = groups()
    raw, found = scores(False, data), scores("binary", data)
    np.testing.assert_allclose(found, pushed(raw))
    labels = PAIRS[0] % 2 == PAIRS[1] % 2
    assert average_precision(labels, found) == pytest.approx(average_precision(labels, raw))


@pytest.mark.parametrize("high", [0.5, 3.0])
def test_other_data_are_limited_to_their_range(high):
    data = groups(high)
    np.testing.assert_array_equal(scores("binary", data), scores(True, data))


def test_lists_and_explanations_agree_with_pushed_predictions():
    model = AIR.for_interactions(**FEW).fit(groups())
    listed = model.recommend(3, 15, exclude_seen=False)
    assert isinstance(listed, pd.DataFrame)
    np.testing.assert_allclose(listed["score"], model.predict(3, listed["item"]), atol=1e-6)
    assert (np.diff(listed["score"]) <= 0).all()
    assert model.explain(3, 4).score == pytest.approx(model.predict(3, 4)[0])


# -------------------------------------------------------------------- weights of ratings


def weighted(weights=None, keep=slice(None), noise=0.3):
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((20, 15)) < 0.6)
    ratings = np.where(rows % 2 == columns % 2, 4.0, 2.0) + noise * rng.normal(size=rows.size)
    weights = None if weights is None else weights(rows.size)[keep]
    return Interactions(
        rows[keep], columns[keep], ratings[keep], range(20), range(15), weights=weights, allow_negative=True
    )


@pytest.mark.parametrize("width", [3, None])
def test_a_weight_of_one_is_no_weight_and_a_weight_of_zero_is_no_rating(width):
    # With fixed strengths the number of ratings does not enter; the batches of more ratings are other batches.
    fixed = {"solver": "adam", "user_graph_reg": 1e-4, "item_graph_reg": 1e-4, "n_batches": 1, "dtype": "float64"}

    def factors(data):
        return AIR.for_ratings(n_factors=width, **FEW, **fixed).fit(data).user_factors_

    half = np.arange(weighted().n_ratings) % 2 == 0
    np.testing.assert_allclose(factors(weighted(np.ones)), factors(weighted()), rtol=1e-9, atol=1e-12)
    zeros = weighted(lambda n: half.astype(float))
    np.testing.assert_allclose(factors(zeros), factors(weighted(keep=half)), rtol=1e-7, atol=1e-10)


def test_what_a_rating_of_weight_zero_is_does_not_matter_and_little_weights_are_named():
    def scores(value: float) -> np.ndarray:
        ratings = np.where(np.arange(40) < 3, value, np.tile([5.0, 1, 4, 2, 3], 8))
        pairs, weights = np.divmod(np.arange(40), 5), (np.arange(40) >= 3).astype(float)
        data = Interactions(*pairs, ratings, range(8), range(5), weights=weights, rating_scale=(1, 5))
        return AIR.for_ratings(n_sweeps=8, n_factors=2, **CPU).fit(data).predict(*pairs)

    np.testing.assert_array_equal(scores(1.0), scores(5.0))
    with pytest.warns(DataWarning, match=r"^the largest weight of a rating is 0.05, .*: multiply the weights"):
        AIR.for_ratings(n_sweeps=1, **CPU).fit(weighted(lambda n: np.full(n, 0.05)))


@pytest.mark.parametrize("solver", ["adam", "variational", "langevin"])
def test_what_weighs_more_is_fitted_better(solver, tmp_path):
    heavy = np.arange(weighted().n_ratings) % 2 == 0
    data = weighted(lambda n: np.where(heavy, 10.0, 0.1), noise=1.5)
    steps = {"n_epochs": 100, "weight_decay": 1.0} if solver == "adam" else {}
    model = AIR.for_ratings(**CPU | steps, dtype="float64", solver=solver, n_factors=2).fit(data)
    error = np.abs(model.predict(data.user_ids[data.user_index], data.item_ids[data.item_index]) - data.ratings)
    assert error[heavy].mean() < 0.6 * error[~heavy].mean()
    loaded = AIR.load(model.save(tmp_path / "model.air"))
    np.testing.assert_array_equal(loaded.interactions_.weights, data.weights)


@pytest.mark.parametrize("model", [KNN(), BiasModel(), GlobalMean()], ids=lambda model: type(model).__name__)
def test_models_without_weights_refuse_them(model):
    with pytest.raises(DataError, match=f"{type(model).__name__} knows no weights"):
        model.fit(weighted(np.ones, noise=0))
