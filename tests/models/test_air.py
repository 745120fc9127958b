"""`AIR`: presets, what its parameters do, validation, precision, chance, divergence."""

from typing import Any

import numpy as np
import pytest
import torch
from model_cases import (
    CPU,
    ITEMS,
    MODELS,
    USERS,
    all_scores,
    by_paper,
    dense,
    frame,
    global_numpy_state,
    of_preset,
    trained_models,
)

from air_recsys import AIR, Interactions, SimilarityGraph
from air_recsys.exceptions import DataError, DivergenceError
from air_recsys.metrics import rmse
from air_recsys.models.presets import PRESETS
from air_recsys.models.solvers import SOLVERS, Sweeping

HISTORY = [
    "epoch",
    "fit",
    "user_energy",
    "item_energy",
    "decay",
    "further",
    "objective",
    "validation_rmse",
    "learning_rate",
    "seconds",
    "noise",
]


def small(**options: Any) -> Any:
    """An AIR model that is trained in no time, with some parameters changed."""
    return by_paper(**CPU | {"n_epochs": 60, "init_std": 0.1, "schedule": "constant"} | options)


# -------------------------------------------------------------------- presets


@pytest.mark.parametrize("name", PRESETS)
def test_presets_differ_from_the_defaults_where_they_say_and_can_be_overridden(name):
    model, preset = getattr(AIR, f"for_{name}")(), PRESETS[name]
    assert model.get_params(deep=False) == AIR().get_params(deep=False) | preset.model | {"solver": model.solver}
    assert model.solver == SOLVERS[preset.solver](**preset.solvers.get(preset.solver, {}))
    assert AIR.of_preset(name).get_params() == model.get_params()
    changed = getattr(AIR, f"for_{name}")(n_factors=7, random_state=3)
    assert changed.get_params() == model.get_params() | {"n_factors": 7, "random_state": 3}
    for solver, values in preset.solvers.items():
        changed = getattr(AIR, f"for_{name}")(solver=solver, schedule="linear")
        assert changed.solver == SOLVERS[solver](**values | {"schedule": "linear"})


@pytest.mark.parametrize("name", PRESETS)
def test_presets_fit_small_data(name):
    model = of_preset(name, 30).fit(dense())
    assert np.isfinite(model.predict(range(9), range(9))).all()
    assert model.user_graph_ is not None
    assert model.item_graph_ is not None


# -------------------------------------------------------------------- history and results


@trained_models
def test_history_is_the_course_of_training_in_numbers(make):
    model = make().fit(frame())
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


def test_fit_of_the_history_is_the_mean_squared_error_over_all_pairs():
    array = dense()
    model = small(scale=False).fit(array)
    users, items = np.nonzero(~np.isnan(array))
    squares = (model.predict(users, items) - array[users, items]) ** 2
    assert model.history_["fit"].iloc[-1] == pytest.approx(squares.sum() / array.size, rel=1e-4)


def test_energies_of_the_history_are_those_of_the_learned_graphs():
    model = small(scale=False, dtype="float64").fit(dense())
    completed = model.user_factors_ @ model.item_factors_.T
    last = model.history_.iloc[-1]
    for adjacency, rows, energy in (
        (model.user_adjacency_, completed, last["user_energy"]),
        (model.item_adjacency_, completed.T, last["item_energy"]),
    ):
        graph = SimilarityGraph(adjacency, range(len(rows)))
        assert energy == pytest.approx(np.trace(rows.T @ (graph.laplacian() @ rows)), rel=1e-9)


@pytest.mark.parametrize("biases", [False, True])
def test_scaling_is_undone(biases):
    """Ratings a hundred times larger give scores a hundred times larger; centring a shift gives a shift."""
    array = dense()
    base = small(biases=biases).fit(array)
    large = small(biases=biases).fit(100 * array)
    pairs = np.indices(array.shape).reshape(2, -1)
    np.testing.assert_allclose(large.predict(*pairs), 100 * base.predict(*pairs), rtol=1e-4)
    centred = small(center=True, scale=False).fit(array)
    shifted = small(center=True, scale=False).fit(array + 10)
    np.testing.assert_allclose(shifted.predict(*pairs), 10 + centred.predict(*pairs), rtol=1e-4)


@pytest.mark.parametrize(("side", "graph"), [("user", "user_graph_"), ("item", "item_graph_")])
def test_a_graph_of_no_strength_is_none_and_similarity_falls_back_to_the_factors(side, graph):
    model = small(**{f"{side}_graph_reg": 0.0}).fit(dense())
    assert getattr(model, graph) is None
    assert len(getattr(model, f"similar_{side}s")(0, 3)) == 3


