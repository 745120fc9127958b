"""Trainings and lists beside other libraries and on planted data by size: splits, costs, and what is found."""

import math

import numpy as np
import pytest
import scipy.io

from air_recsys import AIR
from air_recsys.metrics import rmse
from air_recsys.models.state import TrainingStatistics
from benchmarks.accuracy.ratings_data import movielens_split
from benchmarks.scale import likes
from benchmarks.scale.growth import train_planted
from benchmarks.scale.likes import _hidden_likes, measured_drug_targets, planted_likes
from benchmarks.speed.device import bench_device
from benchmarks.speed.lists import _ways
from benchmarks.speed.ranks import bench_ranks
from benchmarks.speed.ratings import bench_ratings, planted_split, train_air

SMALL = {"solver": "adam", "n_factors": 3, "graph_neighbors": 5, "n_epochs": 20}
PLANTED = [60, 40, 900]
LARGER = {"n_ratings": 40_000, "n_users": 400, "n_items": 300, "n_factors": 16, "graph_neighbors": 10}
LIKES = 300, 400, 6000


def test_every_system_is_measured(at_once):
    found = bench_ratings(None, 1, 0, settings=SMALL, systems=[], gibbs_steps=15, planted=PLANTED)
    ends, curves = found.tables
    rows = {row["model"]: row for row in ends}
    listed = ["AIR", "AIR adam", "Surprise SVD", "Surprise SVD++", "implicit ALS", "myFM"]
    assert list(rows)[: len(listed)] == listed
    for row in ends:
        assert row["passes"] * row["cpu_seconds / pass"] == pytest.approx(row["cpu_seconds"])
        assert row["peak_gib"] >= row["before_gib"] > 0
    assert math.isnan(rows["implicit ALS"]["rmse"])
    assert all(0.3 < row["rmse"] < 1.6 for name, row in rows.items() if name != "implicit ALS")
    assert rows["AIR"]["this / first"] == 1
    assert {row["model"] for row in curves} == {"AIR", "AIR adam"}
    last = [row for row in curves if row["model"] == "AIR"][-1]
    assert last["rmse"] == pytest.approx(rows["AIR"]["rmse"], rel=1e-4)


def test_a_system_is_measured_in_a_process_of_its_own():
    found = bench_ratings(None, 1, 0, settings=SMALL, systems=["AIR"], gibbs_steps=1, planted=PLANTED)
    assert found.facts["title"] == "900 planted ratings of 60 users and 40 items, a random tenth held out"
    assert found.tables[0][0]["seconds"] > 0


@pytest.mark.parametrize("settings", [SMALL, {}])
def test_looking_at_the_test_ratings_changes_nothing(settings):
    fold = planted_split(*PLANTED, 0)
    model = AIR.for_ratings(random_state=0, device="cpu", **settings).fit(fold.train)
    found = model.predict(fold.test.user_ids[fold.test.user_index], fold.test.item_ids[fold.test.item_index])
    assert train_air(fold, settings).rmse == pytest.approx(rmse(fold.test.ratings, found), rel=1e-6)


def test_ranks_find_the_same_and_receive_what_they_lack():
    found = bench_ranks(None, 0, settings={}, n_ranks=[2], repeats=1, planted=PLANTED)
    one, two = found.tables[0]
    assert two["times_faster"] == pytest.approx(one["seconds"] / two["seconds"])
    assert one["received_gb"] == 0 < two["received_gb"]
    assert all(two[f"{name}_difference"] < 1e-4 for name in ("score", "deviation"))
    assert found.facts["pairs"] == 90


def test_trainings_on_a_device_are_timed_where_there_is_none(tmp_path):
    found = bench_device(tmp_path, systems=["planted"], sizes=[60, 40, 900], device="cpu")
    assert found.facts["name"] == "a CPU"
    assert min(found.tables[0][0][name] for name in ("first, s", "second, s")) > 0


def test_the_ways_to_the_best_items_agree():
    data = planted_split(*PLANTED, 0).train
    ways = _ways(data, 4, "cpu")
    items, _ = ways["implicit's search"]()
    assert ways["recommend"]()["item"].tolist() == data.item_ids[items.ravel()].tolist()
    assert TrainingStatistics(data).seen[np.arange(data.n_users)[:, None], items].sum() == 0


@pytest.mark.data
def test_the_split_is_that_of_the_published_file(data_root):
    matrix = scipy.io.loadmat(data_root / "ml-1m" / "movielens_1m.mat")["X"].tocoo()
    hidden = np.random.RandomState(1234).rand(matrix.nnz) < 0.1
    fold = movielens_split(data_root)
    for part, chosen in ((fold.train, ~hidden), (fold.test, hidden)):
        columns = (part.user_ids[part.user_index], part.item_ids[part.item_index], part.ratings)
        expected = (matrix.row[chosen] + 1, matrix.col[chosen] + 1, matrix.data[chosen])
        order, other = np.lexsort(columns[:2]), np.lexsort(expected[:2])
        for mine, theirs in zip(columns, expected, strict=True):
            np.testing.assert_array_equal(mine[order], theirs[other])


# -------------------------------------------------------------------- planted data by size


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
