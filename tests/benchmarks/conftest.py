"""Fixtures of the benchmarks' tests."""

import importlib

import pytest

MEASURING = (
    "speed.ratings",
    "paper.steps",
    "scale.growth",
    "scale.likes",
)


@pytest.fixture
def at_once(monkeypatch):
    """Measure in this process: starting one takes seconds."""
    for name in MEASURING:
        module = importlib.import_module(f"benchmarks.{name}")
        monkeypatch.setattr(module, "run_apart", lambda function, *arguments, threads: function(*arguments))
