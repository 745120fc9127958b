"""Fixtures that several test modules share."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

# The models in the tests are tiny: threads would only wait for each other.
torch.set_num_threads(int(os.environ.get("AIR_RECSYS_TEST_THREADS", "1")))

with contextlib.suppress(ImportError):  # the GPU tests go without
    from hypothesis import settings

    # A slow machine fails no test, and what fails once fails again; "search" draws other examples each time.
    settings.register_profile("search", deadline=None)
    settings.register_profile("tests", deadline=None, derandomize=True)
    settings.load_profile("tests")


@pytest.fixture
def plain_handlers() -> Iterator[None]:
    """Handlers of signals as in a new process: Ray, where another test has started it, listens to SIGTERM."""
    plain = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in plain.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def blocks_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the package work in blocks of so many entries or rows, everywhere: their size changes no result."""
    names = "_BLOCK_ENTRIES", "_CHUNK_ENTRIES", "_ROWS_AT_ONCE", "_BLOCK_ROWS"

    def shrink(size: int) -> None:
        modules = [module for name, module in sys.modules.items() if name.startswith("air_recsys.")]
        for module in modules:
            for name in vars(module).keys() & names:
                monkeypatch.setattr(module, name, size)

    return shrink


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Folder of the benchmark data; tests that need it are skipped where it is absent."""
    root = Path(os.environ.get("AIR_RECSYS_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    if not (root / "ml-100k" / "u.data").exists():
        pytest.skip("benchmark data not found: set AIR_RECSYS_DATA")
    return root


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and models, good and bad, for the command line; no test changes them."""
    from cli_cases import fill

    return fill(tmp_path_factory.mktemp("shelf"))


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings that fail: what is wrong has to be told before them."""
    from air_recsys.models import AIR, PatchAIR

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("trained before the input was checked")

    monkeypatch.setattr(AIR, "train_by", refuse)
    monkeypatch.setattr(PatchAIR, "learn", refuse)


@pytest.fixture(scope="session")
def chromium_page() -> Iterator[Any]:
    """The explorer in one Chromium for all tests of it."""
    from browsers import chromium
    from explorer_page import Page

    with chromium(logs=("browser", "performance")) as browser:
        yield Page(browser)


@pytest.fixture
def page(chromium_page: Any) -> Any:
    """The explorer in Chromium, where the module of a test has no other page."""
    return chromium_page
