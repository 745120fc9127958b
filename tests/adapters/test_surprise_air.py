"""`SurpriseAIR` keeps the contract of Surprise's algorithms, and its estimates are those of `AIR`."""

import pickletools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import randint, uniform
from surprise import AlgoBase, Dataset, PredictionImpossible, Reader, accuracy, dump
from surprise.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_validate

from air_recsys import AIR, Interactions
from air_recsys.adapters.surprise import SurpriseAIR
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError
from air_recsys.solvers import Adam, Variational

SMALL: dict[str, Any] = {"n_sweeps": 5, "n_factors": 2, "graph_neighbors": 3, "device": "cpu"}
N_USERS, N_ITEMS = 12, 9


def make(**parameters):
    chosen: dict[str, Any] = SMALL | {"random_state": 0} | parameters
    return SurpriseAIR(**chosen)


def by_adam(**parameters):
    """Few epochs in place of few sweeps."""
    steps = {name: value for name, value in SMALL.items() if name != "n_sweeps"} | {"n_epochs": 5, "random_state": 0}
    return SurpriseAIR(**steps | parameters)


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


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


# -------------------------------------------------------------------- the constructor


def test_parameters_are_those_of_air_and_become_attributes():
    algo = SurpriseAIR(n_factors=7, random_state=3)
    assert isinstance(algo, AlgoBase)
    model = AIR.for_ratings(n_factors=7, random_state=3)
    expected = model.get_params(deep=False) | model.solver.get_params()
    assert {name: getattr(algo, name) for name in expected} == expected
    assert algo.sim_options == {"user_based": True}


def test_unknown_parameters_are_named_at_once():
    with fails(ParameterError, "no parameter of AIR or of its solvers is called 'lr_all'"):
        SurpriseAIR(lr_all=0.005)
    with pytest.raises(TypeError, match="positional"):
        SurpriseAIR({"user_based": True})  # type: ignore


def test_the_options_of_the_caller_stay_as_they_are():
    options = {}
    algo = SurpriseAIR(sim_options=options)
    assert (options, algo.sim_options) == ({}, {"user_based": True})
    assert SurpriseAIR(sim_options={"user_based": False}).sim_options == {"user_based": False}


def test_options_without_an_effect_are_told():
    with pytest.warns(DataWarning, match=re.escape("only read for 'user_based', found ['name', 'min_support']")):
        SurpriseAIR(sim_options={"name": "cosine", "user_based": False, "min_support": 2})
    with fails(ParameterError, "sim_options must be a dict such as {'user_based': False}, found 'cosine'"):
        SurpriseAIR(sim_options="cosine")  # type: ignore


def test_values_are_checked_by_fit():
    with fails(ParameterError, "n_factors must be 'auto', None or an integer >= 1, found 0"):
        make(n_factors=0).fit(trainset_of())
    with fails(ParameterError, "solver must be"):
        make(solver="sgd").fit(trainset_of())


def test_the_default_is_the_posterior_of_the_preset():
    algo = make().fit(trainset_of())
    assert algo.solver == algo.model_.solver == Variational(n_sweeps=5)
    assert algo.model_.stopped_by_ == "n_sweeps"
    assert estimates(algo) == estimates(make(solver="variational").fit(trainset_of()))


def test_settings_about_trained_scores_train_them():
    changes = {"biases": False, "unobserved_weight": 0.1, "center": False}
    algo = by_adam(**changes).fit(trainset_of())
    assert type(algo.model_.solver) is Adam
    assert estimates(algo) == estimates(by_adam(solver="adam", **changes).fit(trainset_of()))
    with fails(ParameterError, "Variational does not read biases, Adam does"):
        make(solver="variational", **changes)
    algo.biases, algo.unobserved_weight, algo.center = True, 0.0, True  # type: ignore
    assert algo.fit(trainset_of()).model_.solver == AIR.for_ratings(solver="adam", n_epochs=5, bias_decay=0).solver


# -------------------------------------------------------------------- fit


