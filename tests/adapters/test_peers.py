"""Other libraries' models beside ours: what they are given, and what becomes of their answers."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from air_recsys import Interactions
from air_recsys.adapters.cornac_peer import CornacLists, CornacModel
from air_recsys.adapters.lightfm_peer import LightFMLists
from air_recsys.adapters.myfm_peer import MyFMModel, _blocks, _table
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.exceptions import ParameterError
from air_recsys.metrics import rmse
from air_recsys.splits import random_holdout

NAN = np.nan


@pytest.fixture(scope="module")
def data():
    return make_planted_ratings(30, 20, 300, 3, 2).interactions


def test_predictions_are_those_of_cornac_whatever_the_order_of_the_pairs_and_the_mean_of_unknown_ids(data):
    model = CornacModel("MF", k=3, seed=0, num_threads=1).fit(data)
    users, items = data.user_ids[data.user_index], data.item_ids[data.item_index]
    order = np.random.default_rng(0).permutation(users.size)
    known = model.model.train_set
    expected = [
        model.model.rate(known.uid_map[user], known.iid_map[item], clipping=False)
        for user, item in zip(users[order], items[order], strict=True)
    ]
    np.testing.assert_allclose(model.predict(users[order], items[order]), expected, rtol=1e-6)
    mean = model.model.default_score()
    np.testing.assert_array_equal(model.predict(["x", data.user_ids[0]], [data.item_ids[0], "y"]), [mean, mean])


def test_lists_of_cornac_hold_the_best_unseen_items(data):
    model = CornacLists("BPR", seed=0, num_threads=1).fit(data)
    known, seen = model.model.train_set, data.to_csr().toarray() > 0
    scores = np.full(seen.shape, -np.inf)
    for place, user in enumerate(data.user_ids):
        of_known = model.model.score(known.uid_map[user])
        for column, item in enumerate(data.item_ids):
            scores[place, column] = of_known[known.iid_map[item]]
    scores[seen] = -np.inf
    users = np.array([4, 0])
    np.testing.assert_array_equal(model.lists(users, 3), np.argsort(-scores[users], axis=1)[:, :3])
    with pytest.raises(ParameterError, match=r"class of cornac.models, found 'Magic'"):
        CornacLists("Magic")


class Counting:
    """A stand-in for LightFM that scores items by their likes."""

    def __init__(self, loss, random_state):
        self.loss, self.seed = loss, random_state

    def fit(self, interactions, epochs, num_threads):
        assert interactions.dtype == np.float32
        assert (interactions.data == 1).all()
        self.counts = interactions.toarray().sum(axis=0)

    def predict(self, user, items):
        assert isinstance(user, int)
        return self.counts[items]


def test_lists_of_lightfm_hold_the_best_unseen_items(monkeypatch):
    module = ModuleType("lightfm")
    module.LightFM = Counting  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lightfm", module)
    data = Interactions.from_dense([[5, 2, NAN, NAN], [NAN, 3, 1, NAN], [NAN, 4, 2, 1]])
    model = LightFMLists("warp", random_state=0).fit(data)
    assert model.lists(np.array([1, 0]), 2).tolist() == [[0, 3], [2, 3]]


flipped_or_not = pytest.mark.parametrize("implicit", [False, True])  # with the patterns of Bayesian SVD++ flipped


def unrated():
    """A user and an item without ratings, the last ones."""
    matrix = np.full((4, 3), NAN)
    matrix[:3, :2] = [[5, 3], [NAN, 4], [1, NAN]]
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


@flipped_or_not
def test_features_stand_beside_and_tell_of_items_without_ratings(implicit):
    data = make_planted_ratings(60, 40, 1200, 2, 2).interactions
    biases = np.zeros(data.n_items)
    np.add.at(biases, data.item_index, data.ratings - data.ratings.mean())
    table = pd.DataFrame({"liked": biases}, index=data.item_ids)
    hidden = np.argsort(biases)[[0, -1]]
    shown = data.select(~np.isin(data.item_index, hidden)).with_features(item=table)
    low, high = MyFMModel(2, 40, implicit=implicit).fit(shown).predict([0, 0], data.item_ids[hidden])
    assert low < high


@flipped_or_not
def test_pairs_with_unknown_ids_or_without_ratings_are_predicted_from_what_is_known(implicit, capsys):
    model = MyFMModel(2, 20, implicit=implicit).fit(unrated())
    assert np.isfinite(model.predict([0, 3, 3], [2, 0, 2])).all()
    found = model.predict([0, "new", 0, "new"], [0, 0, "other", "other"])
    assert np.isfinite(found).all()
    assert found[0] == model.predict([0], [0])[0]
    assert len(set(found)) == 4
    assert capsys.readouterr().err == ""  # no progress bar of a library that is timed


@flipped_or_not
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
