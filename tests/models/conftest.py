"""A saved model."""

from pathlib import Path

import pytest
from model_cases import MODELS, frame


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A file with a fitted AIR model with graphs."""
    return MODELS["AIR-sparse"]().fit(frame()).save(tmp_path / "model.air")
