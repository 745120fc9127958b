"""A saved model."""

from pathlib import Path

import pytest
from model_cases import MODELS, fitted


@pytest.fixture(scope="session")
def content_of_a_model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a file with a fitted AIR model with graphs."""
    return fitted(MODELS["AIR-sparse"]).save(tmp_path_factory.mktemp("model") / "model.air").read_bytes()


@pytest.fixture
def saved(content_of_a_model: bytes, tmp_path: Path) -> Path:
    """A file with a fitted AIR model with graphs."""
    path = tmp_path / "model.air"
    path.write_bytes(content_of_a_model)
    return path


@pytest.fixture(autouse=True)
def contract_draws_nothing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of the pages of the contract are made and not drawn, which takes seconds; tests/report draws them."""
    if request.node.name.startswith("test_it_is_compared_"):
        monkeypatch.setattr("air_recsys.report.document.inline_svg", lambda figure, label: "<svg></svg>")
