"""`SurpriseAIR` keeps the contract of Surprise's algorithms, and its estimates are those of `AIR`."""

import pickletools
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from host_cases import fails
from scipy.stats import randint, uniform
from surprise import AlgoBase, Dataset, PredictionImpossible, Reader, dump
from surprise.model_selection import KFold, RandomizedSearchCV, cross_validate

from air_recsys import AIR, Interactions
from air_recsys.adapters.surprise import SurpriseAIR
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.solvers import Adam, Variational

SMALL: dict[str, Any] = {"n_sweeps": 5, "n_factors": 2, "graph_neighbors": 3, "device": "cpu"}
STEPS: dict[str, Any] = {"n_epochs": 5, "n_factors": 2, "graph_neighbors": 3, "device": "cpu"}
N_USERS, N_ITEMS = 12, 9


def make(**parameters):
    return SurpriseAIR(**SMALL | {"random_state": 0} | parameters)


def by_adam(**parameters):
    """Few epochs in place of few sweeps."""
    return SurpriseAIR(**STEPS | {"random_state": 0} | parameters)


def table(seed=0):
    rng = np.random.default_rng(seed)
    users, items = np.divmod(rng.permutation(N_USERS * N_ITEMS)[:70], N_ITEMS)
    ratings = rng.integers(1, 6, users.size).astype(float)
    return pd.DataFrame({"user": [f"u{user}" for user in users], "item": [f"i{item}" for item in items]}).assign(
        rating=ratings
    )


def dataset(frame=None, scale=(1, 5)):
    return Dataset.load_from_df(table() if frame is None else frame, Reader(rating_scale=scale))


def trainset_of(frame=None, scale=(1, 5)):
    return dataset(frame, scale).build_full_trainset()


def estimates(algo):
    return [[algo.estimate(u, i) for i in algo.trainset.all_items()] for u in algo.trainset.all_users()]


@pytest.fixture(scope="module")
def fitted():
    return make().fit(trainset_of())


def test_parameters_are_those_of_air_and_become_attributes():
    algo = SurpriseAIR(n_factors=7, random_state=3)
    assert isinstance(algo, AlgoBase)
    model = AIR.for_ratings(n_factors=7, random_state=3)
    expected = model.get_params(deep=False) | model.solver.get_params()
    assert {name: getattr(algo, name) for name in expected} == expected
    assert algo.sim_options == {"user_based": True}
    options = {}
    SurpriseAIR(sim_options=options)
    assert options == {}  # the algorithm has a copy
    with pytest.warns(DataWarning, match="only read for 'user_based', found .'name', 'min_support'.: similarities"):
        algo = SurpriseAIR(sim_options={"name": "cosine", "user_based": False, "min_support": 2})
    assert algo.sim_options["user_based"] is False


def test_unknown_parameters_are_named_at_once_and_values_by_fit():
    for error, message, parameters in (
        (ParameterError, "no parameter of AIR or of its solvers is called 'lr_all'", {"lr_all": 0.005}),
        (ParameterError, "sim_options must be a dict such as {'user_based': False}", {"sim_options": "cosine"}),
        (ParameterError, "Variational does not read biases, Adam does", {"solver": "variational", "biases": False}),
    ):
        with fails(error, message):
            SurpriseAIR(**parameters)
    with pytest.raises(TypeError, match="positional"):
        SurpriseAIR({"user_based": True})  # type: ignore
    for message, parameters in (("n_factors must be 'auto'", {"n_factors": 0}), ("solver must be", {"solver": "sgd"})):
        with fails(ParameterError, message):
            make(**parameters).fit(trainset_of())


def test_the_default_is_the_posterior_of_the_preset_and_settings_about_trained_scores_train_them(fitted):
    assert fitted.solver == fitted.model_.solver == Variational(n_sweeps=5)
    assert fitted.model_.stopped_by_ == "n_sweeps"
    changes = {"biases": False, "unobserved_weight": 0.1, "center": False}
    algo = by_adam(**changes).fit(trainset_of())
    assert type(algo.model_.solver) is Adam
    assert estimates(algo) == estimates(by_adam(solver="adam", **changes).fit(trainset_of()))
    algo.biases, algo.unobserved_weight, algo.center = True, 0.0, True  # type: ignore
    assert algo.fit(trainset_of()).model_.solver == AIR.for_ratings(solver="adam", n_epochs=5, bias_decay=0).solver


def test_fit_returns_the_algorithm_and_a_second_fit_is_a_fresh_one(fitted):
    algo, first, second = make(), trainset_of(table(1)), trainset_of()
    algo.fit(first)
    assert algo.sim.shape == (first.n_users, first.n_users)
    assert algo.fit(second) is algo
    assert algo.trainset is second
    assert estimates(algo) == estimates(fitted)
    np.testing.assert_array_equal(algo.sim.toarray(), fitted.sim.toarray())