def test_fit_returns_the_algorithm_and_a_second_fit_is_a_fresh_one():
    algo, first, second = make(), trainset_of(table(1)), trainset_of()
    algo.fit(first)
    assert algo.sim.shape == (first.n_users, first.n_users)
    assert algo.fit(second) is algo
    assert algo.trainset is second
    fresh = make().fit(second)
    assert estimates(algo) == estimates(fresh)
    np.testing.assert_array_equal(algo.sim.toarray(), fresh.sim.toarray())


def test_a_fit_that_fails_leaves_nothing_of_an_older_one():
    algo = make().fit(trainset_of())
    assert algo.sim.nnz > 0
    algo.n_sweeps = 0  # type: ignore  # an attribute is the parameter, as with the host's algorithms
    with fails(ParameterError, "n_sweeps must be an integer >= 1, found 0"):
        algo.fit(trainset_of())
    for ask in (lambda: algo.predict("u0", "i0"), lambda: algo.sim, lambda: algo.model_):
        with fails(NotFittedError, "this SurpriseAIR is not fitted yet: call fit first"):
            ask()


@pytest.mark.parametrize(
    "ask",
    [
        lambda algo: algo.predict("u0", "i0"),
        lambda algo: algo.test([("u0", "i0", 3.0)]),
        lambda algo: algo.estimate(0, 0),
        lambda algo: algo.compute_similarities(),
        lambda algo: algo.sim,
        lambda algo: algo.get_neighbors(0, 1),
        lambda algo: algo.default_prediction(),
        lambda algo: algo.model_,
        lambda algo: algo.qi,
    ],
)
def test_nothing_is_answered_before_fit(ask):
    with fails(NotFittedError, "this SurpriseAIR is not fitted yet: call fit first"):
        ask(make())
    assert not hasattr(make(), "trainset")


def test_only_a_trainset_is_fitted():
    for wrong in (dataset(), dataset().raw_ratings, table()):
        with fails(DataError, "such as build_full_trainset() of a dataset returns, found " + type(wrong).__name__):
            make().fit(wrong)  # type: ignore


@pytest.mark.parametrize("seed", [4, np.int64(4)])
def test_a_seed_gives_the_same_model_as_air(seed):
    trainset = trainset_of()
    algo = make(random_state=seed).fit(trainset)
    model = AIR.for_ratings(**SMALL, random_state=4).fit(Interactions.from_surprise(trainset))
    np.testing.assert_array_equal(algo.model_.user_factors_, model.user_factors_)
    assert estimates(algo) != estimates(make(random_state=5).fit(trainset))


def test_random_states_of_numpy_are_drawn_from_as_the_host_draws():
    trainset = trainset_of()
    state = np.random.RandomState(1)
    first, second = (make(random_state=state).fit(trainset) for _ in range(2))
    assert estimates(first) == estimates(make(random_state=np.random.RandomState(1)).fit(trainset))
    assert estimates(first) != estimates(second)  # the state has moved on
    again = make(random_state=first.model_.random_state).fit(trainset)
    assert estimates(first) == estimates(again)  # a model knows its seed
    with pytest.raises(ValueError, match="Wrong random state"):
        make(random_state=np.random.default_rng(0)).fit(trainset)


def test_without_a_seed_numpys_global_one_counts():
    before = np.random.get_state()  # noqa: NPY002 (the host's habit)
    try:
        found = []
        for seed in (0, 0, 1):
            np.random.seed(seed)  # noqa: NPY002
            found.append(estimates(make(random_state=None).fit(trainset_of())))
    finally:
        np.random.set_state(before)  # noqa: NPY002
    assert found[0] == found[1]
    assert found[0] != found[2]


# -------------------------------------------------------------------- estimates


@pytest.mark.parametrize("changes", [{}, {"biases": False}, {"center": False}, {"dtype": "float64", "depth": 3}])
def test_estimates_are_the_scores_of_the_model(changes):
    algo = (by_adam if changes else make)(**changes).fit(trainset_of())
    data = algo.trainset
    steps = SMALL | {"n_sweeps": 5} if not changes else {"n_factors": 2, "graph_neighbors": 3, "n_epochs": 5}
    given = steps | {"device": "cpu", "random_state": 0, "clip": False, "solver": algo.solver.name} | changes
    model = AIR.for_ratings(**given)
    model.fit(Interactions.from_surprise(data))
    users = [data.to_raw_uid(u) for u in data.all_users()]
    items = [data.to_raw_iid(i) for i in data.all_items()]
    expected = model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))
    np.testing.assert_allclose(np.ravel(estimates(algo)), expected, rtol=1e-5)
    assert type(algo.estimate(0, 0)) is float
    whole = model.global_mean_ + algo.bu[2] + algo.bi[3] + algo.pu[2] @ algo.qi[3]
    assert algo.estimate(2, 3) == pytest.approx(whole, rel=1e-5)


