"""Emulate two CUDA devices for a run of pytest: ``PYTHONPATH=tests/gpu pytest -p emulation.plugin tests/gpu``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from emulation.switch import emulated

_whole_run = ExitStack()


def pytest_configure(config: Any) -> None:
    """Switch the emulation on."""
    _whole_run.enter_context(emulated(n_devices=2))


def pytest_unconfigure(config: Any) -> None:
    """Switch it off."""
    _whole_run.close()