def test_a_fit_that_fails_leaves_nothing_of_an_older_one():
    algo = make().fit(trainset_of())
    assert algo.sim.nnz > 0
    algo.n_sweeps = 0  # type: ignore  # an attribute is the parameter, as with the host's algorithms
    with fails(ParameterError, "n_sweeps must be 'auto' or an integer >= 1, found 0"):
        algo.fit(trainset_of())
    for ask in (lambda: algo.predict("u0", "i0"), lambda: algo.sim, lambda: algo.model_):
        with fails(NotFittedError, "this SurpriseAIR is not fitted yet: call fit first"):
            ask()


def test_nothing_is_answered_before_fit_and_only_a_trainset_is_fitted():
    algo = make()
    for ask in (
        lambda: algo.predict("u0", "i0"),
        lambda: algo.test([("u0", "i0", 3.0)]),
        lambda: algo.estimate(0, 0),
        lambda: algo.compute_similarities(),
        lambda: algo.sim,
        lambda: algo.get_neighbors(0, 1),
        lambda: algo.default_prediction(),
        lambda: algo.model_,
        lambda: algo.qi,
        lambda: algo.predict_proba("u0", "i3"),
    ):
        with fails(NotFittedError, "this SurpriseAIR is not fitted yet: call fit first"):
            ask()
    assert not hasattr(algo, "trainset")
    for wrong in (dataset(), table()):
        with fails(DataError, "such as build_full_trainset() of a dataset returns, found " + type(wrong).__name__):
            algo.fit(wrong)  # type: ignore


def test_random_states_of_numpy_or_its_global_one_are_drawn_from_as_the_host_draws():
    trainset = trainset_of()
    state = np.random.RandomState(1)
    first, second = (make(random_state=state).fit(trainset) for _ in range(2))
    assert estimates(first) == estimates(make(random_state=np.random.RandomState(1)).fit(trainset))
    assert estimates(first) != estimates(second)  # the state has moved on
    again = make(random_state=first.model_.random_state).fit(trainset)
    assert estimates(first) == estimates(again)  # a model knows its seed
    with pytest.raises(ValueError, match="Wrong random state"):
        make(random_state=np.random.default_rng(0)).fit(trainset)
    before = np.random.get_state()  # noqa: NPY002 (the host's habit)
    try:
        np.random.seed(1)  # noqa: NPY002
        assert estimates(make(random_state=None).fit(trainset)) == estimates(first)
        assert estimates(make(random_state=None).fit(trainset)) == estimates(second)
    finally:
        np.random.set_state(before)  # noqa: NPY002


@pytest.mark.parametrize("changes", [{}, {"biases": False}, {"center": False}, {"dtype": "float64", "depth": 3}])
def test_estimates_are_the_scores_of_the_model(changes):
    algo = (by_adam if changes else make)(**changes, random_state=np.int64(4)).fit(trainset_of())
    data = algo.trainset
    given = (STEPS if changes else SMALL) | {"random_state": 4, "clip": False, "solver": algo.solver.name} | changes
    model = AIR.for_ratings(**given)
    model.fit(Interactions.from_surprise(data))
    users = [data.to_raw_uid(u) for u in data.all_users()]
    items = [data.to_raw_iid(i) for i in data.all_items()]
    expected = model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))
    np.testing.assert_allclose(np.ravel(estimates(algo)), expected, rtol=1e-5)
    assert type(algo.estimate(0, 0)) is float
    whole = model.global_mean_ + algo.bu[2] + algo.bi[3] + algo.pu[2] @ algo.qi[3]
    assert algo.estimate(2, 3) == pytest.approx(whole, rel=1e-5)


def test_one_known_side_gives_its_bias_and_probabilities_are_those_of_the_model(fitted):
    algo, data, mean = fitted, fitted.trainset, fitted.model_.global_mean_
    assert mean == pytest.approx(data.global_mean)
    user, item = data.to_inner_uid("u3"), data.to_inner_iid("i4")
    assert algo.predict("u3", "new").est == pytest.approx(mean + algo.bu[user])
    assert algo.predict("new", "i4").est == pytest.approx(mean + algo.bi[item])
    assert algo.predict("u3", "new").details == {"was_impossible": False}
    assert algo.estimate(user, "UKN__new") == algo.estimate(user, -1) == algo.estimate(user, N_ITEMS)
    assert type(algo.estimate("UKN__new", item)) is float
    shares = fitted.predict_proba(["u0", "u1", "nobody"], ["i3", "i4", "i5"])
    assert fitted.rating_values_.tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares[:2], fitted.model_.predict_proba(["u0", "u1"], ["i3", "i4"]))
    with fails(UnknownIdError, "its ids are text, such as 'u6', and these are integers"):
        fitted.predict_proba(user, item)  # inner ids
    with fails(DataError, "expected 100 ratings, to measure deviations"):
        by_adam().fit(trainset_of()).predict_proba("u0", "i3")


