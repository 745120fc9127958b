"""Cornac's models beside ours: predictions and lists are Cornac's own, by the ids and positions of the data."""

import numpy as np
import pytest

from air_recsys.adapters.cornac_peer import CornacLists, CornacModel
from air_recsys.data.sets.planted import make_planted_ratings
from air_recsys.exceptions import ParameterError


@pytest.fixture(scope="module")
def data():
    return make_planted_ratings(30, 20, 300, 3, 2).interactions


def test_predictions_are_those_of_cornac_whatever_the_order_of_the_pairs(data):
    model = CornacModel("MF", k=3, seed=0, num_threads=1).fit(data)
    users, items = data.user_ids[data.user_index], data.item_ids[data.item_index]
    order = np.random.default_rng(0).permutation(users.size)
    known = model.model.train_set
    expected = [
        model.model.rate(known.uid_map[user], known.iid_map[item], clipping=False)
        for user, item in zip(users[order], items[order], strict=True)
    ]
    np.testing.assert_allclose(model.predict(users[order], items[order]), expected, rtol=1e-6)


def test_lists_hold_the_best_unseen_items(data):
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


def test_unknown_ids_get_the_mean(data):
    model = CornacModel("MF", k=3, seed=0, num_threads=1).fit(data)
    mean = model.model.default_score()
    np.testing.assert_array_equal(model.predict(["x", data.user_ids[0]], [data.item_ids[0], "y"]), [mean, mean])


def test_a_name_that_cornac_does_not_have():
    with pytest.raises(ParameterError, match=r"class of cornac.models, found 'Magic'"):
        CornacLists("Magic")
