"""`CornacAIR`: what it translates, what it learns, and what it refuses."""

import copy
import inspect
import pickle
from itertools import pairwise
from pathlib import Path

import cornac.models
import numpy as np
import pandas as pd
import pytest
from cornac.data import Dataset, FeatureModality, GraphModality
from cornac.eval_methods import BaseMethod, RatioSplit, rating_eval
from cornac.exception import ScoreException
from cornac.metrics import RMSE
from cornac.models.recommender import MEASURE_DOT, is_ann_supported
from host_cases import fails

from air_recsys import AIR
from air_recsys.adapters.cornac import CornacAIR
from air_recsys.datasets import load_movielens
from air_recsys.exceptions import DataError, DivergenceError, NotFittedError, ParameterError
from air_recsys.solvers import Adam, Variational

N_USERS, N_ITEMS = 20, 24
SMALL = {"n_factors": 4, "device": "cpu", "seed": 0}
refits = pytest.mark.filterwarnings("ignore:Model is already fitted")  # Cornac's own, at each second fit
# Cornac leaves it to the interpreter to close the files that it opens.
leaves_files_open = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


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


def scores_of(model):
    return np.stack([model.score(user) for user in range(model.num_users)])


@pytest.fixture(scope="module")
def data():
    return Dataset.from_uir(triples())


@pytest.fixture(scope="module")
def fitted(data):
    return make().fit(data)


def test_the_defaults_are_the_preset_for_ratings():
    defaults = {name: entry.default for name, entry in inspect.signature(CornacAIR.__init__).parameters.items()}
    expected = AIR.for_ratings().get_params()
    shared = (defaults.keys() & expected.keys()) - {"solver", "verbose"}
    assert {name: defaults[name] for name in shared} == {name: expected[name] for name in shared}
    assert defaults["solver"] == "auto"


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


def test_the_default_is_the_posterior_that_air_trains_itself_under_the_raw_ids(data, fitted):
    assert (fitted.solver, fitted.model_.solver, fitted.model_.stopped_by_) == (
        "auto",
        Variational(n_sweeps="auto"),
        "n_sweeps",
    )
    own = AIR.for_ratings(n_factors=4, device="cpu", random_state=0, clip=False).fit(fitted.model_.interactions_)
    for user in (0, 7):
        expected = own.predict(data.user_ids[user], data.item_ids)
        np.testing.assert_allclose(fitted.score(user), expected, rtol=1e-5)
    interactions = fitted.model_.interactions_
    assert (interactions.user_ids.tolist(), interactions.item_ids.tolist()) == (data.user_ids, data.item_ids)
    np.testing.assert_array_equal(interactions.to_csr().toarray(), data.csr_matrix.toarray())
    ours = fitted.model_.recommend("u3", 5, exclude_seen=False)["item"].tolist()
    assert fitted.recommend("u3", k=5) == ours


@pytest.mark.parametrize("setting", [{"weight_decay": 5.0}, {"air_params": {"center": False}}])
def test_settings_about_trained_scores_train_them(data, setting):
    setting = setting | {"n_epochs": 5}
    model = make(**setting).fit(data)
    assert (model.solver, type(model.model_.solver)) == ("auto", Adam)
    assert model.clone(dict.fromkeys(setting)).fit(data).model_.solver == Variational(n_sweeps="auto")
    with fails(ParameterError, "Variational does not read n_epochs, Adam does"):
        make(solver="variational", n_epochs=5).fit(data)


def test_maps_in_any_order_with_ids_of_a_test_set_and_negative_ratings():
    users = np.array([0, 1, 2, 2])
    items = np.array([1, 0, 0, 1])
    maps = {"c": 2, "x": 3, "a": 0, "b": 1}, {"q": 1, "p": 0, "z": 2}
    data = Dataset(3, 2, *maps, (users, items, np.array([-5.0, -1.0, -2.0, -4.0])))
    model = make(n_factors=1).fit(data)
    assert model.model_.interactions_.user_ids.tolist() == ["a", "b", "c"]
    assert model.model_.interactions_.item_ids.tolist() == ["p", "q"]
    assert model.total_users == 4
    assert model.score(0).shape == (2,)
    assert model.score(0).max() < 0


