"""Commands that are sent signals at random moments: whether they end as they say, with nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from air_recsys.datasets import make_planted_ratings
from air_recsys.evaluation.results.apart import thread_variables
from air_recsys.exceptions import AirRecsysError
from air_recsys.models import AIR
from air_recsys.storage.validation import check_integer
from attacks.processes import program, wait_for

_SHAPE = 200, 120, 4_000  # users, items, ratings
_SETTINGS = ["--set", "solver=langevin", "--set", "n_sweeps=100", "--set", "n_factors=4", "--device", "cpu"]
_SECONDS = 120  # in which a command has to end
_PAUSE = 0.01  # seconds between signals that come in a row
Run = Callable[[list[str]], tuple[Any, str]]
"""Runs a command line, and returns its status and its standard error."""


class Case(NamedTuple):
    """What is sent, and how the command has to end."""

    signals: Sequence[signal.Signals]
    statuses: Sequence[int]
    in_training: bool  # or from the start of the process on
    is_usable: bool = False  # a model of what was learned is written, and the same command goes on to the same model


CASES: dict[str, Case] = {
    "SIGINT in training": Case([signal.SIGINT], [130], in_training=True, is_usable=True),
    "SIGTERM in training": Case([signal.SIGTERM], [143], in_training=True, is_usable=True),
    "SIGHUP in training": Case([signal.SIGHUP], [129], in_training=True, is_usable=True),
    "ten SIGINT in training": Case([signal.SIGINT] * 10, [130], in_training=True),
    # Before Python has set its handlers, and while it imports the command itself, the signal ends the process.
    "SIGINT from the start": Case([signal.SIGINT], [130, 1, -signal.SIGINT], in_training=False),
    "ten SIGINT from the start": Case([signal.SIGINT] * 10, [130, 1, -signal.SIGINT], in_training=False),
    "SIGTERM from the start": Case([signal.SIGTERM], [143, -signal.SIGTERM], in_training=False),
}


def signalled_commands(n_runs: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Send signals to ``air-recsys train`` at random moments, and look at how it ends and at what it leaves.

    A row a case of `CASES`: runs, right and wrong; and what was wrong.
    """
    check_integer("n_runs", n_runs, minimum=1)
    rng, rows, notes = np.random.default_rng(seed), [], []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected, seconds = left_alone(place)
        for number, (name, case) in enumerate(CASES.items()):
            runs = len(range(number, n_runs, len(CASES)))
            moments = [rng.uniform(0, seconds) for _ in range(runs)]
            wrong = [
                fault
                for run, moment in enumerate(moments)
                for fault in faults_of(case, place / "ratings.csv", place / f"{number}-{run}", moment, expected)
            ]
            rows.append({"signals": name, "runs": runs, "right": runs - len(wrong), "wrong": len(wrong)})
            notes += [f"{name}: {fault}" for fault in wrong]
    return rows, notes


def run_command(arguments: list[str]) -> tuple[Any, str]:
    """Run a command line in a process of its own."""
    return _end(_start(arguments))


def left_alone(place: Path, run: Run = run_command) -> tuple[AIR, float]:
    """Write the ratings, and return the model of a training that is left alone, and its seconds."""
    make_planted_ratings(*_SHAPE, random_state=0).interactions.to_frame().to_csv(place / "ratings.csv", index=False)
    (place / "whole").mkdir()
    started = time.perf_counter()
    status, errors = run(_command(place / "ratings.csv", place / "whole"))
    assert status == 0, errors
    return AIR.load(place / "whole" / "model.air"), time.perf_counter() - started


def faults_of(
    case: Case, table: Path, place: Path, seconds: float, expected: AIR, run: Run = run_command
) -> list[str]:
    """Run a case once, and by `run` the same command again; return what is wrong, at most one thing."""
    place.mkdir()
    process = _start(_command(table, place))
    if case.in_training:
        wait_for(place / "run.ckpt", process)
    time.sleep(seconds / 4 if case.in_training else seconds)
    for each in case.signals:
        process.send_signal(each)
        time.sleep(_PAUSE)
    status, errors = _end(process)
    if status == 0:
        return []  # it had ended by then
    if status not in case.statuses:
        return [f"status {status}, {errors[-300:]!r}"]
    if case.in_training and "Traceback" in errors:
        return [f"a traceback, {errors[-300:]!r}"]
    try:
        return _faults_left(case, _command(table, place), place, expected, run)
    except AirRecsysError as error:
        return [str(error)]


def _faults_left(case: Case, command: list[str], place: Path, expected: AIR, run: Run) -> list[str]:
    """Read what a command has left and let it go on; return what is wrong."""
    model, checkpoint = place / "model.air", place / "run.ckpt"
    if model.exists():
        AIR.load(model)
    elif case.is_usable:
        return ["no model"]
    status, errors = run(command)
    if status != 0:
        return [f"the same command ends with status {status}, {errors[-300:]!r}"]
    same = np.array_equal(AIR.load(model).user_factors_, expected.user_factors_)
    others = sorted({path.name for path in place.iterdir()} - {model.name, checkpoint.name})
    return [] if same and not others else [f"another model, or further files: {', '.join(others)}"]


def _command(table: Path, place: Path) -> list[str]:
    files = ["--model", str(place / "model.air"), "--checkpoint", str(place / "run.ckpt"), "--every", "1"]
    return ["train", str(table), *_SETTINGS, *files]


def _start(arguments: list[str]) -> subprocess.Popen[str]:
    with thread_variables(1):
        return subprocess.Popen(
            program(arguments),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            preexec_fn=_hear,
        )


def _hear() -> None:
    """Hear signals that a job in the background ignores, and what it starts with it."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def _end(process: subprocess.Popen[str]) -> tuple[Any, str]:
    """Wait for the end; return the status, "still running" where there is none, and the standard error."""
    try:
        errors = process.communicate(timeout=_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return "still running", process.communicate()[1]
    return process.returncode, errors
