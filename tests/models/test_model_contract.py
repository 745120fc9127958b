"""What every model keeps to: fitting, predicting, ids, and data at the edges."""

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
    USERS,
    all_scores,
    assert_same_answers,
    dense,
    every_model,
    fitted,
    frame,
    models_with_graphs,
    trained_models,
)
from sklearn.base import clone

from air_recsys import Interactions
from air_recsys.exceptions import DataError, DataWarning, NotFittedError, ParameterError, UnknownIdError
from air_recsys.models import GraphRanker, Recommender
from air_recsys.models.trained import TrainedRecommender


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


def scores_of_all(model, users, items):
    return model.predict(np.repeat(users, len(items)), np.tile(items, len(users)))


# -------------------------------------------------------------------- fitting


@every_model
def test_fit_returns_the_model_and_a_second_fit_is_a_fresh_one(make):
    model, fresh = make(), make()
    model.fit(frame(seed=1))
    model.recommend(USERS[:2], 3)
    model.similar_users(USERS[0])
    assert model.fit(frame()) is model
    assert_same_answers(model, fresh.fit(frame()))


@every_model
def test_every_container_is_the_same_data(make):
    array = dense()
    rows, columns = np.nonzero(~np.isnan(array))
    sparse = sp.csr_array((array[rows, columns], (rows, columns)), shape=array.shape)
    table = pd.DataFrame({"user": rows, "item": columns, "rating": array[rows, columns]})
    expected = make().fit(Interactions.from_dense(array)).predict(rows, columns)
    for data in (array, sparse, table, array.tolist()):
        np.testing.assert_array_equal(make().fit(data).predict(rows, columns), expected)


@every_model
def test_fit_changes_neither_the_parameters_nor_the_data(make):
    model, data = make(), Interactions.from_frame(frame())
    parameters, before = model.get_params(), data.to_frame()
    model.fit(data)
    assert model.get_params() == parameters
    pd.testing.assert_frame_equal(data.to_frame(), before)


@every_model
def test_the_constructor_only_stores_and_clone_and_set_params_work(make):
    model: Any = make()
    marks = {name: object() for name in model.get_params(deep=False)}
    stored = type(model)(**marks)
    assert {name: getattr(stored, name) for name in marks} == marks
    copy: Any = clone(model.fit(frame()))
    assert not hasattr(copy, "global_mean_")
    assert copy.get_params() == model.get_params()
    assert_same_answers(copy.fit(frame()), model)
    for name, value in model.get_params().items():
        assert model.set_params(**{name: value}) is model


@every_model
def test_unusable_data_is_refused_and_the_model_stays_as_it_was(make):
    model = fitted(make)
    expected = all_scores(model)
    with fails(DataError, "expected Interactions, a SciPy sparse matrix, a DataFrame"):
        model.fit("ratings.csv")
    with fails(DataError, "expected at least one rating, found none"):
        model.fit(np.full((2, 2), np.nan))
    np.testing.assert_array_equal(all_scores(model), expected)


