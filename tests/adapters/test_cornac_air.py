"""`CornacAIR`: what it translates, what it learns, and what it refuses."""

import copy
import inspect
import pickle
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("cornac")

import cornac.models
from cornac.data import Dataset, FeatureModality, GraphModality
from cornac.eval_methods import BaseMethod, RatioSplit, rating_eval
from cornac.exception import ScoreException
from cornac.metrics import RMSE
from cornac.models.recommender import MEASURE_DOT, is_ann_supported

from air_recsys import AIR
from air_recsys.adapters.cornac import CornacAIR
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import (
    DataError,
    DataWarning,
    DivergenceError,
    NotFittedError,
    ParameterError,
)
from air_recsys.solvers import Adam, Variational

N_USERS, N_ITEMS = 20, 24
SMALL = {"n_factors": 4, "device": "cpu", "seed": 0}
STEPS = {"n_epochs": 60, "learning_rate": 0.1, "weight_decay": 1.0}


def triples(seed=0, n_users=N_USERS, n_items=N_ITEMS):
    """Noisy ratings of two tastes; the ids of the users are strings, those of the items integers."""
    rng = np.random.default_rng(seed)
    rated = np.argwhere(rng.random((n_users, n_items)) < 0.5)
    taste = np.where(rated.sum(1) % 2, 2.0, 4.0) + 0.5 * rng.standard_normal(len(rated))
    return [
        (f"u{user}", 100 + item, score) for (user, item), score in zip(rated.tolist(), taste.tolist(), strict=True)
    ]


def make(**parameters):
    return CornacAIR(**SMALL | parameters)


def split():
    return RatioSplit(triples(n_users=40, n_items=40), test_size=0.2, val_size=0.2, seed=0)


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def scores_of(model):
    return np.stack([model.score(user) for user in range(model.num_users)])


@pytest.fixture(scope="module")
def data():
    return Dataset.from_uir(triples())


@pytest.fixture(scope="module")
def fitted(data):
    return make().fit(data)


# -------------------------------------------------------------------- translation


def test_the_defaults_are_the_preset_for_ratings():
    defaults = {name: entry.default for name, entry in inspect.signature(CornacAIR.__init__).parameters.items()}
    expected = AIR.for_ratings().get_params()
    shared = (defaults.keys() & expected.keys()) - {"solver", "verbose"}
    assert {name: defaults[name] for name in shared} == {name: expected[name] for name in shared}
    model = CornacAIR(seed=5, verbose=True)._new_model()
    assert model.get_params() == AIR.for_ratings(random_state=5, verbose=True).get_params()
    assert defaults["solver"] == "auto"
    adam = CornacAIR(seed=5, solver="adam")._new_model()
    assert adam.get_params() == AIR.for_ratings(random_state=5, solver="adam", verbose=False).get_params()


def test_every_parameter_reaches_the_model(data):
    given = {
        "n_factors": 3,
        "depth": 3,
        "n_epochs": 7,
        "learning_rate": 0.03,
        "weight_decay": 2.0,
        "bias_decay": 0.5,
        "graph_neighbors": 6,
        "evaluate_every": 3,
        "device": "cpu",
    }
    further = {"schedule": "cooldown", "clip": False, "user_graph_reg": 1e-3, "item_graph_reg": 0.0}
    model = CornacAIR(**given, air_params=further, seed=4).fit(data)
    learned = model.model_.get_params(deep=False) | model.model_.solver.get_params()
    assert {name: learned[name] for name in given} == given
    assert {name: learned[name] for name in further} == further
    assert learned["random_state"] == 4
    assert model.model_.history_["epoch"].tolist() == [0, 3, 6, 7]


def test_the_default_is_the_posterior_of_the_preset(data, fitted):
    assert (fitted.solver, fitted.model_.solver, fitted.model_.stopped_by_) == ("auto", Variational(), "n_sweeps")
    np.testing.assert_array_equal(scores_of(fitted), scores_of(make(solver="variational").fit(data)))


