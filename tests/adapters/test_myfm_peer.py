"""myFM is given what its own Bayesian SVD++ flipped is given, and fits what can be fitted."""

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.adapters.myfm_peer import MyFMModel, _blocks, _table
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.metrics import rmse
from air_recsys.splits import random_holdout


def unrated():
    """A user and an item without ratings, the last ones."""
    matrix = np.full((4, 3), np.nan)
    matrix[:3, :2] = [[5, 3], [np.nan, 4], [1, np.nan]]
    return Interactions.from_dense(matrix)


def test_users_and_items_are_described_by_themselves_and_by_a_unit_pattern():
    data = unrated()
    described = [_table(parts).toarray() for parts in _blocks(data, implicit=True)]
    assert not any(table[-1].any() for table in described)  # of unknown ids
    users, items = (table[:-1] for table in described)
    rated = data.to_csr().toarray() > 0
    for table, pattern in ((users, rated), (items, rated.T)):
        np.testing.assert_array_equal(table[:, : len(table)], np.eye(len(table)))
        np.testing.assert_array_equal(table[:, len(table) :] > 0, pattern)
        np.testing.assert_allclose(np.linalg.norm(table[:, len(table) :], axis=1), pattern.any(axis=1))


@pytest.mark.parametrize("implicit", [False, True])
def test_features_stand_beside_and_tell_of_items_without_ratings(implicit):
    data = make_planted_ratings(60, 40, 1200, 2, 2).interactions
    biases = np.zeros(data.n_items)
    np.add.at(biases, data.item_index, data.ratings - data.ratings.mean())
    table = pd.DataFrame({"liked": biases}, index=data.item_ids)
    hidden = np.argsort(biases)[[0, -1]]
    shown = data.select(~np.isin(data.item_index, hidden)).with_features(item=table)
    low, high = MyFMModel(2, 40, implicit=implicit).fit(shown).predict([0, 0], data.item_ids[hidden])
    assert low < high


@pytest.mark.parametrize("implicit", [False, True])
def test_ratings_are_predicted_also_without_any_to_train_on(implicit, capsys):
    model = MyFMModel(2, 20, implicit=implicit).fit(unrated())
    assert np.isfinite(model.predict([0, 3, 3], [2, 0, 2])).all()
    assert capsys.readouterr().err == ""  # no progress bar of a library that is timed


@pytest.mark.parametrize("implicit", [False, True])
def test_pairs_with_unknown_ids_are_predicted_from_what_is_known(implicit):
    model = MyFMModel(2, 20, implicit=implicit).fit(unrated())
    found = model.predict([0, "new", 0, "new"], [0, 0, "other", "other"])
    assert np.isfinite(found).all()
    assert found[0] == model.predict([0], [0])[0]
    assert len(set(found)) == 4


@pytest.mark.parametrize("implicit", [False, True])
def test_planted_ratings_are_found_and_a_seed_is_a_model(implicit):
    data = make_planted_ratings(80, 60, 2400, 3, 2).interactions
    split = random_holdout(data, 0.1, random_state=0)
    train, test = data.select(split.train), data.select(split.test)
    pairs = test.user_ids[test.user_index], test.item_ids[test.item_index]
    first, again = (MyFMModel(3, 60, 1, implicit).fit(train).predict(*pairs) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert rmse(test.ratings, first) < 0.9 * rmse(test.ratings, np.full(test.n_ratings, train.ratings.mean()))


@pytest.mark.parametrize("ordered", [False, True])
def test_days_tell_of_a_mood_of_all(ordered):
    data = make_planted_ratings(60, 40, 1200, 2, 2).interactions
    days = np.random.default_rng(0).integers(0, 2, data.n_ratings)
    ratings = np.where(days, 4.0, 2.0) + np.random.default_rng(1).integers(0, 2, data.n_ratings)
    at = 86_400 * days
    told = Interactions(data.user_index, data.item_index, ratings, data.user_ids, data.item_ids, timestamps=at)
    model = MyFMModel(2, 60, dates=True, ordered=ordered).fit(told)
    pairs, found = (told.user_ids[:20], told.item_ids[:20]), []
    for day in (0, 1, 7):
        found.append(model.predict(*pairs, timestamps=np.full(20, 86_400 * day)))
    assert (found[1] - found[0]).mean() == pytest.approx(2.0, abs=0.4)
    assert found[0].mean() < found[2].mean() < found[1].mean()  # a day that was not seen