@trained_models
def test_a_fit_that_fails_on_the_way_leaves_the_model_as_it_was(make):
    model, fresh = fitted(make), make()
    scores = all_scores(model)
    with fails(ParameterError, "random_state must be an integer >= 0, found 'seven'"):
        model.set_params(random_state="seven").fit(dense()[:4])
    np.testing.assert_array_equal(all_scores(model), scores)  # refused before any work

    def fail(record):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        model.set_params(random_state=0).fit(dense()[:4], callbacks=[fail])
    assert_same_answers(model, fitted(make))
    with pytest.raises(RuntimeError):
        fresh.fit(dense()[:4], callbacks=[fail])
    with fails(NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
        fresh.predict(0, 0)


@every_model
def test_nothing_is_answered_before_fit(make):
    model = make()
    for ask in (
        lambda: model.predict(1, 1),
        lambda: model.recommend(1),
        lambda: model.similar_users(1),
        lambda: model.similar_items(1),
        lambda: model.save("model.air"),
    ):
        with fails(NotFittedError, f"this {type(model).__name__} is not fitted yet: call fit first"):
            ask()


# -------------------------------------------------------------------- predicting


@every_model
def test_call_forms_agree(make):
    model = fitted(make)
    row = model.predict([USERS[1]] * N_ITEMS, ITEMS)
    assert row.shape == (N_ITEMS,)
    assert row.dtype == np.float64
    np.testing.assert_array_equal(model.predict(USERS[1], ITEMS), row)
    np.testing.assert_array_equal(model.predict([USERS[1]], np.array(ITEMS)), row)
    np.testing.assert_array_equal(model.predict(USERS[1], pd.Series(ITEMS)), row)
    # A processor may sum the products of another number of pairs in another order.
    np.testing.assert_allclose(model.predict([USERS[1], USERS[1]], [ITEMS[0], ITEMS[3]]), row[[0, 3]], rtol=1e-5)
    np.testing.assert_allclose(model.predict(USERS[1], ITEMS[3]), row[[3]], rtol=1e-5)
    column = model.predict(USERS, ITEMS[3])
    assert column.shape == (N_USERS,)
    assert column[1] == row[3]
    assert model.predict([], []).shape == (0,)


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
def test_pairs_that_do_not_match_are_refused(make):
    model = fitted(make)
    with fails(DataError, "expected as many users as items, found 2 and 3"):
        model.predict(USERS[:2], ITEMS[:3])


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
    np.testing.assert_allclose(scores[:3], means, rtol=1e-14)
    assert scores[3] == model.predict(USERS[3], ITEMS[4])[0]


@every_model
def test_unknown_ids_are_errors_where_asked_for(make):
    model = fitted(make)
    message = "2 user id(s) were not in the training data: 'nobody', 7; "
    with fails(UnknownIdError, message):
        model.predict(["nobody", USERS[0], 7], ITEMS[0], unknown="error")
    with fails(UnknownIdError, "1 item id(s) were not in the training data: 'nothing'"):
        model.predict(USERS[0], "nothing", unknown="error")
    with fails(ParameterError, "unknown must be one of 'warn', 'mean', 'error', found 'skip'"):
        model.predict(USERS[0], ITEMS[0], unknown="skip")


@every_model
def test_unknown_ids_are_told_once_and_refused_where_all_are(make):
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


# -------------------------------------------------------------------- ids and order


@every_model
def test_the_order_of_the_ratings_does_not_matter(make):
    table = frame()
    first, second = make().fit(table), make().fit(table.sample(frac=1, random_state=0))
    np.testing.assert_allclose(all_scores(second), all_scores(first), rtol=1e-4, atol=1e-6)
    for user in USERS:
        assert second.recommend(user, 4)["item"].tolist() == first.recommend(user, 4)["item"].tolist()


@pytest.mark.parametrize("name", ["BiasModel", "GlobalMean"])
def test_models_without_chance_follow_a_permutation_of_users_and_items(name):
    rng = np.random.default_rng(0)
    users, items = rng.permutation(N_USERS), rng.permutation(N_ITEMS)
    model = MODELS[name]().fit(Interactions.from_dense(dense()))
    moved = MODELS[name]().fit(Interactions.from_dense(dense()[np.ix_(users, items)], users, items))
    pairs = np.repeat(np.arange(N_USERS), N_ITEMS), np.tile(np.arange(N_ITEMS), N_USERS)
    np.testing.assert_allclose(moved.predict(*pairs), model.predict(*pairs), rtol=1e-6)


@every_model
def test_ids_of_any_type_are_answered_in_kind(make):
    strings = fitted(make)
    integers = make().fit(dense())
    mixed = make().fit(
        Interactions.from_dense(dense(), [*USERS[:-1], 11], [("item", item) for item in range(N_ITEMS)])
    )
    np.testing.assert_array_equal(strings.predict(USERS[2], ITEMS[5]), integers.predict(2, 5))
    np.testing.assert_array_equal(mixed.predict([11, USERS[2]], [("item", 5)]), integers.predict([11, 2], 5))
    assert integers.recommend(2, 2)["item"].dtype == np.int64
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
    assert 7 in model.recommend(1, N_ITEMS, exclude_seen=False)["item"].tolist()
    for found in (model.similar_users(5), model.similar_items(7)):
        assert np.isfinite(found["weight"]).all()
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
def test_one_rating(make):
    array = np.full((3, 2), np.nan)
    array[1, 0] = 4.0
    model = fit_constant(make, array)
    assert np.isfinite(scores_of_all(model, range(3), range(2))).all()
    assert model.predict(2, 99, unknown="mean")[0] == 4.0
    assert model.recommend(1, 2)["item"].tolist() == [1]


@every_model
def test_ratings_that_are_all_equal(make):
    model = fit_constant(make, np.full((5, 4), 4.0))
    assert np.isfinite(scores_of_all(model, range(5), range(4))).all()


@models_with_graphs
def test_graphs_hold_every_user_and_item_in_the_order_of_the_ids(make):
    model: Recommender = fitted(make)
    for graph, ids, kind in ((model.user_graph_, USERS, "user"), (model.item_graph_, ITEMS, "item")):
        assert graph is not None
        assert graph.ids.tolist() == ids
        assert graph.kind == kind
        matrix = graph.to_scipy()
        assert (matrix != matrix.T).nnz == 0
        assert not matrix.diagonal().any()
        assert matrix.data.min() > 0