@pytest.mark.parametrize(
    "setting",
    [{"n_factors": None}, {"weight_decay": 5.0}, {"air_params": {"center": False}}],
)
def test_settings_about_trained_scores_train_them(data, setting):
    model = make(**setting).fit(data)
    assert (model.solver, type(model.model_.solver)) == ("auto", Adam)
    np.testing.assert_array_equal(scores_of(model), scores_of(make(solver="adam", **setting).fit(data)))
    assert model.clone({name: SMALL.get(name) for name in setting}).fit(data).model_.solver == Variational()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_factors": None}, "Variational needs n_factors, a number or 'auto', found None"),
        ({"n_epochs": 3}, "Variational does not read n_epochs, Adam does"),
        ({"air_params": {"tv_reg": 0.1}}, "Variational does not read tv_reg, Adam does"),
    ],
)
def test_a_posterior_that_was_asked_for_refuses_them(data, setting, message):
    with fails(ParameterError, message):
        make(solver="variational", **setting).fit(data)


def test_it_is_the_model_that_air_trains_itself(data, fitted):
    own = AIR.for_ratings(**{name: value for name, value in SMALL.items() if name != "seed"}, random_state=0)
    own.set_params(clip=False).fit(fitted.model_.interactions_)
    for user in (0, 7):
        expected = own.predict(data.user_ids[user], data.item_ids)
        np.testing.assert_allclose(fitted.score(user), expected, rtol=1e-5)


def test_users_and_items_stand_in_the_order_of_cornac_under_their_raw_ids(data, fitted):
    interactions = fitted.model_.interactions_
    assert interactions.user_ids.tolist() == data.user_ids
    assert interactions.item_ids.tolist() == data.item_ids
    np.testing.assert_array_equal(interactions.to_csr().toarray(), data.csr_matrix.toarray())
    assert fitted.model_.user_graph_.ids.tolist() == data.user_ids
    assert fitted.model_.item_graph_.ids.tolist() == data.item_ids
    ours = fitted.model_.recommend("u3", 5, exclude_seen=False)["item"].tolist()
    assert fitted.recommend("u3", k=5) == ours


def test_maps_in_any_order_and_with_ids_of_a_test_set():
    users = np.array([0, 1, 2, 2])
    items = np.array([1, 0, 0, 1])
    maps = {"c": 2, "x": 3, "a": 0, "b": 1}, {"q": 1, "p": 0, "z": 2}
    data = Dataset(3, 2, *maps, (users, items, np.array([5.0, 1.0, 2.0, 4.0])))
    model = make(n_factors=1).fit(data)
    assert model.model_.interactions_.user_ids.tolist() == ["a", "b", "c"]
    assert model.model_.interactions_.item_ids.tolist() == ["p", "q"]
    assert model.total_users == 4
    assert model.score(0).shape == (2,)


def test_negative_ratings_are_ratings():
    shifted = [(user, item, rating - 3) for user, item, rating in triples()]
    model = make().fit(Dataset.from_uir(shifted))
    assert model.min_rating < 0
    assert scores_of(model).min() < 0


def test_positive_feedback_alone():
    ones = Dataset.from_uir([(user, item, 1.0) for user, item, rating in triples() if rating > 3])
    with pytest.warns(DataWarning, match="unobserved_weight"):
        make().fit(ones)
    params = {"unobserved_weight": 0.1, "biases": False, "center": False}
    model = make(n_epochs=150, learning_rate=0.1, weight_decay=0.1, air_params=params).fit(ones)
    scores = scores_of(model)
    seen = ones.csr_matrix.toarray() > 0
    assert scores[seen].mean() > scores[~seen].mean() + 0.2


# -------------------------------------------------------------------- scores


def test_a_pair_and_a_vector_agree(fitted):
    for user in (0, N_USERS - 1):
        scores = fitted.score(user)
        assert scores.shape == (N_ITEMS,)
        singles = [fitted.score(user, item) for item in range(N_ITEMS)]
        assert all(np.ndim(single) == 0 for single in singles)
        np.testing.assert_allclose(singles, scores, rtol=1e-5)


