"""The attacks of `tests/attacks` by the thousand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attacks.flips import flipped_bits
from attacks.fuzz import fuzzed_readers
from attacks.kills import killed_trainings
from attacks.live import threads_on_a_model
from attacks.paths import refused_commands
from attacks.reading import misread_files
from attacks.requests import hostile_requests
from attacks.signals import signalled_commands

from benchmarks.harness import Found

_OF_ALL = {"peak GiB": max, "earliest epoch": min, "latest epoch": max}  # other numbers are summed


def bench_fuzz(seed: int, *, inputs: int, readers: list[str], keep: str) -> Found:
    """Break valid files of every format, read them, and count the outcomes."""
    return _told(*fuzzed_readers(inputs, seed, readers, Path(keep)))


def bench_flips(seed: int, *, flips: int, formats: list[str]) -> Found:
    """Flip one bit of a valid file at a time, and read it."""
    return _told(flipped_bits(flips, seed, formats))


def bench_kills(seed: int, *, kills: int) -> Found:
    """Kill trainings at random moments, and let them go on."""
    return _told(killed_trainings(kills, seed))


def bench_signals(seed: int, *, runs: int) -> Found:
    """Send signals to trainings of the command line."""
    return _told(*signalled_commands(runs, seed))


def bench_live(seed: int, *, operations: int, n_threads: int) -> Found:
    """Let threads read and write one model."""
    return _told(*threads_on_a_model(operations, n_threads, seed))


def bench_reading(seed: int, *, files: int) -> Found:
    """Write tables as people have them, by chance, and read each without options."""
    return _told(*misread_files(files, seed))


def bench_requests(seed: int, *, requests: int) -> Found:
    """Send requests that no client of good will sends."""
    return _told(*hostile_requests(requests, seed))


def bench_paths() -> Found:
    """Run commands whose outputs are other files of theirs, or have no place."""
    return _told(*refused_commands())


def _told(rows: list[dict[str, Any]], notes: list[str] | None = None) -> Found:
    """Rows with a last one, that of all."""
    label, *names = rows[0]
    total = {name: _OF_ALL.get(name, sum)([row[name] for row in rows]) for name in names}
    return Found([*rows, {label: "all"} | total], notes=notes or [])
