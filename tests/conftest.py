"""Fixtures that several test modules share."""

import os
from pathlib import Path

import pytest
import torch

# The models in the tests are tiny: threads would only wait for each other.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the benchmark data; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("AIR_RECSYS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not (root / "ml-100k" / "u.data").exists():
        pytest.skip("benchmark data not found: set AIR_RECSYS_DATA")
    return root