def test_unknown_users_and_items(fitted):
    for user in (N_USERS, -1, None):
        with fails(ScoreException, f"Can't make score prediction for user {user}"):
            fitted.score(user)
    for item in (N_ITEMS, -1):
        with fails(ScoreException, f"Can't make score prediction for item {item}"):
            fitted.score(0, item)
    assert fitted.rate(N_USERS, 0) == fitted.rate(0, N_ITEMS) == fitted.default_score() == fitted.global_mean


def test_rates_are_clipped_to_the_ratings_of_the_training_data(data):
    ratings = data.uir_tuple[2].clip(2.5, 3.5)
    model = make(**STEPS | {"weight_decay": 0.01}).fit(
        Dataset(N_USERS, N_ITEMS, data.uid_map, data.iid_map, (*data.uir_tuple[:2], ratings))
    )
    scores = scores_of(model)
    assert scores.max() > ratings.max()
    rates = [[model.rate(user, item).item() for item in range(N_ITEMS)] for user in range(N_USERS)]
    np.testing.assert_allclose(rates, scores.clip(ratings.min(), ratings.max()), rtol=1e-5)
    user, item = np.unravel_index(scores.argmax(), scores.shape)
    assert model.rate(user, item, clipping=False) == pytest.approx(scores.max())


def test_users_and_items_of_a_test_set_rank_last_and_are_rated_by_the_mean():
    part = triples(n_users=10, n_items=12)
    known = BaseMethod.from_splits(part, [*part, ("new", 500, 4.0), ("u1", 501, 3.0)], exclude_unknowns=False)
    model = make().fit(known.train_set)
    assert (model.num_users, model.total_users, model.num_items, model.total_items) == (10, 11, 12, 14)
    ranked, scores = model.rank(1, np.arange(14))
    assert scores[12] == scores[13] == model.score(1).min()
    assert ranked[0] == model.score(1).argmax()
    assert len(model.recommend("new", k=14)) == 14
    assert model.rate(10, 3) == model.global_mean
    assert np.isfinite(rating_eval(model, [RMSE()], known.test_set)[0][0])


@pytest.mark.order
@pytest.mark.parametrize("k", [-1, 1, 5, 24])
def test_scores_that_tie_rank_in_the_order_of_the_items(fitted, k):
    model = fitted.clone()
    model.__dict__.update(fitted.__dict__)
    factors, kind = fitted._factors, np.arange(N_ITEMS) % 3
    model._factors = factors._replace(item_factors=factors.item_factors[kind], item_biases=factors.item_biases[kind])
    for asked in (None, np.arange(N_ITEMS), np.arange(N_ITEMS)[::-1]):
        ranked, scores = model.rank(2, asked, k)
        np.testing.assert_allclose(scores, model.score(2)[slice(None) if asked is None else asked])
        assert sorted(ranked) == list(range(N_ITEMS))
        best = np.argsort(-model.score(2)[:3], kind="stable")
        expected = np.concatenate([np.arange(first, N_ITEMS, 3) for first in best])
        sure = N_ITEMS if k == -1 else k
        assert ranked[:sure].tolist() == expected[:sure].tolist()


def test_it_learns_the_tastes(fitted, data):
    users, items, ratings = data.uir_tuple
    scores = scores_of(fitted)[users, items]
    assert np.sqrt(np.mean((scores - ratings) ** 2)) < 0.6 * ratings.std()
    half = [100 + item for item in range(N_ITEMS) if item % 2 == 0]
    assert np.isin(fitted.recommend("u0", k=8), half).mean() >= 0.75


# -------------------------------------------------------------------- fitting


