"""A measurement in a process of its own: its peak memory is its own, and so is its number of threads."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Self

from air_recsys.evaluation.results import peak_memory
from air_recsys.exceptions import AirRecsysError
from air_recsys.storage.lazy import torch
from air_recsys.storage.validation import check_integer

_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class ProcessEndedError(AirRecsysError):
    """A process ended before its result: most often for want of memory."""


def run_apart(function: Callable[..., Any], *arguments: Any, threads: int = 1) -> Any:
    """Call a function in a new process whose libraries use `threads` threads, and return what it returns.

    The function is found by its module and name, as pickle wants it; so are arguments and result.
    """
    with process_apart(threads) as call:
        return call(function, *arguments)


@contextmanager
def process_apart(threads: int = 1) -> Iterator[Callable[..., Any]]:
    """Start a new process for several calls, and yield a function that calls another one there, see `run_apart`."""
    check_integer("threads", threads, minimum=1)
    context = get_context("spawn")
    with thread_variables(threads), ProcessPoolExecutor(1, context, torch.set_num_threads, (threads,)) as pool:

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            try:
                return pool.submit(function, *arguments).result()
            except BrokenProcessPool as error:
                name = getattr(function, "__name__", "a measurement")
                raise ProcessEndedError(
                    f"the process of {name} ended without a result, often from lack of memory"
                ) from error

        yield call


class Stopwatch:
    """Adds up the time spent inside of its `with` blocks: on the clock, and of all threads of this process."""

    def __init__(self) -> None:
        self.seconds = self.cpu_seconds = 0.0

    def __enter__(self) -> Self:
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._started[0]
        self.cpu_seconds += time.process_time() - self._started[1]


class MemoryWatch:
    """Resident memory of this process: what was in use when the watch was made, and the peak since then, in GiB.

    Where the system cannot forget the peak of before (Linux can), it is the peak since the start of the process, see
    `air_recsys.evaluation.results.peak_memory`.
    """

    def __init__(self) -> None:
        self.before_gib = (_from_status("VmRSS") if _forget_peak() else None) or peak_memory()

    def peak_gib(self) -> float:
        """The peak so far, never below `before_gib`."""
        # The system estimates both in different ways: its peak can be below the memory that it reported in use.
        return max(_from_status("VmHWM") or peak_memory(), self.before_gib)


def _forget_peak() -> bool:
    try:
        _RESET.write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def _from_status(name: str) -> float | None:
    # Unlike the peak of getrusage, this one is not inherited from the parent process.
    if not _STATUS.is_file():
        return None
    match = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    return None if match is None else int(match[1]) / 2**20


@contextmanager
def thread_variables(threads: int) -> Iterator[None]:
    """Set the environment variables of thread counts, which a process that starts inside of the block inherits."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
