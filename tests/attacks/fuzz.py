"""Broken files by the thousand: every reader returns, or raises an error of the library, in little room and time."""

from __future__ import annotations

import logging
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from air_recsys.evaluation.results.apart import MemoryWatch, ProcessEndedError, process_apart
from air_recsys.exceptions import AirRecsysError
from air_recsys.storage.validation import check_choice, check_integer
from attacks.readers import Loader, Workplace, all_readers

_SECONDS = 10  # an input that takes longer is counted as unexpected
_ROOM = 4 * 2**30  # bytes of address space beyond those in use at the start
KEPT = Path("fuzz-unexpected")
_SHOWN = 5  # unexpected inputs of a reader that are kept


@dataclass
class Count:
    """The outcomes of the inputs of one reader."""

    accepted: int = 0
    refused: int = 0
    unexpected: int = 0
    seconds: float = 0.0
    peak_gib: float = 0.0
    found: list[str] = field(default_factory=list)  # path and traceback of the first unexpected inputs


def fuzzed_readers(
    n_inputs: int, seed: int, names: list[str] | None = None, kept: Path = KEPT
) -> tuple[list[dict[str, Any]], list[str]]:
    """Break small valid files of every format, read them, and count the outcomes.

    The readers work in a process apart, where an input may take 10 seconds and 4 GiB. An input is accepted, refused by
    an error of the library, or unexpected; inputs that end in another error are kept in a folder. A row a reader, and
    the first unexpected inputs.

    Parameters
    ----------
    n_inputs : int
        Over all readers; slow ones get fewer.
    seed : int
        The same seed makes the same inputs.
    """
    check_integer("n_inputs", n_inputs, minimum=1)
    readers = all_readers()
    chosen = [readers[check_choice("a reader", name, readers)] for name in names or readers]
    total = sum(reader.share for reader in chosen)
    sizes = {reader.name: max(1, round(n_inputs * reader.share / total)) for reader in chosen}
    counts = _counts(sizes, seed, kept)
    notes = [f"{name}: {text}" for name, count in counts.items() for text in count.found]
    return [_row(name, count) for name, count in counts.items()], notes


def _row(name: str, count: Count) -> dict[str, Any]:
    inputs = {"accepted": count.accepted, "refused": count.refused, "unexpected": count.unexpected}
    costs = {"seconds": count.seconds, "peak GiB": count.peak_gib}
    return {"reader": name, "inputs": sum(inputs.values()), **inputs, **costs}


def _counts(sizes: dict[str, int], seed: int, kept: Path) -> dict[str, Count]:
    """Feed the readers in a process apart; where it dies, that reader has no further input."""
    counts, left = {}, list(sizes)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        while left:
            try:
                with process_apart() as call:
                    while left:
                        counts[left[0]] = call(_feed, left[0], sizes[left[0]], seed, place, kept)
                        del left[0]
            except ProcessEndedError:
                number = (place / "current").read_text(encoding="ascii").strip()
                counts[left.pop(0)] = Count(unexpected=1, found=[f"input {number}: the process died"])
    return counts


def _feed(name: str, n_inputs: int, seed: int, place: Path, kept: Path) -> Count:
    """Read the inputs of a reader."""
    logging.disable(logging.WARNING)  # of Optuna, which tells of every study
    reader, count = all_readers()[name], Count()
    workplace = Workplace(reader, place / "files", seed)
    limit_memory()
    memory, begin = MemoryWatch(), time.perf_counter()
    with (place / "current").open("w", encoding="ascii") as current:
        for number in range(n_inputs):
            current.seek(0)
            current.write(f"{number:<20}")
            current.flush()
            _read_one(reader, workplace.broken(number), number, count, kept)
            workplace.tidy()
    count.seconds, count.peak_gib = time.perf_counter() - begin, memory.peak_gib()
    return count


def _read_one(reader: Loader, folder: Path, number: int, count: Count, kept: Path) -> None:
    try:
        with _limited(), warnings.catch_warnings(action="ignore"):
            reader.load(folder)
        count.accepted += 1
    except AirRecsysError:
        count.refused += 1
    except BaseException:
        count.unexpected += 1
        if len(count.found) < _SHOWN:
            count.found.append(f"{keep(folder, kept, f'{reader.name}-{number}')}: {traceback.format_exc(limit=-4)}")


def keep(folder: Path, kept: Path, name: str) -> Path:
    """Copy the files of an input to a folder of the name's letters and numbers, and return it."""
    target = kept / "".join(sign if sign.isalnum() else "-" for sign in name)
    shutil.copytree(folder, target, dirs_exist_ok=True)
    return target


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `TimeoutError` inside of the block after `_SECONDS`."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"took more than {_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limit_memory() -> None:
    """Let an allocation fail that no input of a few kilobytes can ask for in good faith."""
    if sys.platform != "linux":
        return
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:  # the process has fed another reader
        return
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))