def test_predictions_have_the_hosts_form_and_are_clipped_to_the_scale():
    algo = make(n_sweeps=30).fit(trainset_of(scale=(3, 3.5)))
    pairs = algo.trainset.build_testset()
    raw = np.array([algo.predict(user, item, clip=False).est for user, item, _ in pairs])
    predictions = algo.test(pairs)
    assert raw.min() < 3
    assert raw.max() > 3.5
    np.testing.assert_array_equal([found.est for found in predictions], raw.clip(3, 3.5))
    assert [(found.uid, found.iid, found.r_ui) for found in predictions] == pairs
    assert all(found.details == {"was_impossible": False} for found in predictions)
    assert accuracy.rmse(predictions, verbose=False) < 1.5


def test_one_known_side_gives_its_bias():
    algo = make().fit(trainset_of())
    mean, data = algo.model_.global_mean_, algo.trainset
    assert mean == pytest.approx(data.global_mean)
    user, item = data.to_inner_uid("u3"), data.to_inner_iid("i4")
    assert algo.predict("u3", "new").est == pytest.approx(mean + algo.bu[user])
    assert algo.predict("new", "i4").est == pytest.approx(mean + algo.bi[item])
    assert algo.predict("u3", "new").details == {"was_impossible": False}
    assert algo.estimate(user, "UKN__new") == algo.estimate(user, -1) == algo.estimate(user, N_ITEMS)
    assert type(algo.estimate("UKN__new", item)) is float


def test_biases_of_a_posterior_are_around_a_mean():
    algo = make(solver="variational").fit(trainset_of())
    assert algo.model_.global_mean_ == pytest.approx(algo.trainset.global_mean)
    user = algo.trainset.to_inner_uid("u3")
    assert algo.predict("u3", "new").est == pytest.approx(algo.trainset.global_mean + algo.bu[user])


@pytest.mark.parametrize(
    ("changes", "pair"),
    [
        ({}, ("new", "new")),
        ({"biases": False}, ("u3", "new")),
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


# -------------------------------------------------------------------- small and odd trainsets


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "x", 1.0), ("a", "y", 5.0), ("b", "x", 3.0)],
        [("a", "x", 1.0), ("b", "y", 2.0), ("c", "z", 5.0)],
        [("a", "x", 1.0), ("a", "y", 5.0), ("a", "z", 3.0)],
        [("a", "x", 1.0), ("b", "x", 5.0), ("c", "x", 3.0)],
    ],
)
def test_three_ratings(rows):
    algo = make().fit(trainset_of(pd.DataFrame(rows)))
    assert np.isfinite(estimates(algo)).all()
    for known in (False, True):
        algo.sim_options["user_based"] = known
        n = algo.trainset.n_users if known else algo.trainset.n_items
        assert algo.compute_similarities().shape == (n, n)
        assert len(algo.get_neighbors(0, 5)) <= n - 1


@pytest.mark.parametrize("n_ratings", [1, 4])
def test_ratings_that_are_all_equal_are_learned_with_a_warning(n_ratings):
    frame = table().iloc[:n_ratings].assign(rating=4.0)
    with pytest.warns(DataWarning, match=re.escape(f"all {n_ratings} rating(s) equal 4")):
        algo = make().fit(trainset_of(frame))
    np.testing.assert_allclose(estimates(algo), 4.0, atol=0.5)
    assert algo.predict("new", "new").est == 4.0


