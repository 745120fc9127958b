"""Table 2 is quotients of times, beside those of the paper."""

from __future__ import annotations

import pytest

from air_recsys.exceptions import ParameterError
from benchmarks.paper import steps as module
from benchmarks.paper.recipes import content_of
from benchmarks.paper.steps import table2

SMALL = {
    "note": "small",
    "rows": [
        {"size": 8, "depth": 2, "DMF": 10.0, "RDMF": 15.0, "AIR": 30.0},
        {"size": 9, "depth": 3, "DMF": 20.0, "RDMF": 22.0, "AIR": 24.0},
    ],
}
SYSTEMS = ("DMF", "RDMF", "AIR")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "content_of", lambda name: SMALL)


def test_ratios_are_quotients_of_the_seconds():
    report = table2(device="cpu", quick=True)
    assert [(row["m"], row["L"]) for row in report.rows] == [(8, 2), (9, 3)]
    for row in report.rows:
        assert all(row[f"{name}, s for 10,000 steps"] > 0 for name in SYSTEMS)
        for name in ("RDMF", "AIR"):
            quotient = row[f"{name}, s for 10,000 steps"] / row["DMF, s for 10,000 steps"]
            assert row[f"{name}/DMF"] == pytest.approx(quotient)
    assert "QUICK" in report.title
    assert "device cpu" in report.protocol


def test_seconds_and_verdict(monkeypatch):
    times = {"DMF": 1e-3, "RDMF": 2e-3, "AIR": 2e-3}
    asked = []

    def median_times(contenders, rounds, steps, device, title):
        asked.append((tuple(contenders), rounds, steps, device))
        return times

    monkeypatch.setattr(module, "median_times", median_times)
    report = table2(device="cpu")
    assert [names for names, *_ in asked] == [SYSTEMS, SYSTEMS]
    assert f"median of {asked[0][1]} rounds of {asked[0][2]} steps" in report.protocol
    assert "QUICK" not in report.title
    first = report.rows[0]
    assert first["DMF, s for 10,000 steps"] == pytest.approx(10)
    assert first["AIR/DMF"] == 2
    assert (first["RDMF/DMF, published"], first["AIR/DMF, published"]) == (1.5, 3.0)
    assert (first["DMF, published"], first["AIR, published"]) == (10.0, 30.0)
    # 2 <= 3, but 2 > 1.2
    assert report.notes == ["AIR/DMF no larger than published in 1 of 2 rows", "small"]


def test_published_ratios_are_those_of_the_file(monkeypatch):
    monkeypatch.setattr(module, "content_of", content_of)
    monkeypatch.setattr(module, "engine_step", lambda *args: None)
    monkeypatch.setattr(module, "median_times", lambda *args: dict.fromkeys(SYSTEMS, 1.0))
    report = table2(device="cpu")
    for row, printed in zip(report.rows, content_of("table2")["rows"], strict=True):
        assert (row["m"], row["L"]) == (printed["size"], printed["depth"])
        for name in ("RDMF", "AIR"):
            assert row[f"{name}/DMF, published"] == printed[name] / printed["DMF"]
    # As printed in the paper, to two decimals.
    assert [round(row["AIR/DMF, published"], 2) for row in report.rows[:3]] == [1.89, 1.81, 1.69]


def test_the_contenders_differ_in_their_regularization_alone():
    settings = module._SYSTEMS
    assert settings["DMF"]["strengths"] == settings["RDMF"]["strengths"] == (0.0, 0.0)
    assert settings["RDMF"]["tv_strength"] > 0
    assert min(settings["AIR"]["strengths"]) > 0


def test_an_unknown_device_is_told():
    with pytest.raises(ParameterError, match="device must be"):
        table2(device="gpu")
