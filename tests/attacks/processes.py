"""Commands and trainings in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def program(arguments: Sequence[str]) -> list[str]:
    """Return the words that run ``air-recsys`` with these arguments in a new process.

    Examples
    --------
    >>> program(["--version"])[-1]
    '--version'
    """
    return [sys.executable, "-c", "from air_recsys.cli import main; main()", *arguments]


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has written a file, or has ended."""
    while not path.exists() and process.poll() is None:
        time.sleep(0.001)
