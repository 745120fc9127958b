"""Ranks as processes: what they return, how they end, and what their trainings are measured by."""

import multiprocessing
import os
import signal
from functools import partial

import numpy as np
import pytest
import torch
import torch.distributed as dist

from air_recsys.evaluation.results.apart import ProcessEndedError
from air_recsys.exceptions import DataError, ParameterError
from benchmarks.ranks import bench_ranks, planted_split, run_ranks

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")

SMALL = partial(planted_split, 60, 40, 900, 0)


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
    report = bench_ranks(SMALL, settings, title="planted", repeats=1)
    one, two = report.rows
    assert (one["ranks"], two["ranks"]) == (1, 2)
    assert one["times_faster"] == 1
    assert two["times_faster"] == pytest.approx(one["seconds"] / two["seconds"])
    assert one["received_gb"] == 0 < two["received_gb"]
    for row in (one, two):
        assert row["peak_gib"] >= row["before_gib"] > 0
        assert {name.removesuffix("_difference") for name in row if "difference" in name} == compared
    assert all(one[f"{name}_difference"] == 0 for name in compared)
    assert all(two[f"{name}_difference"] < 1e-4 for name in compared)
    assert "90 held-out pairs" in report.protocol
    assert len(report.notes) == 2


def test_a_planted_split_holds_out_a_tenth():
    fold = SMALL()
    assert (fold.train.n_ratings, fold.test.n_ratings) == (810, 90)
    assert np.intersect1d(fold.train.pair_index, fold.test.pair_index).size == 0


@pytest.mark.parametrize("wrong", [{"n_ranks": (0,)}, {"repeats": 0}])
def test_what_cannot_be_measured_is_refused_before_any_work(wrong):
    with pytest.raises(ParameterError, match="ranks and repeats must be an integer >= 1"):
        bench_ranks(SMALL, {}, title="planted", **wrong)
