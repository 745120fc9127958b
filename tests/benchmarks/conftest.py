"""Fixtures of the benchmarks' tests."""

import importlib

import pytest

from air_recsys.evaluation.experiment import here

MEASURING = ("speed.ratings", "paper.steps", "scale.growth", "scale.likes")
TRAINING = ("ratings", "ranking", "dti", "affinities")


@pytest.fixture
def at_once(monkeypatch):
    """Measure and train in this process: starting one takes seconds."""
    for name in MEASURING:
        module = importlib.import_module(f"benchmarks.{name}")
        monkeypatch.setattr(module, "run_apart", lambda function, *arguments, threads: function(*arguments))
    for name in TRAINING:
        monkeypatch.setattr(f"benchmarks.accuracy.{name}.process_place", lambda threads: here)
