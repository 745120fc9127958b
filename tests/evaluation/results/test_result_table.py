"""Tables of results: numbers a reader can compare, and JSON with all that is needed to measure again."""

import json
import math

import numpy as np
import pytest

from air_recsys.evaluation.results import ResultTable, format_number, machine, mean_of, peak_memory, versions
from air_recsys.exceptions import ParameterError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (1, "1.0000"),
        (-0.25, "-0.2500"),
        (1e-9, "1e-09"),
        (0.0049, "0.0049"),
        (-0.00012345, "-0.000123"),
        (9.99, "9.9900"),
        (1234.56, "1234.6"),
        (math.nan, "-"),
        (None, "-"),
        (np.float32(0.5), "0.5000"),
    ],
)
def test_format_number(value, text):
    assert format_number(value) == text


def test_no_number_is_shown_with_a_relative_error_above_one_percent():
    for value in 10 ** np.random.default_rng(0).uniform(-8, 5, 200):
        assert float(format_number(value)) == pytest.approx(value, rel=0.011)


def test_columns_aside_are_in_json_alone(tmp_path):
    report = ResultTable("Title", "", [{"model": "AIR", "low": 0.1}, {"model": "x"}], aside=["low"])
    assert report.table().split() == ["model", "AIR", "x"]
    report.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["rows"] == [{"model": "AIR", "low": 0.1}, {"model": "x"}]


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
    ResultTable("Title", "how", rows, ["a note"]).to_json(
        tmp_path / "r.json", single=ResultTable("", "", [{"auc": math.nan}])
    )

    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    content = json.loads((tmp_path / "r.json").read_text(), parse_constant=refuse)
    assert content["rows"] == [{"model": "AIR", "rmse": 1 / 3, "n": 3, "auc": None, "none": None}]
    assert content["single_runs"] == [{"auc": None}]
    assert (content["title"], content["protocol"], content["notes"]) == ("Title", "how", ["a note"])
    assert content["versions"] == versions()
    assert content["machine"] == machine()


def test_json_needs_a_folder(tmp_path):
    with pytest.raises(ParameterError, match=r"expected an existing folder for r\.json"):
        ResultTable("", "").to_json(tmp_path / "none" / "r.json")


def test_versions_and_machine():
    assert {"python", "air-recsys", "torch", "numpy", "scipy", "scikit-learn"} <= set(versions())
    found = machine()
    assert found["processor"]
    assert found["cores"] >= found["threads"] >= 1


def test_peak_memory_is_positive_and_never_falls():
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


def test_mean_of_one_row_a_key_is_that_row():
    rows = [{"data": "a", "missing": 0.7, "x": 1.5}, {"data": "a", "missing": 0.8, "x": 2.5}]
    assert mean_of(rows, ("data", "missing")) == rows
