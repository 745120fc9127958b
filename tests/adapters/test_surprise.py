"""Surprise: trainsets with our ids, and its algorithms under our fit and predict."""

import re
from typing import Any

import numpy as np
import pytest
import surprise

from air_recsys import Interactions
from air_recsys.adapters.surprise import to_trainset
from air_recsys.adapters.surprise_peer import SurpriseModel
from air_recsys.exceptions import DataError, ParameterError

NAN = np.nan
RATINGS = np.array([[5, 3, NAN, 1], [4, NAN, 2, 1], [1, 1, NAN, 5], [NAN, 2, 4, 4]])
QUIET = {"SVD": {"random_state": 0}, "SVDpp": {"random_state": 0}, "NMF": {"random_state": 0}}
QUIET |= {name: {"verbose": False} for name in ("KNNBasic", "KNNWithMeans", "KNNBaseline", "BaselineOnly")}
QUIET |= {"SlopeOne": {}, "CoClustering": {"random_state": 0}}
every_algorithm = pytest.mark.parametrize("algorithm", QUIET)


def data(users: Any = "abcd", items: Any = "wxyz", ratings=RATINGS):
    return Interactions.from_dense(ratings, list(users), list(items))


def fails(error, message):
    return pytest.raises(error, match=re.escape(message))


# -------------------------------------------------------------------- trainsets


def test_a_trainset_has_our_ids_indices_and_ratings():
    trainset = to_trainset(data())
    assert (trainset.n_users, trainset.n_items, trainset.n_ratings) == (4, 4, 12)
    assert trainset.rating_scale == (1.0, 5.0)
    assert [trainset.to_inner_uid(user) for user in "abcd"] == [0, 1, 2, 3]
    assert [trainset.to_raw_iid(item) for item in range(4)] == list("wxyz")
    assert trainset.global_mean == pytest.approx(np.nanmean(RATINGS))
    for user, item, rating in trainset.all_ratings():
        assert RATINGS[user, item] == rating
    assert dict(trainset.ir[2]) == {1: 2.0, 3: 4.0}


def test_users_and_items_without_ratings_keep_their_ids():
    sparse = RATINGS.copy()
    sparse[1], sparse[:, 0] = NAN, NAN
    trainset = data(ratings=sparse).to_surprise()
    assert (trainset.n_users, trainset.n_items) == (4, 4)
    assert trainset.to_inner_uid("b") == 1
    assert (trainset.ur[1], trainset.ir[0]) == ([], [])


def test_ids_are_plain_values_of_python():
    trainset = Interactions.from_dense(RATINGS, [7, 8, 9, 10]).to_surprise()
    assert {type(trainset.to_raw_uid(user)) for user in range(4)} == {int}


def test_round_trip():
    again = Interactions.from_surprise(data().to_surprise())
    np.testing.assert_array_equal(again.to_dense(), RATINGS)
    assert (again.user_ids.tolist(), again.item_ids.tolist()) == (list("abcd"), list("wxyz"))


# -------------------------------------------------------------------- algorithms


@every_algorithm
def test_predictions_are_those_of_the_algorithm(algorithm):
    model = SurpriseModel(algorithm, **QUIET[algorithm])
    assert model.fit(data()) is model
    host = getattr(surprise, algorithm)(**QUIET[algorithm]).fit(to_trainset(data()))
    scores = model.predict(list("abda"), list("yxwz"))
    assert scores.dtype == np.float64
    expected = [host.predict(user, item).est for user, item in zip("abda", "yxwz", strict=True)]
    np.testing.assert_array_equal(scores, expected)


@every_algorithm
def test_users_and_items_without_ratings_are_unknown_to_the_algorithm(algorithm):
    sparse = RATINGS.copy()
    sparse[1], sparse[:, 0] = NAN, NAN
    model = SurpriseModel(algorithm, **QUIET[algorithm]).fit(data(ratings=sparse))
    scores = model.predict(["b", "a", "nobody"], ["x", "w", "nothing"])
    assert np.isfinite(scores).all()
    assert ((scores >= 1) & (scores <= 5)).all()


def test_every_container_of_ratings_is_accepted():
    array = SurpriseModel("BaselineOnly", verbose=False).fit(RATINGS).predict([0, 3], [2, 0])
    table = (
        SurpriseModel("BaselineOnly", verbose=False).fit(data(range(4), range(4)).to_frame()).predict([0, 3], [2, 0])
    )
    np.testing.assert_array_equal(array, table)


def test_ids_of_different_types_stay_what_they_are():
    mixed = data(users=["a", 1, "b", 2])
    model = SurpriseModel("BaselineOnly", verbose=False).fit(mixed)
    plain = SurpriseModel("BaselineOnly", verbose=False).fit(data())
    np.testing.assert_allclose(model.predict(["a", 1], ["x", "y"]), plain.predict(["a", "b"], ["x", "y"]))
    assert model.predict([], []).shape == (0,)


def test_what_cannot_be_used_is_named():
    with fails(ParameterError, "algorithm must be a class of surprise.prediction_algorithms, found 'SVM'"):
        SurpriseModel("SVM")
    with fails(DataError, "expected as many users as items, found 2 and 1"):
        SurpriseModel("SVD").fit(data()).predict(["a", "b"], ["x"])
