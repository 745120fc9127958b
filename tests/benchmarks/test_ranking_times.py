"""Times of lists: the second training has the settings that the first one chose, and nothing is searched in it."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from air_recsys import Interactions
from air_recsys.evaluation.system import System
from benchmarks.accuracy import ranking
from benchmarks.accuracy.peers.filters import GFCF
from benchmarks.accuracy.ranking import TIMED, bench_ranking_times, untrained
from benchmarks.accuracy.ranking_systems import _train_chosen, ranking_systems

SMALL = {"n_factors": 4, "n_steps": 6, "n_validation": 20, "device": "cpu"}


@pytest.fixture(scope="module")
def likes():
    rng = np.random.default_rng(0)
    chance = np.where(np.arange(60)[:, None] % 3 == np.arange(45) % 3, 0.5, 0.05)
    return Interactions.from_csr(sp.csr_array((rng.random(chance.shape) < chance).astype(float)))


@pytest.fixture
def small_systems(monkeypatch):
    filters = partial(_train_chosen, GFCF, {"weight": (0.3, 1.0), "n_factors": (4,)}, {}, 0, "random")
    systems = {"GraphRanker": ranking_systems("ml-100k", SMALL)["GraphRanker"], "GF-CF": System(filters, "a grid")}
    monkeypatch.setattr(ranking, "ranking_systems", lambda data, seed, threads: systems)
    monkeypatch.setattr(ranking, "run_apart", lambda function, *given, threads: function(*given))
    return systems


def test_a_system_has_a_row_and_a_note(small_systems, likes):
    table = bench_ranking_times("ml-100k", likes, systems=tuple(small_systems), threads=1)
    assert [row["system"] for row in table.rows] == ["GraphRanker", "GF-CF"]
    for row in table.rows:
        assert row["searched_seconds"] > 0
        assert row["trained_seconds"] > 0
        assert row["lists_seconds"] > 0
    assert "chosen: factor_temperature" in table.notes[0]
    assert "chosen: weight" in table.notes[1]


def test_the_second_training_has_the_chosen_settings(small_systems, likes):
    users = np.arange(likes.n_users)
    for system in small_systems.values():
        model = system.train(likes)
        again = untrained(model).fit(likes)
        if isinstance(model.settings_, dict) and "weight" in model.settings_:
            assert again.weight == model.settings_["weight"]
            np.testing.assert_array_equal(again.lists(users, 5), model.lists(users, 5))
        else:
            assert again.settings_ == model.settings_
            assert len(again.history_) == 1  # nothing is searched


def test_systems_that_choose_are_timed():
    assert set(TIMED) <= set(ranking_systems("gowalla"))