def test_sparse_graphs_have_at_most_k_edges_chosen_by_each_node():
    model = small(graph_neighbors=2).fit(frame())
    assert len(USERS) <= model.user_graph_.n_edges <= 2 * len(USERS)
    assert len(ITEMS) <= model.item_graph_.n_edges <= 2 * len(ITEMS)


def test_clip_limits_predictions_to_the_range_of_the_ratings():
    options = {"n_epochs": 300, "weight_decay": 1e-3, "user_graph_reg": 0.0, "item_graph_reg": 0.0}
    free, clipped = (MODELS["AIR-ratings"](clip=clip, **options).fit(frame()) for clip in (False, True))
    assert all_scores(free).max() > 5
    np.testing.assert_array_equal(all_scores(clipped), all_scores(free).clip(1, 5))


@pytest.mark.parametrize("width", [None, 4])
def test_weight_one_for_unobserved_pairs_is_training_on_zeros(width):
    pairs = dense() > 3
    options = {"n_factors": width, "dtype": "float64"}
    weighted = small(unobserved_weight=1.0, **options).fit(np.where(pairs, 1.0, np.nan))
    zeros = small(**options).fit(pairs.astype(float))
    np.testing.assert_allclose(weighted.user_factors_, zeros.user_factors_, atol=1e-9)
    np.testing.assert_allclose(weighted.history_["objective"], zeros.history_["objective"], rtol=1e-9)


# -------------------------------------------------------------------- validation


def test_the_best_validation_state_is_kept():
    options = CPU | {
        "n_epochs": 400,
        "n_factors": 6,
        "n_batches": 1,
        "weight_decay": 0.0,
        "evaluate_every": 5,
        "clip": False,
    }
    model = AIR.for_ratings(validation_fraction=0.25, schedule="constant", solver="adam", **options).fit(frame())
    history = model.history_.set_index("epoch")["validation_rmse"]
    assert model.n_iter_ == history.idxmin()
    assert 0 < model.n_iter_ < 400
    assert model.interactions_.n_ratings == len(frame())
    patient = AIR.for_ratings(validation_fraction=0.25, schedule="constant", patience=4, solver="adam", **options).fit(
        frame()
    )
    assert patient.stopped_by_ == "patience"
    assert patient.history_["epoch"].iloc[-1] == patient.n_iter_ + 4 * 5


def test_validation_error_is_in_the_unit_of_the_ratings():
    options = {"validation_fraction": 0.25}
    first, second = small(**options).fit(dense()), small(**options).fit(10 * dense())
    expected = 10 * first.history_["validation_rmse"]
    np.testing.assert_allclose(second.history_["validation_rmse"], expected, rtol=1e-4)


def test_the_held_out_part_is_not_trained_on():
    """An absurd rating cannot be learned in the fits that hold it out."""
    table = frame()
    table.loc[0, "rating"] = 50.0
    pair = table.loc[[0], "user"], table.loc[[0], "item"]
    options = {"n_epochs": 2000, "learning_rate": 3e-3, "validation_fraction": 0.5}
    scores = [small(random_state=seed, **options).fit(table).predict(*pair)[0] for seed in range(3)]
    assert min(scores) < 10


def test_stopping_delta_and_callbacks_stop_training():
    by_delta = small(stopping_delta=1e9).fit(frame())
    assert (by_delta.stopped_by_, by_delta.n_iter_) == ("stopping_delta", 1)
    seen = []
    by_callback = small(evaluate_every=10).fit(frame(), callbacks=[seen.append, lambda record: record.epoch == 20])
    assert (by_callback.stopped_by_, by_callback.n_iter_) == ("callback", 20)
    assert [record.epoch for record in seen] == [0, 10, 20]


def test_a_bar_is_shown_only_where_asked_for(capsys):
    small().fit(dense())
    assert capsys.readouterr() == ("", "")
    small(verbose=True).fit(dense())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "60/60" in captured.err


# -------------------------------------------------------------------- precision and chance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@trained_models
def test_factors_have_the_precision_asked_for(make, dtype):
    model = make(dtype=dtype).fit(frame())
    for name in ("user_factors_", "item_factors_", "user_biases_", "item_biases_"):
        assert getattr(model, name).dtype == dtype
    assert all_scores(model).dtype == np.float64


