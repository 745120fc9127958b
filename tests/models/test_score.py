"""`score`: one number for data that a model has not seen, in the form that scikit-learn's searches ask for."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from model_cases import ITEMS, MODELS, USERS, every_model, fitted, frame
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from air_recsys import AIR, BiasModel, GlobalMean, Interactions
from air_recsys.exceptions import DataError, NotFittedError
from air_recsys.metrics import ndcg_at_k, rmse
from air_recsys.models import GraphRanker


@every_model
def test_a_score_is_minus_the_rmse_of_predict_or_the_ndcg_of_lists(make):
    model = fitted(make)
    pairs = pd.DataFrame({"user": np.repeat(USERS, len(ITEMS)), "item": ITEMS * len(USERS)})
    rated = pd.MultiIndex.from_frame(frame()[["user", "item"]])
    test = pairs[~pd.MultiIndex.from_frame(pairs).isin(rated)].head(8).assign(rating=np.arange(8) % 5 + 1.0)
    score = model.score(test)
    assert isinstance(score, float)
    if isinstance(model, GraphRanker):
        assert 0 <= score <= 1
    else:
        assert score == pytest.approx(-rmse(test["rating"], model.predict(test["user"], test["item"])))


@every_model
def test_no_score_before_fit(make):
    with pytest.raises(NotFittedError, match="not fitted yet: call fit first"):
        make().score(frame())


def test_pairs_with_unknown_ids_count_as_predict_has_them():
    model = BiasModel().fit(frame())
    test = pd.DataFrame({"user": ["nobody", USERS[0]], "item": [ITEMS[0], "nothing"], "rating": [2.0, 5.0]})
    expected = model.predict(test["user"], test["item"], unknown="mean")
    assert model.score(test) == pytest.approx(-rmse(test["rating"], expected))


def test_the_model_of_the_data_scores_higher_than_the_mean():
    assert fitted(MODELS["AIR-variational"]).score(frame()) > GlobalMean().fit(frame()).score(frame())


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


def test_lists_without_anything_to_find_have_no_score():
    model = fitted(MODELS["GraphRanker"])
    with pytest.raises(
        DataError, match=r"expected items that users .* have not taken before, found none in \d+ pairs"
    ):
        model.score(frame())


def test_a_grid_search_finds_the_setting_of_the_lowest_error():
    model = AIR.for_ratings(random_state=0, device="cpu", n_sweeps=3)
    folds, values = KFold(3, shuffle=True, random_state=0), [1, 3]
    search = GridSearchCV(model, {"n_factors": values, "solver__n_sweeps": [2, 4]}, cv=folds).fit(frame())
    results = pd.DataFrame(search.cv_results_)
    assert search.best_score_ == results["mean_test_score"].max()
    expected = cross_val_score(model.set_params(**search.best_params_), frame(), cv=folds)
    assert search.best_score_ == pytest.approx(expected.mean())
    assert (expected < 0).all()
    assert search.score(frame()) == search.best_estimator_.score(frame())


def test_lists_are_searched_alike():
    likes = frame().assign(rating=1)
    grid = {"settings": [{"regression_penalty": 1.0}, {"regression_penalty": 100.0}]}
    search = GridSearchCV(GraphRanker(n_factors=2, device="cpu"), grid, cv=KFold(2, shuffle=True, random_state=0))
    assert 0 < search.fit(likes).best_score_ <= 1


def test_a_model_of_times_reads_those_of_the_test():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"user": np.repeat(range(20), 12), "item": np.tile(range(12), 20)})
    table["timestamp"] = np.arange(len(table))
    table["rating"] = 3 + np.sin(table["timestamp"] / 40) + rng.normal(0, 0.1, len(table))
    data = Interactions.from_frame(table, timestamp="timestamp")
    model = AIR.for_ratings(time="drift", n_factors=2, random_state=0, device="cpu").fit(data)
    of_times = model.predict(table["user"], table["item"], timestamps=table["timestamp"])
    assert model.score(data) == pytest.approx(-rmse(table["rating"], of_times))
    assert model.score(table.drop(columns="timestamp")) < model.score(data)
