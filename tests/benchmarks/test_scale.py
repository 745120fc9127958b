"""Planted data by size: what is drawn and hidden, and what a full training finds."""

import numpy as np
import pytest

from benchmarks.scale import likes
from benchmarks.scale.growth import train_planted
from benchmarks.scale.likes import _hidden_likes, measured_drug_targets, planted_likes

BASE = {"n_ratings": 900, "n_users": 60, "n_items": 40, "n_factors": 3, "graph_neighbors": 5}
LARGER = {"n_ratings": 40_000, "n_users": 400, "n_items": 300, "n_factors": 16, "graph_neighbors": 10}
LIKES = 300, 400, 6000


@pytest.mark.parametrize("settings", [{}, {"solver": "adam", "weight_decay": 8.0}])
def test_a_training_on_planted_ratings_beats_biases(settings):
    row = train_planted(LARGER, settings, seed=0)
    assert row["noise_floor"] < row["rmse"] < row["biases_rmse"]
    assert 0 < row["share_of_the_way"] < 1
    assert row["peak_gib"] >= row["data_gib"] > 0
    if not settings:
        assert 0.85 < row["inside 90 %"] < 0.95


def test_likes_come_in_groups_with_a_long_tail():
    found = planted_likes(*LIKES, 0)
    counts = np.sort(np.bincount(found.indices, minlength=LIKES[1]))[::-1]
    assert counts[:40].sum() > 3 * counts[-40:].sum()
    assert (planted_likes(*LIKES, 0) != found).nnz == 0
    assert (planted_likes(*LIKES, 1) != found).nnz > 0


def test_some_likes_of_some_users_are_hidden():
    every = planted_likes(*LIKES, 0)
    shown, users, hidden = _hidden_likes(every, 0)
    assert shown.nnz + hidden.nnz == every.nnz
    assert hidden.shape == (len(users), LIKES[1])
    assert hidden.multiply(shown[users]).nnz == 0
    assert 0.1 < hidden.nnz / every[users].nnz < 0.3


def test_hidden_interactions_are_ranked_above_those_by_counts(monkeypatch):
    monkeypatch.setattr(likes, "_GROUPS", 4)
    row = measured_drug_targets((80, 60, 900), {}, True, 0)
    assert min(row["fit_seconds"], row["list_seconds"]) > 0
    assert 0 < row["n_interactions"] < 900
    assert row["average_precision"] > row["by_counts"] > 0