@pytest.mark.parametrize(
    ("changes", "pair"),
    [
        ({}, ("new", "new")),
        ({"biases": False}, ("new", "i4")),
        ({"center": False}, ("u3", "new")),  # the mean is then hidden in both biases
    ],
)
def test_what_cannot_be_predicted_gets_the_mean_of_the_trainset(changes, pair):
    algo = (by_adam if changes else make)(**changes).fit(trainset_of())
    prediction = algo.predict(*pair)
    assert prediction.est == algo.trainset.global_mean == algo.default_prediction()
    assert prediction.details["was_impossible"] is True
    assert prediction.details["reason"] in ("User and item are unknown.", "User or item is unknown.")
    with pytest.raises(PredictionImpossible):
        algo.estimate("UKN__new", "UKN__new")


@pytest.mark.parametrize(
    "rows", [[("a", "x", 1.0), ("a", "y", 5.0), ("a", "z", 3.0)], [("a", "x", 1.0), ("b", "x", 5.0), ("c", "x", 3.0)]]
)
def test_one_user_or_one_item(rows):
    algo = make().fit(trainset_of(pd.DataFrame(rows)))
    assert np.isfinite(estimates(algo)).all()
    for known in (False, True):
        algo.sim_options["user_based"] = known
        n = algo.trainset.n_users if known else algo.trainset.n_items
        assert algo.compute_similarities().shape == (n, n)
        assert len(algo.get_neighbors(0, 5)) <= n - 1


def test_raw_ids_of_any_kind(fitted):
    users = {f"u{n}": [n, f"u{n}", n + 0.5, (n, "u"), f"{n}"][n % 5] for n in range(N_USERS)}
    items = {f"i{n}": n * 1.0 for n in range(N_ITEMS)}
    plain = table()
    odd = pd.DataFrame(
        {"user": [users[name] for name in plain["user"]], "item": [items[name] for name in plain["item"]]}
    )
    with pytest.warns(DataWarning, match="save will refuse the model"):
        algo = make().fit(trainset_of(odd.assign(rating=plain["rating"])))
    assert estimates(algo) == estimates(fitted)
    assert algo.predict(users["u3"], items["i4"]).est == fitted.predict("u3", "i4").est
    neighbors = fitted.get_neighbors(fitted.trainset.to_inner_uid("u3"), 3)
    assert algo.get_neighbors(algo.trainset.to_inner_uid(users["u3"]), 3) == neighbors


@pytest.mark.parametrize(("user_based", "neighbors"), [(True, 3), (False, None)])
def test_similarities_are_the_learned_graph_by_inner_ids(user_based, neighbors):
    algo = make(sim_options={"user_based": user_based}, graph_neighbors=neighbors).fit(trainset_of())
    graph, data = algo.model_.user_graph_ if user_based else algo.model_.item_graph_, algo.trainset
    n, to_inner = (data.n_users, data.to_inner_uid) if user_based else (data.n_items, data.to_inner_iid)
    sim = algo.compute_similarities()
    assert isinstance(sim, sp.csr_array)
    assert sim.shape == algo.sim.shape == (n, n)
    assert (sim != sim.T).nnz == 0
    assert not sim.diagonal().any()
    for raw in graph.ids[:3]:
        for other, weight in graph.neighbors(raw, n).itertuples(index=False):
            assert algo.sim[to_inner(raw), to_inner(other)] == weight
    if neighbors:
        assert sim.nnz <= 2 * neighbors * n


@pytest.mark.parametrize("user_based", [True, False])
def test_neighbors_are_the_most_alike_first(user_based):
    algo = make(sim_options={"user_based": user_based}, n_sweeps=40).fit(trainset_of())
    sim = algo.sim.toarray()
    degrees = Counter(algo.sim.nonzero()[0].tolist())
    for inner in range(len(sim)):
        for k in (1, 3, 100):
            found = algo.get_neighbors(inner, k)
            assert len(found) == len(set(found)) == min(k, degrees[inner])
            assert inner not in found
            assert all(type(other) is int for other in found)
            np.testing.assert_array_equal(sim[inner, found], np.sort(sim[inner])[::-1][: len(found)])
        host = AlgoBase.get_neighbors(algo, inner, degrees[inner])  # the host's own loop over `sim`
        np.testing.assert_array_equal(sim[inner, host], sim[inner, algo.get_neighbors(inner, degrees[inner])])