def test_fit_returns_the_model_and_a_second_fit_refits(data):
    model = make()
    assert model.fit(data) is model
    with pytest.warns(UserWarning, match="Model is already fitted"):
        model.fit(Dataset.from_uir(triples(seed=9, n_users=8, n_items=9)))
    assert model.score(0).shape == (9,)
    with pytest.warns(UserWarning, match="Model is already fitted"):
        model.fit(data)
    np.testing.assert_array_equal(scores_of(model), scores_of(make().fit(data)))


def test_the_seed_decides(data, fitted):
    np.testing.assert_array_equal(scores_of(make().fit(data)), scores_of(fitted))
    other = make(seed=1).fit(data)
    assert not np.array_equal(scores_of(other), scores_of(fitted))


def test_the_order_of_the_ratings_does_not_matter(fitted):
    shuffled = Dataset.from_uir(np.random.default_rng(0).permutation(np.array(triples(), dtype=object)))
    model = make().fit(shuffled)
    for user in ("u0", "u5"):
        expected = fitted.model_.predict(user, fitted.item_ids)
        assert np.corrcoef(model.model_.predict(user, fitted.item_ids), expected)[0, 1] > 0.9


def test_a_validation_set_alone_changes_nothing(fitted):
    both = split()
    alone = make().fit(both.train_set)
    np.testing.assert_array_equal(scores_of(make().fit(both.train_set, both.val_set)), scores_of(alone))


@pytest.mark.parametrize("ratings", [[("a", "x", 3.0), ("b", "y", 5.0)], [("a", "x", 3.0), ("a", "y", 5.0)]])
def test_two_ratings(ratings):
    model = make().fit(Dataset.from_uir(ratings))
    assert np.isfinite(scores_of(model)).all()


def test_one_rating():
    with pytest.warns(DataWarning, match="all 1 rating"):
        model = make().fit(Dataset.from_uir([("a", "x", 3.0)]))
    assert model.score(0, 0) == pytest.approx(3.0, abs=0.01)
    assert model.recommend("a") == ["x"]


# -------------------------------------------------------------------- early stopping


def stopped(both, **parameters):
    rule = {"min_delta": 0.0, "patience": 2}
    steps = STEPS | {"n_epochs": 400, "evaluate_every": 5, "learning_rate": 0.02}
    model = make(early_stopping=rule, **steps, **parameters)
    return model.fit(both.train_set, both.val_set)


def test_early_stopping_stops_and_keeps_the_best_state(capsys):
    both = split()
    model = stopped(both)
    assert "Early stopping" in capsys.readouterr().out
    assert 0 < model.best_epoch < model.stopped_epoch < 400
    assert model.stopped_epoch - model.best_epoch == 2 * 5
    history = model.model_.history_
    assert model.model_.stopped_by_ == "callback"
    assert history["epoch"].iloc[-1] == model.stopped_epoch
    assert model.model_.n_iter_ == history["epoch"][history["validation_rmse"].argmin()] == model.best_epoch
    assert model.monitor_value(both.train_set, both.val_set) == pytest.approx(model.best_value)
    assert -model.best_value == pytest.approx(history["validation_rmse"].min(), rel=1e-5)
    ours = model.model_.predict(model.user_ids[0], model.item_ids[: model.num_items])
    np.testing.assert_allclose(model.score(0).clip(model.min_rating, model.max_rating), ours, rtol=1e-5)
    pickle.dumps(model)
    make(n_epochs=10).fit(both.train_set)  # a later model starts afresh
    assert model.model_.interactions_.n_ratings == both.train_set.num_ratings


def test_a_gain_below_min_delta_is_none():
    both = split()
    model = make(early_stopping={"min_delta": 100.0, "patience": 3}, evaluate_every=5).fit(
        both.train_set, both.val_set
    )
    assert (model.best_epoch, model.stopped_epoch) == (0, 15)


@pytest.mark.parametrize("known", [True, False])
def test_without_a_validation_set_training_runs_to_its_end(known):
    strangers = Dataset.from_uir([("x", 1, 3.0), ("y", 2, 4.0)])
    strangers.uir_tuple = (np.array([90, 91]), np.array([90, 91]), np.array([3.0, 4.0]))
    model = make(early_stopping={"patience": 1})
    model.fit(split().train_set, None if known else strangers)
    assert model.model_.n_iter_ == 12
    assert model.monitor_value(model.train_set, model.val_set) is None