def test_a_pair_rated_more_than_once_counts_with_its_mean():
    frame = table()
    again = frame.iloc[:5].assign(rating=frame["rating"][:5] + 2)
    mean = frame.assign(rating=frame["rating"].where(frame.index >= 5, frame["rating"] + 1))
    doubled = make().fit(trainset_of(pd.concat([frame, again])))
    assert doubled.trainset.n_ratings == len(frame) + 5
    assert estimates(doubled) == estimates(make().fit(trainset_of(mean)))


def test_raw_ids_of_any_kind():
    users = {f"u{n}": [n, f"u{n}", n + 0.5, (n, "u"), f"{n}"][n % 5] for n in range(N_USERS)}
    items = {f"i{n}": n * 1.0 for n in range(N_ITEMS)}
    plain = table()
    odd = pd.DataFrame(
        {"user": [users[name] for name in plain["user"]], "item": [items[name] for name in plain["item"]]}
    )
    algo, expected = make().fit(trainset_of(odd.assign(rating=plain["rating"]))), make().fit(trainset_of())
    assert estimates(algo) == estimates(expected)
    assert algo.predict(users["u3"], items["i4"]).est == expected.predict("u3", "i4").est
    neighbors = expected.get_neighbors(expected.trainset.to_inner_uid("u3"), 3)
    assert algo.get_neighbors(algo.trainset.to_inner_uid(users["u3"]), 3) == neighbors


def test_users_and_items_without_ratings_are_known():
    array = np.full((5, 4), np.nan)
    array[[0, 0, 1, 2, 2], [0, 1, 1, 0, 2]] = [5, 3, 1, 2, 4]
    algo = make().fit(Interactions.from_dense(array).to_surprise())
    assert np.shape(estimates(algo)) == (5, 4)
    assert np.isfinite(estimates(algo)).all()
    assert not algo.predict(4, 3).details["was_impossible"]


# -------------------------------------------------------------------- similarities


@pytest.mark.parametrize(("user_based", "kind"), [(True, "user"), (False, "item")])
@pytest.mark.parametrize("neighbors", [3, None])
def test_similarities_are_the_learned_graph_by_inner_ids(user_based, kind, neighbors):
    algo = make(sim_options={"user_based": user_based}, graph_neighbors=neighbors).fit(trainset_of())
    graph, data = getattr(algo.model_, f"{kind}_graph_"), algo.trainset
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


def test_the_model_answers_with_raw_ids(tmp_path):
    algo = make().fit(trainset_of())
    best = algo.model_.recommend("u3", n=2)
    assert set(best["item"]) <= set(table()["item"])
    nearest = algo.model_.user_graph_.neighbors("u3", n=2)["user"]
    inner = algo.trainset.to_inner_uid
    assert [inner(raw) for raw in nearest] == algo.get_neighbors(inner("u3"), 2)
    loaded = AIR.load(algo.model_.save(tmp_path / "model.air"))
    pd.testing.assert_frame_equal(loaded.recommend("u3", n=2), best)


# -------------------------------------------------------------------- searches and files


