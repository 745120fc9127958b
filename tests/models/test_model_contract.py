"""What every model keeps to: fitting, predicting, ids, scores of new data, and data at the edges."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from covering import covering
from model_cases import (
    ITEMS,
    MODELS,
    N_ITEMS,
    N_USERS,
    PAIRS,
    USERS,
    dense,
    every_model,
    fails,
    fitted,
    frame,
    trained_models,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError
from air_recsys.metrics import ndcg_at_k, rmse
from air_recsys.models import GraphRanker
from air_recsys.models.trained import TrainedRecommender
from air_recsys.testing import ContractTests, all_scores, assert_same_answers

pytestmark = pytest.mark.filterwarnings("ignore:each row counts as one like")  # of ratings given to all models


def scores_of_all(model, users, items):
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


class TestContract(ContractTests):
    """The suite that other packages run, for all of our models."""

    @pytest.fixture(autouse=True, params=MODELS)
    def _each(self, request):
        self.make = MODELS[request.param]

    def fitted(self):
        return fitted(self.make)


# -------------------------------------------------------------------- fitting


def read_only_view() -> np.ndarray:
    wide = np.zeros((2 * N_ITEMS, 2 * N_USERS))
    wide[::2, ::2] = dense().T
    wide.setflags(write=False)
    return wide.T[::2, ::2]


def read_only_csr() -> sp.csr_array:
    rows, columns = np.nonzero(~np.isnan(dense()))
    matrix = sp.csr_array((dense()[rows, columns].astype(np.int8), (rows, columns)), shape=(N_USERS, N_ITEMS))
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.setflags(write=False)
    return matrix


FORMS = {
    "array": dense,
    "lists": lambda: dense().tolist(),
    "read-only view": read_only_view,
    "read-only matrix": read_only_csr,
    "pandas types": lambda: frame().convert_dtypes(dtype_backend="pyarrow").astype({"item": "category"}),
}


@pytest.mark.parametrize(("name", "form"), covering(MODELS, FORMS))
def test_every_container_is_the_same_data(name, form):
    model = MODELS[name]().fit(FORMS[form]())
    pairs = PAIRS if form != "pandas types" else (np.repeat(USERS, N_ITEMS), np.tile(ITEMS, N_USERS))
    np.testing.assert_array_equal(model.predict(*pairs), all_scores(fitted(MODELS[name])))


@trained_models
def test_a_fit_that_fails_on_the_way_leaves_the_model_as_it_was(make):
    model, fresh = fitted(make), make()
    with fails(ParameterError, "random_state must be an integer >= 0, found 'seven'"):
        model.set_params(random_state="seven").fit(dense()[:4])

    def fail(record):
        if record.epoch > 0:
            raise RuntimeError

    model.set_params(random_state=0)
    for one, data in ((model, frame(1)), (fresh, dense()[:4])):
        with pytest.raises(RuntimeError):
            one.fit(data, callbacks=[fail])
        with pytest.raises(NotFittedError, match="while fit runs"):
            one.current_factors()
    assert_same_answers(model, fitted(make))
    with fails(NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
        fresh.predict(0, 0)
    assert_same_answers(fresh.fit(frame()), model)


# -------------------------------------------------------------------- predicting


QUESTIONS: dict[str, Any] = {
    "string": pd.array(USERS[:3], dtype="string"),
    "pyarrow": pd.Series(USERS[:3], dtype="string[pyarrow]"),
    "category": pd.Series(USERS[:3], dtype="category"),
    "index": pd.Index(USERS[:3]),
    "objects": np.array(USERS[:3], dtype=object),
    "read-only": np.array(USERS[:3] * 2)[:3],
    "steps": np.repeat(np.array(USERS[:3]), 2)[::2],
    "tuple": tuple(USERS[:3]),
}
QUESTIONS["read-only"].setflags(write=False)


@pytest.mark.parametrize("name", ["AIR-variational", "GraphRanker", "BiasModel"])
def test_questions_may_be_of_any_type(name):
    model = fitted(MODELS[name])
    scores, lists = model.predict(USERS[:3], ITEMS[2]), model.recommend(USERS[:3], 3)
    for users in QUESTIONS.values():
        np.testing.assert_array_equal(model.predict(users, ITEMS[2]), scores)
        pd.testing.assert_frame_equal(model.recommend(users, 3), lists)
    model = MODELS[name]().fit(dense())
    expected = model.predict([3, 1, 99], 2, unknown="mean")
    for kind in ("int8", "uint16", "Int64", "int64[pyarrow]", "float64"):
        asked = pd.Series([3, 1, 99]).astype(kind)
        for users in (asked, asked.to_numpy()):
            np.testing.assert_array_equal(model.predict(users, 2, unknown="mean"), expected)
    for users in (3, np.int64(3), np.array([3]), pd.Series([3]), (3,)):
        pd.testing.assert_frame_equal(model.recommend(users, 2), model.recommend([3], 2))
    assert model.recommend([], 2).empty
    assert list(model.recommend([], 2).columns) == list(lists.columns)


@every_model
def test_scores_are_the_mean_the_biases_and_the_factors(make):
    model = fitted(make)
    if isinstance(model, GraphRanker):
        pytest.skip("its scores are the sum of three products")
    expected = model.global_mean_ + model.user_biases_[:, None] + model.item_biases_
    expected = expected + model.user_factors_ @ model.item_factors_.T
    if getattr(model, "clip", False):
        expected = expected.clip(1, 5)
    np.testing.assert_allclose(all_scores(model), expected.ravel(), rtol=1e-5, atol=1e-6)


@every_model
def test_unknown_ids_get_the_mean_of_the_side_that_is_known(make):
    model = fitted(make)
    table = frame()
    means = [
        table.loc[table["user"] == USERS[3], "rating"].mean(),
        table.loc[table["item"] == ITEMS[4], "rating"].mean(),
        table["rating"].mean(),
    ]
    scores = model.predict(
        [USERS[3], "nobody", "nobody", USERS[3]], ["nothing", ITEMS[4], "nothing", ITEMS[4]], unknown="mean"
    )
    if isinstance(model, GraphRanker):  # its scores are no ratings
        means = [0, (table["item"] == ITEMS[4]).sum() / N_USERS, 0]
    np.testing.assert_allclose(scores[:3], means, rtol=1e-14)
    assert scores[3] == model.predict(USERS[3], ITEMS[4])[0]


# -------------------------------------------------------------------- ids and order


@every_model
def test_the_order_of_the_ratings_does_not_matter(make):
    first, second = fitted(make), make().fit(frame().sample(frac=1, random_state=0))
    np.testing.assert_allclose(all_scores(second), all_scores(first), rtol=1e-4, atol=1e-6)
    for user in USERS:
        assert second.recommend(user, 4)["item"].tolist() == first.recommend(user, 4)["item"].tolist()


# Patches of a picture are tied to their places; a training starts from random numbers, row by row.


def permuted() -> tuple[Interactions, Interactions, np.ndarray, np.ndarray]:
    """The same ratings, no two of them equal, in two orders of users and items, and the second order."""
    rng = np.random.default_rng(0)
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    array = dense() + rng.random((N_USERS, N_ITEMS))
    moved = Interactions.from_dense(array[np.ix_(users, items)], users, items)
    return Interactions.from_dense(array), moved, users, items


@pytest.mark.parametrize("name", ["BiasModel", "GlobalMean", "IterativeSVD", "GraphRanker"])  # KNN: test_knn.py
def test_permuting_users_and_items_permutes_scores_and_graphs(name):
    plain, moved, users, items = permuted()
    first, second = (MODELS[name]().fit(data) for data in (plain, moved))
    np.testing.assert_allclose(second.predict(*PAIRS), first.predict(*PAIRS), rtol=1e-5, atol=1e-6)
    for one, other, order in (
        (first.user_graph_, second.user_graph_, users),
        (first.item_graph_, second.item_graph_, items),
    ):
        if one is not None and other is not None:
            found, expected = other.to_scipy().toarray(), one.to_scipy().toarray()
            np.testing.assert_allclose(found, expected[np.ix_(order, order)], rtol=1e-5, atol=1e-6)


@every_model
def test_ids_of_any_type_are_answered_in_kind(make):
    ids = [*USERS[:-1], 11], [("item", item) for item in range(N_ITEMS)]
    with pytest.warns(DataWarning, match="save will refuse the model"):
        mixed = make().fit(Interactions.from_dense(dense(), *ids))
    expected = fitted(make).predict([USERS[11], USERS[2]], ITEMS[5])
    np.testing.assert_array_equal(mixed.predict([11, USERS[2]], [("item", 5)]), expected)
    assert set(mixed.recommend(11, 9)["item"]) <= {("item", item) for item in range(N_ITEMS)}
    assert set(mixed.similar_users(USERS[0], 11)["user"]) <= {*USERS[:-1], 11}


# -------------------------------------------------------------------- data at the edges


def fit_constant(make, array):
    """Fit ratings that are all equal, which AIR warns of and the baselines learn from."""
    model = make()
    if not isinstance(model, TrainedRecommender) or model.engine().learns_from_constant:
        return model.fit(array)
    message = f"all {np.count_nonzero(~np.isnan(array))} rating(s) equal 4: nothing tells good pairs from bad ones"
    with pytest.warns(DataWarning, match=re.escape(message)):
        return model.fit(array)


@every_model
def test_one_rating_and_ratings_that_are_all_equal(make):
    array = np.full((3, 2), np.nan)
    array[1, 0] = 4.0
    model = fit_constant(make, array)
    assert np.isfinite(scores_of_all(model, range(3), range(2))).all()
    assert model.predict(2, 99, unknown="mean")[0] == (0 if isinstance(model, GraphRanker) else 4)
    assert model.recommend(1, 2)["item"].tolist() == [1]
    model = fit_constant(make, np.full((5, 4), 4.0))
    assert np.isfinite(scores_of_all(model, range(5), range(4))).all()


# -------------------------------------------------------------------- one number for data not seen, and searches


@every_model
def test_a_score_is_minus_the_rmse_of_predict_or_the_ndcg_of_lists(make):
    model = fitted(make)
    pairs = pd.DataFrame({"user": np.repeat(USERS, len(ITEMS)), "item": ITEMS * len(USERS)})
    rated = pd.MultiIndex.from_frame(frame()[["user", "item"]])
    test = pairs[~pd.MultiIndex.from_frame(pairs).isin(rated)].head(8).assign(rating=np.arange(8) % 5 + 1.0)
    if isinstance(model, GraphRanker):
        assert 0 <= model.score(test) <= 1
        with pytest.raises(DataError, match=r"have not taken before, found none in \d+ pairs"):
            model.score(frame())
        return
    test = pd.concat([test, pd.DataFrame({"user": ["nobody", USERS[0]], "item": [ITEMS[0], "none"], "rating": 2.0})])
    expected = model.predict(test["user"], test["item"], unknown="mean")
    assert isinstance(model.score(test), float)
    assert model.score(test) == pytest.approx(-rmse(test["rating"], expected))


def test_scores_of_lists_are_those_of_recommend():
    likes = frame().assign(rating=1)
    hidden = likes.groupby("user").tail(1)
    model = GraphRanker(n_factors=3, settings={}, device="cpu").fit(likes.drop(hidden.index))
    lists: Any = model.recommend(USERS, 10).pivot_table(index="user", columns="rank", values="item", aggfunc="first")
    places: Any = lists.reindex(USERS).map(lambda item: ITEMS.index(item) if isinstance(item, str) else -1).to_numpy()
    known: Any = hidden[hidden["item"].isin(model.interactions_.item_ids)]
    relevant = sp.csr_array(
        (np.ones(len(known)), (known["user"].map(USERS.index), known["item"].map(ITEMS.index))),
        shape=(len(USERS), len(ITEMS)),
    )
    assert model.score(hidden) == pytest.approx(ndcg_at_k(places, relevant, k=places.shape[1]))
    again = pd.concat([hidden, likes.drop(hidden.index).head(3)])  # what was taken before does not count
    assert model.score(again) == model.score(hidden)


def test_a_grid_search_finds_the_setting_of_the_lowest_error():
    model = AIR.for_ratings(random_state=0, device="cpu", n_sweeps=3)
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"n_factors": [1, 3], "solver__n_sweeps": [2, 4]}, cv=folds).fit(frame())
    results = pd.DataFrame(search.cv_results_)
    assert search.best_score_ == results["mean_test_score"].max()
    expected = cross_val_score(model.set_params(**search.best_params_), frame(), cv=folds)
    assert search.best_score_ == pytest.approx(expected.mean())
    assert search.score(frame()) == search.best_estimator_.score(frame())
    grid = {"settings": [{"regression_penalty": 1.0}, {"regression_penalty": 100.0}]}
    search = GridSearchCV(GraphRanker(n_factors=2, device="cpu"), grid, cv=KFold(2, shuffle=True, random_state=0))
    assert 0 < search.fit(frame().assign(rating=1)).best_score_ <= 1


def test_a_score_reads_times_and_models_of_none_go_without():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"user": np.repeat(range(20), 12), "item": np.tile(range(12), 20)})
    table["timestamp"] = np.arange(len(table))
    table["rating"] = 3 + np.sin(table["timestamp"] / 40) + rng.normal(0, 0.1, len(table))
    data = Interactions.from_frame(table, timestamp="timestamp")
    model = AIR.for_ratings(time="drift", n_factors=2, random_state=0, device="cpu").fit(data)
    of_times = model.predict(table["user"], table["item"], timestamps=table["timestamp"])
    assert model.score(data) == pytest.approx(-rmse(table["rating"], of_times))
    assert model.score(table.drop(columns="timestamp")) < model.score(data)
    assert BiasModel().fit(data).score(data) == BiasModel().fit(data).score(table.drop(columns="timestamp"))