@trained_models
def test_the_same_seed_gives_the_same_model_and_no_global_state_moves(make):
    torch_state, numpy_state = torch.get_rng_state(), global_numpy_state()
    first, again = make().fit(frame()), make().fit(frame())
    np.testing.assert_array_equal(first.user_factors_, again.user_factors_)
    np.testing.assert_array_equal(all_scores(first), all_scores(again))
    assert not np.array_equal(make(random_state=1).fit(frame()).user_factors_, first.user_factors_)
    assert torch.equal(torch.get_rng_state(), torch_state)
    np.testing.assert_array_equal(global_numpy_state(), numpy_state)


@pytest.mark.parametrize("kind", [int, np.int64, np.random.default_rng, np.random.RandomState])
def test_every_kind_of_random_state(kind):
    first, again = (small(validation_fraction=0.2, random_state=kind(3)).fit(frame()) for _ in range(2))
    np.testing.assert_array_equal(first.user_factors_, again.user_factors_)


def test_an_int_is_the_generator_of_that_seed_and_none_is_chance():
    by_int, by_generator = (small(random_state=state) for state in (5, np.random.default_rng(5)))
    np.testing.assert_array_equal(by_int.fit(frame()).user_factors_, by_generator.fit(frame()).user_factors_)
    one, other = (small(random_state=None).fit(frame()) for _ in range(2))
    assert not np.array_equal(one.user_factors_, other.user_factors_)


# -------------------------------------------------------------------- divergence


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


def test_negative_ratings_are_taken_where_the_interactions_allow_them():
    data = Interactions.from_dense(dense() - 3, allow_negative=True)
    model = small().fit(data)
    assert np.isfinite(model.predict(range(9), range(9))).all()
    assert np.isfinite(model.history_["objective"]).all()


def test_the_repr_shows_what_differs_from_the_defaults():
    assert repr(AIR(n_factors=3, device="cpu")) == "AIR(device='cpu', n_factors=3)"


def test_auto_strength_is_that_of_its_formula():
    data = frame()
    auto = MODELS["AIR-ratings"](user_graph_reg="auto", item_graph_reg="auto").fit(data).interactions_
    strength = 3 * auto.n_ratings / (auto.n_users * auto.n_items) ** 2
    models = [
        MODELS["AIR-ratings"](user_graph_reg=value, item_graph_reg=value).fit(data) for value in ("auto", strength)
    ]
    np.testing.assert_array_equal(all_scores(models[0]), all_scores(models[1]))


# -------------------------------------------------------------------- a validation part of the caller's


def validation_split():
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((30, 20)) < 0.7)
    ratings = np.where(rows % 2 == columns % 2, 4.5, 1.5) + rng.normal(size=rows.size)
    data = Interactions(rows, columns, ratings, range(30), range(20), allow_negative=True)
    held_out = rng.random(rows.size) < 0.2
    return data.select(~held_out), data.select(held_out)


def test_given_validation_ratings_are_watched_and_their_best_state_is_kept():
    train, held_out = validation_split()
    model = AIR.for_ratings(**CPU | {"n_epochs": 300}, weight_decay=0.0, n_factors=8, clip=False, solver="adam")
    model.fit(train, validation=held_out)
    best = model.history_.loc[model.history_.validation_rmse.idxmin()]
    assert model.n_iter_ == best.epoch < 300
    scores = model.predict(held_out.user_ids[held_out.user_index], held_out.item_ids[held_out.item_index])
    assert rmse(held_out.ratings, scores) == pytest.approx(best.validation_rmse, rel=1e-5)
    assert model.interactions_.n_ratings == train.n_ratings


@pytest.mark.parametrize("scale", [False, True])
def test_callbacks_see_what_history_holds(scale):
    train, held_out = validation_split()
    records = []
    model = AIR.for_ratings(**CPU, solver="adam", n_epochs=50, scale=scale)
    model.fit(train, validation=held_out, callbacks=[records.append])
    assert [record.validation_rmse for record in records] == model.history_.validation_rmse.tolist()


def test_given_validation_ratings_make_patience_possible():
    train, held_out = validation_split()
    model = AIR.for_ratings(**CPU | {"n_epochs": 3000}, weight_decay=0.0, patience=3, solver="adam").fit(
        train, validation=held_out
    )
    assert model.stopped_by_ == "patience"


def test_foreign_validation_ratings_are_refused_before_any_work():
    train, held_out = validation_split()
    foreign = Interactions.from_frame(held_out.to_frame().query("user > 3"), allow_negative=True)
    model = small()
    for given in (foreign, held_out.to_frame()):
        with pytest.raises(DataError, match="validation must"):
            model.fit(train, validation=given)
    assert not hasattr(model, "interactions_")
    model.fit(train)  # nothing of the failed call is left
    assert model.history_.validation_rmse.isna().all()
