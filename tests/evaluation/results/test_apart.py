"""A process of its own has its own threads and memory, and tells what goes wrong in it."""

import os

import numpy as np
import pytest
import torch

from air_recsys.evaluation.results import apart
from air_recsys.evaluation.results.apart import (
    MemoryWatch,
    ProcessEndedError,
    Stopwatch,
    process_apart,
    run_apart,
)
from air_recsys.exceptions import ParameterError


def environment():
    return os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"], torch.get_num_threads(), os.getpid()


def leave():
    os._exit(3)


def test_a_process_apart_has_the_threads_asked_for_and_leaves_ours():
    before = dict(os.environ)
    omp, blas, torch_threads, process = run_apart(environment, threads=2)
    assert (omp, blas, torch_threads) == ("2", "2", 2)
    assert process != os.getpid()
    assert dict(os.environ) == before


def test_what_goes_wrong_apart_is_told_here():
    with pytest.raises(ProcessEndedError, match="the process of leave ended without a result"):
        run_apart(leave)
    with pytest.raises(ParameterError, match="threads must be an integer >= 1"):
        run_apart(leave, threads=0)


def test_the_peak_counts_what_was_there_since_the_reset():
    watch = MemoryWatch()
    block = np.ones(2**24)  # 1/8 GiB
    assert watch.peak_gib() > watch.before_gib + 0.1
    del block
    assert watch.peak_gib() > watch.before_gib + 0.1


def test_the_peak_is_never_below_what_was_in_use(monkeypatch):
    monkeypatch.setattr(apart, "_from_status", {"VmRSS": 2.0, "VmHWM": 1.9}.get)
    watch = MemoryWatch()
    assert (watch.before_gib, watch.peak_gib()) == (2.0, 2.0)


def test_a_system_that_cannot_forget_the_peak_gives_that_since_the_start(monkeypatch, tmp_path):
    monkeypatch.setattr(apart, "_RESET", tmp_path / "none" / "clear_refs")
    monkeypatch.setattr(apart, "_STATUS", tmp_path / "status")
    monkeypatch.setattr(apart, "peak_memory", iter([2.5, 3.0]).__next__)
    watch = MemoryWatch()
    assert (watch.before_gib, watch.peak_gib()) == (2.5, 3.0)


def keep(value):
    os.environ["KEPT"] = value


def kept():
    return os.environ.get("KEPT")


def test_calls_of_one_process_share_its_state_and_not_ours():
    with process_apart() as call:
        call(keep, "there")
        assert call(kept) == "there"
    assert kept() is None


def test_a_stopwatch_adds_up():
    watch = Stopwatch()
    spent = []
    for _ in range(2):
        with watch:
            sum(range(10_000))
        spent.append((watch.seconds, watch.cpu_seconds))
    assert 0 < spent[0][0] < spent[1][0]
    assert 0 <= spent[0][1] <= spent[1][1]
