"""The yardsticks compute what the engine computes, splits are those stated, and reports tell what was measured."""

import math
import multiprocessing
import os
import signal

import numpy as np
import pytest
import scipy.io
import torch
import torch.distributed as dist

from air_recsys import AIR, Interactions
from air_recsys.evaluation.folds import Fold
from air_recsys.evaluation.results.apart import ProcessEndedError
from air_recsys.exceptions import DataError, ParameterError
from air_recsys.metrics import nmae, rmse
from air_recsys.models.state import TrainingStatistics
from air_recsys.solvers import Adam
from benchmarks.speed.accuracy import Task, engine_curve, plain_curve, time_to_accuracy
from benchmarks.speed.lists import _ways
from benchmarks.speed.ranks import bench_ranks, run_ranks
from benchmarks.speed.ratings import bench_ratings, train_air, train_myfm, train_surprise
from benchmarks.speed.splits import movielens_split, planted_split
from benchmarks.speed.steps import bench_ratings_step, measured_machine, step_work
from benchmarks.speed.sweeps import bench_sweep

SMALL = {"solver": "adam", "n_factors": 3, "graph_neighbors": 5, "n_epochs": 20}
PLANTED = [60, 40, 900]


# -------------------------------------------------------------------- a sweep and a step beside their floors


@pytest.mark.parametrize("solver", ["variational", "langevin"])
def test_a_sweep_is_set_beside_the_sum_of_its_parts(at_once, solver):
    settings = {"solver": solver, "n_factors": 3, "pattern_features": 4}
    found = bench_sweep(None, 1, 0, settings=settings, rounds=1, planted=PLANTED)
    rows = {row["what"]: row for row in found.tables[0]}
    assert list(rows) == ["sweep", "gathers", "factorizations", "floor"]
    assert rows["floor"]["this / floor"] == 1
    assert rows["floor"]["seconds"] == rows["gathers"]["seconds"] + rows["factorizations"]["seconds"]
    assert found.facts["width"] == 3


@pytest.mark.parametrize("settings", [{"n_factors": None}, {"graph_neighbors": None}])
def test_a_step_without_a_factor_width_or_sparse_graphs_is_refused(settings):
    with pytest.raises(ParameterError, match="expected n_factors and graph_neighbors"):
        bench_ratings_step(None, 1, 0, settings={"solver": "adam"} | settings, steps=1, planted=PLANTED)


def test_work_grows_with_every_size():
    least = step_work((100, 80), 2000, 8, 5)
    for more in (
        step_work((101, 80), 2000, 8, 5),
        step_work((100, 80), 2001, 8, 5),
        step_work((100, 80), 2000, 9, 5),
        step_work((100, 80), 2000, 8, 6),
        step_work((100, 80), 2000, 8, 5, depth=3),
    ):
        assert more.bytes > least.bytes or more.flops > least.flops
        assert min(more.bytes - least.bytes, more.flops - least.flops) >= 0


def test_the_machine_is_measured():
    machine = measured_machine(megabytes=1, size=32)
    assert min(machine) > 0


# -------------------------------------------------------------------- time to an accuracy


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(0)
    truth = np.outer(rng.random(12), rng.random(10))
    return Task(truth, rng.random(truth.shape) < 0.7, 20)


def test_the_curves_end_where_the_trainings_end(task):
    plain = plain_curve(task, 50, 0)
    assert [look.step for look in plain] == [20, 40, 50]
    engine = engine_curve(task, {"n_epochs": 60}, 0)
    assert [look.step for look in engine] == [0, 20, 40, 60]
    for curve in (plain, engine):
        assert (np.diff([look.seconds for look in curve]) > 0).all()
    model = AIR(solver=Adam(schedule="cooldown", n_epochs=60), random_state=0, device="cpu")
    model.fit(Interactions.from_dense(np.where(task.observed, task.truth, np.nan)))
    found = model.predict(*np.nonzero(~task.observed))
    expected = nmae(task.truth[~task.observed], found, value_range=float(np.ptp(task.truth)))
    assert engine[-1].error == pytest.approx(expected, rel=1e-4)


def test_a_target_that_is_never_reached_has_no_time_and_the_whole_run_of_the_yardstick_counts(task, at_once):
    engine, plain = time_to_accuracy(task, 0.0, {"n_epochs": 40}, n_steps=40)
    assert not engine["reached"]
    assert math.isnan(engine["seconds_to_target"])
    assert math.isnan(engine["plain / this"])
    assert (plain["steps"], plain["plain / this"]) == (40, 1)
    easy, slow = time_to_accuracy(task, 10.0, {"n_epochs": 40}, n_steps=40)
    assert (easy["steps_to_target"], slow["steps_to_target"], slow["plain / this"]) == (0, 20, 1)


# -------------------------------------------------------------------- ratings beside other libraries


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


@pytest.mark.parametrize(
    ("train", "arguments"), [(train_surprise, {"algorithm": "SVDpp"}), (train_myfm, {"rank": 2, "n_steps": 10})]
)
def test_rows_without_training_ratings_are_no_obstacle(train, arguments):
    matrix = np.array([[5, 3, 1, np.nan], [4, 2, np.nan, np.nan], [1, 5, 4, np.nan], [np.nan, np.nan, np.nan, 2]])
    data = Interactions.from_dense(matrix)
    test = data.user_index == 3
    assert np.isfinite(train(Fold("unrated", data.select(~test), data.select(test)), **arguments).rmse)


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


# -------------------------------------------------------------------- ranks


def place():
    return dist.get_rank(), dist.get_world_size(), dist.get_backend(), torch.get_num_threads(), os.getpid()


def one_dies():
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    dist.barrier()


def one_refuses():
    if dist.get_rank() == 1:
        raise DataError("not this one")
    dist.barrier()


def test_ranks_are_processes_of_one_thread_in_one_group():
    before = dict(os.environ)
    found = run_ranks(2, place)
    assert [rank[:-1] for rank in found] == [(0, 2, "gloo", 1), (1, 2, "gloo", 1)]
    assert len({os.getpid(), *(rank[-1] for rank in found)}) == 3
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (one_dies, ProcessEndedError, "one of 2 ranks of one_dies ended without a result"),
        (one_refuses, DataError, "not this one"),
    ],
)
def test_a_rank_that_ends_early_says_why_and_leaves_no_process(function, error, message):
    before = set(multiprocessing.active_children())  # other tests of this process may have left workers that wait
    with pytest.raises(error, match=message):
        run_ranks(2, function)
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize(
    ("settings", "compared"), [({}, {"score", "deviation"}), ({"solver": "adam", "n_factors": 3}, {"score"})]
)
def test_ranks_find_the_same_and_receive_what_they_lack(settings, compared):
    found = bench_ranks(None, 0, settings=settings, n_ranks=[2], repeats=1, planted=PLANTED)
    one, two = found.tables[0]
    assert (one["ranks"], two["ranks"], one["times_faster"]) == (1, 2, 1)
    assert two["times_faster"] == pytest.approx(one["seconds"] / two["seconds"])
    assert one["received_gb"] == 0 < two["received_gb"]
    assert {name.removesuffix("_difference") for name in two if "difference" in name} == compared
    assert all(one[f"{name}_difference"] == 0 for name in compared)
    assert all(two[f"{name}_difference"] < 1e-4 for name in compared)
    assert found.facts["pairs"] == 90
