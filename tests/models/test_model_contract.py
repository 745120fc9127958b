"""What every model keeps to: fitting, predicting, ids, scores of new data, and data at the edges."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
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
    all_scores,
    answers_of,
    assert_same_answers,
    dense,
    every_model,
    fails,
    fitted,
    frame,
    models_with_graphs,
    trained_models,
)
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from air_recsys import AIR, BiasModel, Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.metrics import ndcg_at_k, rmse
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.trained import TrainedRecommender

pytestmark = pytest.mark.filterwarnings("ignore:each row counts as one like")  # of ratings given to all models


def scores_of_all(model, users, items):
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


# -------------------------------------------------------------------- fitting


@every_model
def test_a_second_fit_is_a_fresh_one(make):
    model = make().fit(frame(seed=1))
    model.recommend(USERS[:2], 3)
    model.similar_users(USERS[0])
    assert model.fit(frame()) is model
    assert_same_answers(model, fitted(make))


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


@every_model
def test_the_constructor_only_stores_and_fit_changes_neither_the_parameters_nor_the_data(make):
    model: Any = fitted(make)
    marks = {name: object() for name in model.get_params(deep=False)}
    stored = type(model)(**marks)
    assert {name: getattr(stored, name) for name in marks} == marks
    copy: Any = clone(model)
    assert not hasattr(copy, "global_mean_")
    data = Interactions.from_frame(frame())
    before = data.to_frame()
    assert_same_answers(copy.fit(data), model)
    assert copy.get_params() == model.get_params() == make().get_params()
    pd.testing.assert_frame_equal(data.to_frame(), before)
    for name, value in model.get_params().items():
        assert model.set_params(**{name: value}) is model


@every_model
def test_unusable_data_is_refused_and_the_model_stays_as_it_was(make):
    model = fitted(make)
    expected, pair = all_scores(model), frame().iloc[5]
    for data, message in (
        ("ratings.csv", "expected Interactions, a SciPy sparse matrix, a DataFrame"),
        (np.full((2, 2), np.nan), "expected at least one rating, found none"),
        (pd.concat([frame(), frame().iloc[[5]]]), f"user {pair['user']!r} and item {pair['item']!r}"),
    ):
        with fails(DataError, message):
            model.fit(data)
    np.testing.assert_array_equal(all_scores(model), expected)


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


@every_model
def test_nothing_is_answered_before_fit(make):
    model = make()
    for ask in (
        lambda: model.predict(1, 1),
        lambda: model.recommend(1),
        lambda: model.similar_users(1),
        lambda: model.similar_items(1),
        lambda: model.save("model.air"),
        lambda: model.score(frame()),
        *([lambda: model.partial_fit(frame())] if hasattr(model, "partial_fit") else []),
    ):
        with fails(NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
            ask()


# -------------------------------------------------------------------- predicting


@every_model
def test_call_forms_agree(make):
    model = fitted(make)
    row = model.predict([USERS[1]] * N_ITEMS, ITEMS)
    assert (row.shape, row.dtype) == ((N_ITEMS,), np.float64)
    for user, items in ((USERS[1], ITEMS), ([USERS[1]], np.array(ITEMS)), (USERS[1], pd.Series(ITEMS))):
        np.testing.assert_array_equal(model.predict(user, items), row)
    # A processor may sum the products of another number of pairs in another order.
    np.testing.assert_allclose(model.predict([USERS[1], USERS[1]], [ITEMS[0], ITEMS[3]]), row[[0, 3]], rtol=1e-5)
    np.testing.assert_allclose(model.predict(USERS[1], ITEMS[3]), row[[3]], rtol=1e-5)
    column = model.predict(USERS, ITEMS[3])
    assert column.shape == (N_USERS,)
    assert column[1] == row[3]
    assert model.predict([], []).shape == (0,)
    with fails(DataError, "expected as many users as items, found 2 and 3"):
        model.predict(USERS[:2], ITEMS[:3])


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


@every_model
def test_unknown_ids_are_told_once_and_refused_where_all_are_or_asked_for(make):
    model = fitted(make)
    asked = [USERS[0], USERS[1].upper(), "nobody", USERS[0]], [ITEMS[2], ITEMS[2], ITEMS[2], "nothing"]
    near = ", ".join(map(repr, model.interactions_.users.nearest(USERS[1])))
    message = (
        f"3 of 4 pairs get a mean rating, as 2 user id(s) are unknown ({USERS[1].upper()!r}, nearest known: {near}"
    )
    with pytest.warns(DataWarning, match=re.escape(message)) as told:
        scores = model.predict(*asked)
    assert len(told) == 1
    assert told[0].filename == __file__
    silent = model.predict(*asked, unknown="mean")
    np.testing.assert_array_equal(scores, silent)
    table = model.predict_table(*asked, unknown="mean")
    assert table["source"].tolist() == ["model", "item mean", "item mean", "user mean"]
    assert table[["user", "item"]].T.to_numpy().tolist() == list(asked)
    np.testing.assert_array_equal(table["score"], silent)
    message = f"1 item id(s) were not in the training data: {ITEMS[1].upper()!r}; the nearest known are {ITEMS[1]!r}"
    for ask in (model.predict, model.predict_table):
        with fails(UnknownIdError, message):
            ask(USERS, ITEMS[1].upper())
        with fails(UnknownIdError, "2 user id(s) were not in the training data: 'nobody', 7; "):
            ask(["nobody", USERS[0], 7], ITEMS[0], unknown="error")
        with fails(ParameterError, "unknown must be one of 'warn', 'mean', 'error', found 'skip'"):
            ask(USERS[0], ITEMS[0], unknown="skip")


@every_model
def test_eight_threads_get_the_answers_of_one(make, tmp_path):
    model = fitted(make)
    expected = answers_of(Recommender.load(model.save(tmp_path / "model.air")))
    together = threading.Barrier(8)

    def ask(_: int) -> list[np.ndarray]:
        together.wait()  # all find the caches empty
        return answers_of(model)

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)


# -------------------------------------------------------------------- ids and order


@every_model
def test_the_order_of_the_ratings_does_not_matter(make):
    first, second = fitted(make), make().fit(frame().sample(frac=1, random_state=0))
    np.testing.assert_allclose(all_scores(second), all_scores(first), rtol=1e-4, atol=1e-6)
    for user in USERS:
        assert second.recommend(user, 4)["item"].tolist() == first.recommend(user, 4)["item"].tolist()


# Patches of a picture are tied to their places. Trainings from a permuted start: tests/nn/test_permutation.py.


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


@every_model
def test_users_and_items_without_ratings_are_kept(make):
    array = dense()
    array[5], array[:, 7] = np.nan, np.nan
    model = make().fit(array)
    scores = scores_of_all(model, range(N_USERS), range(N_ITEMS))
    assert np.isfinite(scores).all()
    assert len(model.recommend(5, N_ITEMS)) == N_ITEMS
    found = model.recommend(1, N_ITEMS, exclude_seen=False)["item"]
    assert found.dtype == np.int64
    assert 7 in found.tolist()
    for alike in (model.similar_users(5), model.similar_items(7)):
        assert np.isfinite(alike["weight"]).all()
    assert model.interactions_.n_users == N_USERS


@pytest.mark.parametrize(("name", "shape"), covering(MODELS, [(1, 6), (6, 1), (1, 6), (2, 2), (6, 1)]))
def test_small_data(name, shape):
    array = np.random.default_rng(0).integers(1, 6, shape).astype(float)
    array[0, 0] = 1
    array[-1, -1] = 5
    model = MODELS[name]().fit(array)
    assert np.isfinite(scores_of_all(model, range(shape[0]), range(shape[1]))).all()
    for found, size in zip((model.similar_users(0), model.similar_items(0)), shape, strict=True):
        assert len(found) <= size - 1
    assert len(model.recommend(0, 1, exclude_seen=False)) == 1


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


@models_with_graphs
def test_graphs_hold_every_user_and_item_in_the_order_of_the_ids(make):
    model: Recommender = fitted(make)
    for graph, ids, kind in ((model.user_graph_, USERS, "user"), (model.item_graph_, ITEMS, "item")):
        assert graph is not None
        assert (graph.ids.tolist(), graph.kind) == (ids, kind)
        matrix = graph.to_scipy()
        assert (matrix != matrix.T).nnz == 0
        assert not matrix.diagonal().any()
        assert matrix.data.min() > 0


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
