"""Peers that read the order: later items count more, by a half-life that the training data choose."""

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.exceptions import DataError
from air_recsys.metrics import ndcg_at_k
from air_recsys.models.graph_ranker.hidden import latest_of_rows
from air_recsys.models.graph_ranker.inputs import interaction_pattern, interaction_times, with_half_life
from benchmarks.accuracy.peers.autoencoders import EASE
from benchmarks.accuracy.ranking_systems import choice_of, ranking_systems, systems_by_default
from benchmarks.accuracy.searches import HALF_LIVES, HalfLives

N_USERS, N_ITEMS, N_STEPS = 60, 30, 10


@pytest.fixture(scope="module")
def walks() -> Interactions:
    """Steps along a ring of items, with some noise."""
    rng = np.random.default_rng(0)
    users, steps = np.divmod(np.arange(N_USERS * N_STEPS), N_STEPS)
    items = (rng.integers(0, N_ITEMS, N_USERS)[users] + 2 * steps + rng.integers(0, 2, users.size)) % N_ITEMS
    return Interactions(users, items, np.ones(users.size), range(N_USERS), range(N_ITEMS), timestamps=steps)


def test_the_half_life_is_the_best_on_the_latest_fifth_of_each_user(walks):
    model = HalfLives(EASE(1.0).fit).fit(walks)
    part = latest_of_rows(interaction_pattern(walks), interaction_times(walks), 0)
    trial, asked = EASE(1.0).fit(Interactions.from_csr(part.shown)), np.flatnonzero(np.diff(part.hidden.indptr))
    for half_life in HALF_LIVES:
        own = with_half_life(part.shown, part.times, half_life)[asked]
        assert model.figures_[half_life] == ndcg_at_k(trial.lists_of_new(own, 20), part.hidden[asked], 20)
    assert model.figures_[model.settings_["half_life"]] == max(model.figures_.values())
    assert 0 < model.settings_["half_life"] < 100  # who walks on does not come back


def test_lists_are_of_the_weighed_items_and_have_no_item_again(walks):
    model, users = HalfLives(EASE(1.0).fit).fit(walks), np.array([3, 0])
    own = with_half_life(interaction_pattern(walks), interaction_times(walks), model.settings_["half_life"])
    lists = model.lists(users, 5)
    np.testing.assert_array_equal(lists, EASE(1.0).fit(walks).lists_of_new(own[users], 5))
    seen = interaction_pattern(walks)[users].toarray() > 0
    assert not seen[np.arange(2)[:, None], lists].any()


def test_without_times_there_is_no_half_life(walks):
    with pytest.raises(DataError, match="expected interactions with timestamps that differ, found none"):
        HalfLives(EASE(1.0).fit).fit(Interactions.from_csr(sp.csr_array(walks.to_csr())))


def test_peers_have_half_lives_where_the_last_items_are_tested():
    named = {
        data: [name for name in systems_by_default(data) if "half-lives" in name]
        for data in ("gowalla", "gowalla-order", "yelp2018-order", "ml-100k-last", "ml-100k-time")
    }
    assert named["gowalla"] == named["ml-100k-time"] == []
    assert named["gowalla-order"] == named["yelp2018-order"] == ["GF-CF, half-lives"]
    assert {"implicit ALS, half-lives", "EASE, half-lives"} < set(named["ml-100k-last"])
    assert "implicit BPR, half-lives" not in named["ml-100k-last"]  # it makes no lists from items alone
    told = ranking_systems("gowalla-order")["GF-CF, half-lives"].settings
    assert "the settings of the paper for this split; and the best on the hidden latest fifth of" in told
    assert told.endswith("half_life=0 | 1 | 3 | 10 | 30 | 100")


def test_a_searched_peer_tells_its_settings_and_its_half_life(walks):
    told = choice_of(ranking_systems("ml-100k-last")["EASE, half-lives"].train(walks))
    assert told.startswith("decay=")
    assert ", half_life=" in told