def test_cross_validation_is_the_same_with_two_processes():
    errors = [
        cross_validate(make(), dataset(), cv=KFold(2, random_state=0), return_train_measures=True, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    ]
    for key in ("test_rmse", "test_mae", "train_rmse", "train_mae"):
        np.testing.assert_array_equal(errors[0][key], errors[1][key])
        assert errors[0][key].shape == (2,)


def test_grid_search():
    grid = {name: [value] for name, value in SMALL.items()} | {
        "n_sweeps": [1, 40],
        "random_state": [0],
        "sim_options": {"user_based": [False]},
    }
    search = GridSearchCV(SurpriseAIR, grid, measures=["rmse", "fcp"], cv=KFold(2, random_state=0), refit=True)
    search.fit(dataset())
    by_hand = [
        cross_validate(make(n_sweeps=n_sweeps), dataset(), cv=KFold(2, random_state=0))["test_rmse"].mean()
        for n_sweeps in (1, 40)
    ]
    np.testing.assert_allclose(search.cv_results["mean_test_rmse"], by_hand)
    best = search.best_estimator["rmse"]
    assert best.n_sweeps == search.best_params["rmse"]["n_sweeps"] == (1, 40)[int(np.argmin(by_hand))]
    assert search.predict("u3", "i4").est == best.predict("u3", "i4").est
    assert best.sim.shape == (N_ITEMS, N_ITEMS)


def test_randomized_search_draws_numbers_of_numpy():
    distributions = {
        **{name: [value] for name, value in SMALL.items() if name != "n_sweeps"},
        "n_epochs": [5],
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
def test_a_dumped_algorithm_is_the_same(tmp_path):
    path = str(tmp_path / "algo.pickle")
    algo = make(sim_options={"user_based": False}).fit(trainset_of())
    pairs = algo.trainset.build_testset()
    predictions = algo.test(pairs)
    dump.dump(path, predictions, algo)
    dumped, loaded = dump.load(path)
    assert dumped == predictions == loaded.test(pairs)
    assert loaded.get_neighbors(1, 3) == algo.get_neighbors(1, 3)
    np.testing.assert_array_equal(loaded.sim.toarray(), algo.sim.toarray())
    pd.testing.assert_frame_equal(loaded.model_.recommend("u3", 3), algo.model_.recommend("u3", 3))
    refitted = loaded.fit(trainset_of())
    assert refitted.test(pairs) == predictions
    # Nothing of torch is in the file, so a model of a GPU loads where there is none.
    names = {str(value) for _, value, _ in pickletools.genops(Path(path).read_bytes())}
    assert any(name.startswith("air_recsys.adapters") for name in names)
    assert not [name for name in names if name.partition(".")[0] == "torch"]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_an_algorithm_can_be_dumped_before_fit(tmp_path):
    path = str(tmp_path / "algo.pickle")
    dump.dump(path, algo=make())
    _, loaded = dump.load(path)
    assert estimates(loaded.fit(trainset_of())) == estimates(make().fit(trainset_of()))


def test_features_tell_of_items_that_the_trainset_lacks():
    frame = table().assign(rating=lambda t: np.where(t["item"].str[1:].astype(int) % 2, 5.0, 1.0))
    items = pd.DataFrame({"odd": [n % 2 for n in range(N_ITEMS + 2)]}, index=[f"i{n}" for n in range(N_ITEMS + 2)])
    algo = make(item_features=items, user_features=None, n_sweeps=12).fit(trainset_of(frame))
    assert algo.qi.shape == (N_ITEMS, 2)
    assert algo.bi.shape == (N_ITEMS,)
    assert algo.predict("u0", f"i{N_ITEMS}").est > algo.predict("u0", f"i{N_ITEMS + 1}").est + 0.3  # 9 is odd
    assert algo.predict("nobody", f"i{N_ITEMS}").est > algo.predict("nobody", f"i{N_ITEMS + 1}").est
    assert not algo.predict("nobody", f"i{N_ITEMS}").details["was_impossible"]
    assert algo.predict("nobody", "nothing").details["was_impossible"]
    assert cross_validate(algo, dataset(frame), measures=["rmse"], cv=2)["test_rmse"].mean() < 2


def test_similarities_tell_of_items_that_the_trainset_lacks():
    frame = table().assign(rating=lambda t: np.where(t["item"].str[1:].astype(int) % 2, 5.0, 1.0))
    ids, odd = [f"i{n}" for n in range(N_ITEMS + 2)], np.arange(N_ITEMS + 2) % 2
    alike = pd.DataFrame((odd[:, None] == odd).astype(float), index=ids, columns=ids)
    algo = make(item_similarity=alike, item_graph_strength=0.7, n_sweeps=12).fit(trainset_of(frame))
    assert algo.predict("u0", f"i{N_ITEMS}").est > algo.predict("u0", f"i{N_ITEMS + 1}").est + 0.3  # 9 is odd
    assert algo.model_.item_graph_strength_ == 0.7


def test_probabilities_are_those_of_the_model():
    algo = make().fit(trainset_of())
    shares = algo.predict_proba(["u0", "u1", "nobody"], ["i3", "i4", "i5"])
    assert algo.rating_values_.tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares[:2], algo.model_.predict_proba(["u0", "u1"], ["i3", "i4"]))
    with fails(NotFittedError, "solver"):
        by_adam().fit(trainset_of()).predict_proba("u0", "i3")
    with fails(NotFittedError, "call fit first"):
        make().predict_proba("u0", "i3")
