"""Files and guards of the commands' tests."""

import pytest
from cli_cases import fill

from air_recsys import AIR
from air_recsys.models import PatchAIR


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Tables and models, good and bad, which no test changes."""
    return fill(tmp_path_factory.mktemp("cli"))


@pytest.fixture
def no_training(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("trained before the input was checked")

    monkeypatch.setattr(AIR, "train_by", refuse)
    monkeypatch.setattr(PatchAIR, "learn", refuse)