def test_wrong_questions_about_neighbors():
    algo = make(item_graph_reg=0).fit(trainset_of())
    for inner in (-1, N_USERS, "UKN__u0"):
        with pytest.raises(ValueError, match=f"{inner} is not a valid inner id"):
            algo.get_neighbors(inner, 3)  # type: ignore
    with fails(ParameterError, "k must be an integer >= 1, found 0"):
        algo.get_neighbors(0, 0)
    algo.sim_options["user_based"] = False
    message = "similarities of items need a learned graph, found item_graph_reg=0; set it larger or choose"
    for ask in (algo.compute_similarities, lambda: algo.sim, lambda: algo.get_neighbors(0, 3)):
        with fails(ParameterError, message):
            ask()


def test_cross_validation_is_the_same_with_two_processes():
    errors = [
        cross_validate(make(), dataset(), cv=KFold(2, random_state=0), return_train_measures=True, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    ]
    for key in ("test_rmse", "test_mae", "train_rmse", "train_mae"):
        np.testing.assert_array_equal(errors[0][key], errors[1][key])
        assert errors[0][key].shape == (2,)


def test_randomized_search_draws_numbers_of_numpy():
    distributions = {
        **{name: [value] for name, value in STEPS.items()},
        "n_factors": randint(1, 4),
        "weight_decay": uniform(1, 20),
        "biases": [np.True_],
        "random_state": [0],
    }
    search = RandomizedSearchCV(SurpriseAIR, distributions, n_iter=3, cv=2, random_state=0)
    search.fit(dataset())
    assert np.isfinite(search.cv_results["mean_test_rmse"]).all()
    assert len({found["weight_decay"] for found in search.cv_results["params"]}) == 3


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # surprise.dump leaves them open
def test_a_dumped_algorithm_is_the_same(tmp_path, fitted):
    path = str(tmp_path / "algo.pickle")
    algo = make(sim_options={"user_based": False}).fit(trainset_of())
    pairs = algo.trainset.build_testset()
    predictions = algo.test(pairs)
    dump.dump(path, predictions, algo)
    dumped, loaded = dump.load(path)
    assert dumped == predictions == loaded.test(pairs)
    assert loaded.get_neighbors(1, 3) == algo.get_neighbors(1, 3)
    np.testing.assert_array_equal(loaded.sim.toarray(), algo.sim.toarray())
    best = algo.model_.recommend("u3", 3)
    pd.testing.assert_frame_equal(loaded.model_.recommend("u3", 3), best)
    pd.testing.assert_frame_equal(AIR.load(algo.model_.save(tmp_path / "model.air")).recommend("u3", 3), best)
    assert loaded.fit(trainset_of()).test(pairs) == predictions
    # Nothing of torch is in the file, so a model of a GPU loads where there is none.
    names = {str(value) for _, value, _ in pickletools.genops(Path(path).read_bytes())}
    assert any(name.startswith("air_recsys.adapters") for name in names)
    assert not [name for name in names if name.partition(".")[0] == "torch"]
    dump.dump(path, algo=make())  # before fit
    assert estimates(dump.load(path)[1].fit(trainset_of())) == estimates(fitted)


def test_features_and_similarities_tell_of_items_that_the_trainset_lacks():
    frame = table().assign(rating=lambda t: np.where(t["item"].str[1:].astype(int) % 2, 5.0, 1.0))
    ids, odd = [f"i{n}" for n in range(N_ITEMS + 2)], np.arange(N_ITEMS + 2) % 2
    alike = pd.DataFrame((odd[:, None] == odd).astype(float), index=ids, columns=ids)
    by_features = make(item_features=pd.DataFrame({"odd": odd}, index=ids), user_features=None, n_sweeps=12)
    by_graph = make(item_similarity=alike, item_graph_strength=0.7, n_sweeps=12)
    for algo in (by_features, by_graph):
        algo.fit(trainset_of(frame))
        assert algo.qi.shape == (N_ITEMS, 2)
        assert algo.bi.shape == (N_ITEMS,)
        assert algo.predict("u0", f"i{N_ITEMS}").est > algo.predict("u0", f"i{N_ITEMS + 1}").est + 0.3  # 9 is odd
        assert not algo.predict("nobody", f"i{N_ITEMS}").details["was_impossible"]
        assert algo.predict("nobody", "nothing").details["was_impossible"]
    assert by_graph.model_.item_graph_strength_ == 0.7
    assert by_features.predict("nobody", "i9").est > by_features.predict("nobody", "i10").est
    assert cross_validate(by_features, dataset(frame), measures=["rmse"], cv=2)["test_rmse"].mean() < 2
