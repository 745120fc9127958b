"""Results: tables a reader can compare, JSON with all to measure again, and measurements in a process of their own."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from air_recsys.evaluation.results import (
    ResultTable,
    apart,
    format_number,
    machine,
    mean_of,
    peak_memory,
    versions,
)
from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, Stopwatch, process_apart, run_apart
from air_recsys.exceptions import ParameterError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-0.25, "-0.2500"),
        (1e-9, "1e-09"),
        (-0.00012345, "-0.000123"),
        (1234.56, "1234.6"),
        (None, "-"),
        (np.float32(0.5), "0.5000"),
    ],
)
def test_format_number(value, text):
    assert format_number(value) == text
    for number in 10 ** np.random.default_rng(0).uniform(-8, 5, 50):
        assert float(format_number(number)) == pytest.approx(number, rel=0.011)


def test_text_holds_title_protocol_rows_and_notes():
    report = ResultTable(
        "Title", "how", [{"model": "AIR", "rmse": 0.91234}, {"model": "x", "rmse": math.nan}], ["a note"]
    )
    lines = report.text().splitlines()
    assert lines[:3] == ["Title", "how", ""]
    assert [line.split() for line in lines[3:6]] == [["model", "rmse"], ["AIR", "0.9123"], ["x", "-"]]
    assert lines[6:] == ["* a note"]


def test_json_holds_everything_in_full_precision(tmp_path):
    rows = [{"model": "AIR", "rmse": np.float64(1 / 3), "n": np.int64(3), "auc": math.nan, "none": None}]
    table, path = ResultTable("Title", "how", rows, ["a note"], aside=["n"]), tmp_path / "r.json"
    table.to_json(path, single=ResultTable("", "", [{"auc": math.nan}]))
    assert "n" not in table.table().split()

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    content = json.loads(path.read_text(), parse_constant=refuse)
    assert content["rows"] == [{"model": "AIR", "rmse": 1 / 3, "n": 3, "auc": None, "none": None}]
    assert content["single_runs"] == [{"auc": None}]
    assert (content["title"], content["protocol"], content["notes"]) == ("Title", "how", ["a note"])
    assert content["versions"] == versions()
    assert content["machine"] == machine()
    with pytest.raises(ParameterError, match=r"expected an existing folder for r\.json"):
        table.to_json(tmp_path / "none" / "r.json")


def test_versions_machine_and_memory():
    assert {"python", "air-recsys", "torch", "numpy", "scipy", "scikit-learn"} <= set(versions())
    found = machine()
    assert found["processor"]
    assert found["cores"] >= found["threads"] >= 1
    before = peak_memory()
    block = np.ones(2**23)
    assert 0 < before <= peak_memory() < 1000
    del block


def test_mean_of_averages_every_number_over_rows_that_agree():
    rows = [
        {"data": "a", "fold": "1", "seed": 0, "x": 1.0, "n": 1, "auc": math.nan},
        {"data": "b", "fold": "1", "seed": 0, "x": 5.0, "n": 7, "auc": math.nan},
        {"data": "a", "fold": "2", "seed": 1, "x": 3.0, "n": 2, "auc": 0.5},
    ]
    means = mean_of(rows, ("data",))
    assert [set(row) for row in means] == [{"data", "x", "n", "auc"}] * 2
    assert means[0] == {"data": "a", "x": 2.0, "n": 1.5, "auc": 0.5}
    assert (means[1]["data"], means[1]["x"]) == ("b", 5.0)
    assert math.isnan(means[1]["auc"])
    assert [row["data"] for row in mean_of(rows[1:], ("data",))] == ["b", "a"]  # in order of appearance
    own = [{"data": "a", "missing": 0.7, "x": 1.5}, {"data": "a", "missing": 0.8, "x": 2.5}]
    assert mean_of(own, ("data", "missing")) == own


def environment():
    return os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"], torch.get_num_threads(), os.getpid()


def keep(value):
    os.environ["KEPT"] = value


def kept():
    return os.environ.get("KEPT")


def leave():
    os._exit(3)


def test_a_process_apart_has_its_threads_and_state_and_leaves_ours_and_tells_what_goes_wrong():
    before = dict(os.environ)
    omp, blas, torch_threads, process = run_apart(environment, threads=2)
    with process_apart() as call:
        call(keep, "there")
        assert call(kept) == "there"
        with pytest.raises(ProcessEndedError, match="the process of leave ended without a result"):
            call(leave)
    assert (omp, blas, torch_threads) == ("2", "2", 2)
    assert process != os.getpid()
    assert dict(os.environ) == before
    with pytest.raises(ParameterError, match="threads must be an integer >= 1"):
        run_apart(leave, threads=0)


def test_the_peak_counts_what_was_there_since_the_reset():
    watch = MemoryWatch()
    block = np.ones(2**24)  # 1/8 GiB
    assert watch.peak_gib() > watch.before_gib + 0.1
    del block
    assert watch.peak_gib() > watch.before_gib + 0.1


def test_the_peak_is_never_below_what_was_in_use_nor_forgotten_where_no_system_does(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "VmRSS:\t2097152 kB\nVmHWM:\t2000000 kB\n")
    watch = MemoryWatch()
    assert (watch.before_gib, watch.peak_gib()) == (2.0, 2.0)

    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr(Path, "write_text", refuse)
    monkeypatch.setattr(Path, "is_file", lambda *_: False)
    monkeypatch.setattr(apart, "peak_memory", iter([2.5, 3.0]).__next__)
    watch = MemoryWatch()
    assert (watch.before_gib, watch.peak_gib()) == (2.5, 3.0)


def test_a_stopwatch_adds_up():
    watch, spent = Stopwatch(), []
    for _ in range(2):
        with watch:
            sum(range(10_000))
        spent.append((watch.seconds, watch.cpu_seconds))
    assert 0 < spent[0][0] < spent[1][0]
    assert 0 <= spent[0][1] <= spent[1][1]