def test_the_monitored_value_is_the_error_of_the_scores(fitted):
    both = split()
    model = make().fit(both.train_set)
    users, items, ratings = both.val_set.uir_tuple
    scores = np.array([model.score(user, item) for user, item in zip(users, items, strict=True)])
    expected = -np.sqrt(np.mean((scores - ratings) ** 2))
    assert model.monitor_value(both.train_set, both.val_set) == pytest.approx(expected, rel=1e-5)


def test_a_subclass_may_monitor_what_it_likes():
    class Watching(CornacAIR):
        def monitor_value(self, train_set, val_set):
            values.append(self.score(0, 0))
            return len(values) if len(values) < 4 else 0.0

    values = []
    both = split()
    model = Watching(n_factors=4, evaluate_every=5, device="cpu", seed=0, early_stopping={"patience": 1})
    model.fit(both.train_set, both.val_set)
    assert (model.best_epoch, model.stopped_epoch) == (10, 15)
    assert len(set(values)) == 4  # scores of the moment


# -------------------------------------------------------------------- copies and files


def test_clone_takes_every_parameter(fitted):
    given = {name: entry.default for name, entry in inspect.signature(CornacAIR.__init__).parameters.items()}
    given = {name: value for name, value in given.items() if name != "self"}
    given |= {
        "name": "mine",
        "air_params": {"dtype": "float64"},
        "early_stopping": {"patience": 3},
        "trainable": False,
    }
    model = CornacAIR(**given)
    twin = model.clone()
    assert {name: getattr(twin, name) for name in given} == given
    assert twin.air_params is not model.air_params
    changed = model.clone({"n_factors": 2, "name": "other"})
    assert (changed.n_factors, changed.name, changed.depth) == (2, "other", model.depth)
    assert not fitted.clone().is_fitted


def test_a_clone_with_the_types_of_a_search(data):
    drawn = {"n_factors": np.int64(3), "weight_decay": np.float64(2.0), "air_params": {"schedule": np.str_("linear")}}
    assert make().clone(drawn).fit(data).model_.user_factors_.shape == (N_USERS, 3)


def test_copies_score_alike_and_carry_no_data_sets(fitted):
    twin = copy.deepcopy(fitted)
    np.testing.assert_array_equal(scores_of(twin), scores_of(fitted))
    assert not hasattr(twin, "train_set")
    assert twin.recommend("u2", k=3) == fitted.recommend("u2", k=3)


# Cornac leaves it to the interpreter to close the files that it opens.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_save_and_load(fitted, data, tmp_path):
    path = fitted.save(str(tmp_path), save_trainset=True)
    for source in (path, str(tmp_path / "AIR")):
        loaded = CornacAIR.load(source)
        np.testing.assert_array_equal(scores_of(loaded), scores_of(fitted))
        assert loaded.recommend("u2", k=3) == fitted.recommend("u2", k=3)
        assert loaded.model_.item_graph_.neighbors(101, 3).equals(fitted.model_.item_graph_.neighbors(101, 3))
    assert b"torch" not in Path(path).read_bytes()  # nothing in it is bound to a device


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_loaded_model_keeps_what_it_learned(data, fitted, tmp_path):
    loaded = CornacAIR.load(fitted.save(str(tmp_path)))
    assert loaded.trainable is False
    with pytest.warns(UserWarning, match="Model is already fitted"):
        loaded.fit(data)
    np.testing.assert_array_equal(scores_of(loaded), scores_of(fitted))
    with fails(DataError, "trainable=False and knows 20 users and 24 items; expected a train_set with the same ids"):
        loaded.fit(Dataset.from_uir(triples()[::-1]))
    assert loaded.num_users == N_USERS
    again = CornacAIR.load(fitted.save(str(tmp_path)), trainable=True)
    other = Dataset.from_uir(triples(seed=3))
    with pytest.warns(UserWarning, match="Model is already fitted"):
        again.fit(other)
    np.testing.assert_array_equal(scores_of(again), scores_of(make().fit(other)))