def test_a_pair_and_a_vector_agree_and_unknown_ones_have_the_mean(fitted):
    for user in (0, N_USERS - 1):
        scores = fitted.score(user)
        assert scores.shape == (N_ITEMS,)
        singles = [fitted.score(user, item) for item in range(N_ITEMS)]
        assert all(np.ndim(single) == 0 for single in singles)
        np.testing.assert_allclose(singles, scores, rtol=1e-5)
    for user in (N_USERS, -1, None):
        with fails(ScoreException, f"Can't make score prediction for user {user}"):
            fitted.score(user)
    with fails(ScoreException, "expected indices, as uid_map and iid_map have for raw ids, found 'u1'"):
        fitted.score("u1")
    for item in (N_ITEMS, -1):
        with fails(ScoreException, f"Can't make score prediction for item {item}"):
            fitted.score(0, item)
    assert fitted.rate(N_USERS, 0) == fitted.rate(0, N_ITEMS) == fitted.default_score() == fitted.global_mean


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
    class Tied(CornacAIR):
        def score(self, user_idx, item_idx=None):
            """Every third item is the same."""
            scores = super().score(user_idx)[np.arange(N_ITEMS) % 3]
            return scores if item_idx is None else scores[item_idx]

    model = Tied(**SMALL)
    model.__dict__.update(fitted.__dict__)
    for asked in (None, np.arange(N_ITEMS), np.arange(N_ITEMS)[::-1]):
        ranked, scores = model.rank(2, asked, k)
        np.testing.assert_allclose(scores, model.score(2)[slice(None) if asked is None else asked])
        assert sorted(ranked) == list(range(N_ITEMS))
        best = np.argsort(-model.score(2)[:3], kind="stable")
        expected = np.concatenate([np.arange(first, N_ITEMS, 3) for first in best])
        sure = N_ITEMS if k == -1 else k
        assert ranked[:sure].tolist() == expected[:sure].tolist()
    assert model.rank(2, np.array([], dtype=int), k)[0].size == 0


@refits
def test_fit_returns_the_model_and_a_second_fit_refits(data, fitted):
    model = make()
    assert model.fit(Dataset.from_uir(triples(seed=9, n_users=8, n_items=9))) is model
    assert model.score(0).shape == (9,)
    np.testing.assert_array_equal(scores_of(model.fit(data)), scores_of(fitted))
    assert not np.array_equal(scores_of(make(seed=1).fit(data)), scores_of(fitted))


def test_a_validation_set_alone_changes_nothing_and_is_monitored():
    both = split()
    model = make().fit(both.train_set)
    np.testing.assert_array_equal(scores_of(make().fit(both.train_set, both.val_set)), scores_of(model))
    users, items, ratings = both.val_set.uir_tuple
    scores = np.array([model.score(user, item) for user, item in zip(users, items, strict=True)])
    expected = -np.sqrt(np.mean((scores - ratings) ** 2))
    assert model.monitor_value(both.train_set, both.val_set) == pytest.approx(expected, rel=1e-5)


def test_early_stopping_stops_and_keeps_the_best_state(capsys):
    both, rule = split(), {"min_delta": 0.0, "patience": 2}
    steps = {"n_epochs": 400, "evaluate_every": 5, "learning_rate": 0.02, "weight_decay": 1.0}
    model = make(early_stopping=rule, **steps).fit(both.train_set, both.val_set)
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


@pytest.mark.parametrize("known", [True, False])
def test_without_a_validation_set_training_runs_to_its_end_and_a_gain_below_min_delta_is_none(known):
    strangers = Dataset.from_uir([("x", 1, 3.0), ("y", 2, 4.0)])
    strangers.uir_tuple = (np.array([90, 91]), np.array([90, 91]), np.array([3.0, 4.0]))
    model = make(early_stopping={"patience": 1})
    model.fit(split().train_set, None if known else strangers)
    assert model.model_.n_iter_ == 12
    assert model.monitor_value(model.train_set, model.val_set) is None
    both = split()
    stopped = make(early_stopping={"min_delta": 100.0, "patience": 3}, evaluate_every=5)
    stopped.fit(both.train_set, both.val_set)
    assert (stopped.best_epoch, stopped.stopped_epoch) == (0, 15)


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


def test_clone_takes_every_parameter_also_of_the_types_of_a_search(fitted, data):
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
    with fails(ParameterError, "found n_factor"):
        model.clone({"n_factor": 3})
    changed = model.clone({"n_factors": 2, "name": "other"})
    assert (changed.n_factors, changed.name, changed.depth) == (2, "other", model.depth)
    assert not fitted.clone().is_fitted
    drawn = {"n_factors": np.int64(3), "weight_decay": np.float64(2.0), "air_params": {"schedule": np.str_("linear")}}
    assert make(n_epochs=2).clone(drawn).fit(data).model_.user_factors_.shape == (N_USERS, 3)


@refits
@leaves_files_open
def test_a_loaded_model_keeps_what_it_learned_until_it_is_trainable(data, fitted, tmp_path):
    path = fitted.save(str(tmp_path), save_trainset=True)
    assert b"torch" not in Path(path).read_bytes()  # nothing in it is bound to a device
    loaded, twin = CornacAIR.load(str(tmp_path / "AIR")), copy.deepcopy(fitted)
    assert not hasattr(twin, "train_set")
    for each in (loaded, twin):
        np.testing.assert_array_equal(scores_of(each), scores_of(fitted))
        assert each.recommend("u2", k=3) == fitted.recommend("u2", k=3)
    assert loaded.model_.item_graph_.neighbors(101, 3).equals(fitted.model_.item_graph_.neighbors(101, 3))
    assert loaded.trainable is False
    np.testing.assert_array_equal(scores_of(loaded.fit(data)), scores_of(fitted))
    with fails(DataError, "trainable=False and knows 20 users and 24 items; expected a train_set with the same ids"):
        loaded.fit(Dataset.from_uir(triples()[::-1]))
    assert loaded.num_users == N_USERS
    again, other = CornacAIR.load(path, trainable=True), Dataset.from_uir(triples(seed=3))
    np.testing.assert_array_equal(scores_of(again.fit(other)), scores_of(make().fit(other)))