def test_a_file_of_our_own_holds_the_model_too(fitted, tmp_path):
    model = AIR.load(fitted.model_.save(tmp_path / "model.safetensors"))
    expected = fitted.model_.predict("u4", fitted.item_ids)
    np.testing.assert_array_equal(model.predict("u4", fitted.item_ids), expected)


def test_new_ratings_for_the_model_do_not_change_what_cornac_sees(data):
    model, untouched = make().fit(data), make().fit(data)
    model.model_.partial_fit(pd.DataFrame({"user": ["u0", "new"], "item": [100, 999], "rating": [1.0, 5.0]}))
    assert model.model_.interactions_.n_users == N_USERS + 1
    np.testing.assert_array_equal(scores_of(model), scores_of(untouched))
    model.trainable = False
    with pytest.warns(UserWarning, match="Model is already fitted"):
        model.fit(data)


# -------------------------------------------------------------------- nearest neighbours


def test_vectors_rank_as_the_scores(fitted):
    assert is_ann_supported(fitted)
    assert fitted.get_vector_measure() == MEASURE_DOT
    users, items = fitted.get_user_vectors(), fitted.get_item_vectors()
    assert users.dtype == items.dtype == np.float32
    products, scores = users @ items.T, scores_of(fitted)
    differences = scores - products
    np.testing.assert_allclose(differences, np.broadcast_to(differences[:, :1], scores.shape), atol=1e-4)


def test_faiss_behind_cornac_finds_the_same_items(fitted, data):
    pytest.importorskip("faiss")
    index = cornac.models.FaissANN(fitted, nlist=1, nprobe=1, num_threads=1, seed=0)
    with pytest.warns(UserWarning, match="Model is already fitted"):
        index.fit(data)
    users = ["u0", "u7", "u19"]
    assert index.recommend_batch(users, k=5) == [fitted.recommend(user, k=5) for user in users]


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize("method", ["get_user_vectors", "get_item_vectors"])
def test_an_unfitted_model_has_no_vectors(method):
    with fails(NotFittedError, "AIR is not trained yet"):
        getattr(make(), method)()


@pytest.mark.parametrize("call", [("score", 0), ("score", 0, 1), ("rate", 0, 1), ("rank", 0)])
def test_an_unfitted_model_scores_nothing(call):
    method, *arguments = call
    with fails(NotFittedError, "AIR is not trained yet: call fit with trainable=True, or load a model"):
        getattr(make(), method)(*arguments)


def test_an_untrained_model_cannot_be_frozen(data):
    model = make(trainable=False)
    with fails(NotFittedError, "call fit with trainable=True"):
        model.fit(data)
    assert not model.is_fitted


@pytest.mark.parametrize("rule", [True, "patience", {"patience": 2, "delta": 1}, [("patience", 2)]])
def test_early_stopping_is_a_dict_of_two(data, rule):
    with fails(ParameterError, "early_stopping must be None or a dict with min_delta and patience"):
        make(early_stopping=rule).fit(data)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"patience": -1}, "patience of early_stopping must be an integer >= 0, found -1"),
        ({"patience": 1.5}, "patience of early_stopping must be an integer >= 0, found 1.5"),
        ({"min_delta": "0"}, "min_delta of early_stopping must be a number >= 0, found '0'"),
    ],
)
def test_early_stopping_in_range(data, rule, message):
    with fails(ParameterError, message):
        make(early_stopping=rule).fit(data)


@pytest.mark.parametrize("params", [{"n_factors": 3}, {"random_state": 1}, {"verbose": True}, ["clip"], "clip"])
def test_air_params_are_parameters_that_are_not_our_own(data, params):
    message = "air_params must be a dict of parameters of AIR and its solvers that are not parameters of CornacAIR (n"
    with fails(ParameterError, message):
        make(air_params=params).fit(data)


def test_air_params_that_nobody_reads_are_refused(data):
    with fails(ParameterError, "no parameter of AIR or of its solvers is called 'k'"):
        make(air_params={"k": 3}).fit(data)


@pytest.mark.parametrize("parameters", [{"n_factors": 0}, {"depth": 1}, {"learning_rate": -1.0}, {"n_epochs": 0}])
def test_a_fit_that_fails_leaves_no_half_of_two_models(data, parameters):
    model = make().fit(data)
    (name,) = parameters
    setattr(model, name, parameters[name])
    with pytest.warns(UserWarning, match="Model is already fitted"), fails(ParameterError, name):
        model.fit(data)
    assert not model.is_fitted
    with fails(NotFittedError, "not trained yet"):
        model.score(0)


def test_a_training_that_diverges_leaves_nothing_to_score():
    both = split()
    model = make(n_epochs=60, learning_rate=1e6, early_stopping={"patience": 100}, evaluate_every=1)
    with pytest.raises(DivergenceError, match="training diverged"):
        model.fit(both.train_set, both.val_set)
    assert not model.is_fitted
    with fails(NotFittedError, "not trained yet"):
        model.score(0)


def test_an_empty_train_set_is_refused_by_cornac():
    with pytest.raises(ValueError, match="data is empty"):
        Dataset.from_uir([])


def test_ratings_that_cannot_be_used():
    with fails(DataError, "ratings must be finite"):
        make().fit(Dataset.from_uir([("a", "x", float("nan")), ("b", "y", 1.0)]))


# -------------------------------------------------------------------- real data


@pytest.mark.data
def test_movielens_beside_the_models_of_cornac(data_root):
    frame = load_movielens(data_root, "100k").to_frame()
    rows = frame[["user", "item", "rating"]].itertuples(index=False, name=None)
    both = RatioSplit(list(rows), test_size=0.2, exclude_unknowns=True, seed=0)
    models = [CornacAIR(seed=0, device="cpu"), cornac.models.MF(seed=0), cornac.models.BaselineOnly(seed=0)]
    errors = [rating_eval(model.fit(both.train_set), [RMSE()], both.test_set)[0][0] for model in models]
    assert errors[0] < min(errors[1:]) - 0.03
    assert errors[0] < 0.90


def test_features_of_an_experiment_enter_the_prior():
    rows = triples()
    ids = sorted({item for _, item, _ in rows})
    features = FeatureModality(np.arange(len(ids), dtype=float)[:, None], ids=ids)
    method = RatioSplit(data=rows, test_size=0.2, seed=1, item_feature=features)
    model = make().fit(method.train_set)
    known = model.model_.interactions_.item_features
    assert known is not None
    assert known.names == ["0"]
    places = [ids.index(raw) for raw in model.model_.interactions_.item_ids]
    assert np.corrcoef(places, known.values[:, 0])[0, 1] == pytest.approx(1)


def test_graphs_of_an_experiment_enter_the_prior():
    rows = triples()
    ids = sorted({item for _, item, _ in rows})
    edges = [(first, second, 1.0) for first, second in pairwise(ids[:-1])]  # of one direction
    method = RatioSplit(data=rows, test_size=0.2, seed=1, item_graph=GraphModality(data=edges))
    model = make(air_params={"item_graph_strength": 0.5}).fit(method.train_set)
    data = model.model_.interactions_
    assert data.has_places == (False, True)
    assert model.model_.item_graph_strength_ == 0.5
    has_place = data.item_features.places.any(axis=1)
    for place, raw in enumerate(data.item_ids):
        neighbors = {ids[k] for k in (ids.index(raw) - 1, ids.index(raw) + 1) if 0 <= k < len(ids) - 1}
        assert has_place[place] == (raw != ids[-1] and bool(neighbors & set(data.item_ids)))