@refits
def test_new_ratings_for_the_model_do_not_change_what_cornac_sees(data, fitted):
    model = make().fit(data)
    model.model_.partial_fit(pd.DataFrame({"user": ["u0", "new"], "item": [100, 999], "rating": [1.0, 5.0]}))
    assert model.model_.interactions_.n_users == N_USERS + 1
    np.testing.assert_array_equal(scores_of(model), scores_of(fitted))
    model.trainable = False
    model.fit(data)


@refits
def test_vectors_rank_as_the_scores_so_that_faiss_behind_cornac_finds_the_same_items(fitted, data):
    assert is_ann_supported(fitted)
    assert fitted.get_vector_measure() == MEASURE_DOT
    users, items = fitted.get_user_vectors(), fitted.get_item_vectors()
    assert users.dtype == items.dtype == np.float32
    differences = scores_of(fitted) - users @ items.T  # the same for all items of a user
    np.testing.assert_allclose(differences, np.broadcast_to(differences[:, :1], differences.shape), atol=1e-4)
    pytest.importorskip("faiss")
    index = cornac.models.FaissANN(fitted, nlist=1, nprobe=1, num_threads=1, seed=0)
    index.fit(data)
    users = ["u0", "u7", "u19"]
    assert index.recommend_batch(users, k=5) == [fitted.recommend(user, k=5) for user in users]


def test_an_unfitted_model_answers_nothing_and_cannot_be_frozen(data):
    for method, *arguments in (
        ("get_user_vectors",),
        ("get_item_vectors",),
        ("score", 0),
        ("score", 0, 1),
        ("rate", 0, 1),
        ("rank", 0),
    ):
        with fails(NotFittedError, "AIR is not trained yet: call fit with trainable=True, or load a model"):
            getattr(make(), method)(*arguments)
    model = make(trainable=False)
    with fails(NotFittedError, "call fit with trainable=True"):
        model.fit(data)
    assert not model.is_fitted


OF_AIR = "air_params must be a dict of parameters of AIR and its solvers that are not parameters of CornacAIR (n"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"early_stopping": True}, "early_stopping must be None or a dict with min_delta and patience"),
        ({"early_stopping": {"delta": 1}}, "early_stopping must be None or a dict with min_delta and patience"),
        ({"early_stopping": {"patience": -1}}, "patience of early_stopping must be an integer >= 0, found -1"),
        ({"early_stopping": {"min_delta": "0"}}, "min_delta of early_stopping must be a number >= 0, found '0'"),
        ({"air_params": {"n_factors": 3}}, OF_AIR),
        ({"air_params": {"random_state": 1}}, OF_AIR),
        ({"air_params": ["clip"]}, OF_AIR),
        ({"air_params": {"k": 3}}, "no parameter of AIR or of its solvers is called 'k'"),
    ],
)
def test_parameters_out_of_range_are_refused(data, parameters, message):
    with fails(ParameterError, message):
        make(**parameters).fit(data)


@refits
def test_a_fit_that_fails_leaves_no_half_of_two_models(data):
    model, both = make().fit(data), split()
    model.n_factors = 0
    with fails(ParameterError, "n_factors"):
        model.fit(data)
    diverging = make(n_epochs=60, learning_rate=1e6, early_stopping={"patience": 100}, evaluate_every=1)
    with fails(DivergenceError, "training diverged"):
        diverging.fit(both.train_set, both.val_set)
    for each in (model, diverging):
        assert not each.is_fitted
        with fails(NotFittedError, "not trained yet"):
            each.score(0)
    with fails(DataError, "ratings must be finite"):
        make().fit(Dataset.from_uir([("a", "x", float("nan")), ("b", "y", 1.0)]))


@pytest.mark.data
def test_movielens_beside_the_models_of_cornac(data_root):
    frame = load_movielens(data_root, "100k").to_frame()
    rows = frame[["user", "item", "rating"]].itertuples(index=False, name=None)
    both = RatioSplit(list(rows), test_size=0.2, exclude_unknowns=True, seed=0)
    models = [CornacAIR(seed=0, device="cpu"), cornac.models.MF(seed=0), cornac.models.BaselineOnly(seed=0)]
    errors = [rating_eval(model.fit(both.train_set), [RMSE()], both.test_set)[0][0] for model in models]
    assert errors[0] < min(errors[1:]) - 0.03
    assert errors[0] < 0.90


def test_features_and_graphs_of_an_experiment_enter_the_prior():
    rows = triples()
    ids = sorted({item for _, item, _ in rows})
    features = FeatureModality(np.arange(len(ids), dtype=float)[:, None], ids=ids)
    method = RatioSplit(data=rows, test_size=0.2, seed=1, item_feature=features)
    data = make().fit(method.train_set).model_.interactions_
    places = [ids.index(raw) for raw in data.item_ids]
    assert data.item_features.names == ["0"]
    assert np.corrcoef(places, data.item_features.values[:, 0])[0, 1] == pytest.approx(1)
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
