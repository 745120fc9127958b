"""Trainings that are killed at random moments and go on from their checkpoints: whether they end alike, to the bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from air_recsys.datasets import make_planted_ratings
from air_recsys.evaluation.results.apart import thread_variables
from air_recsys.models import AIR
from air_recsys.models.storage.fingerprint import hash_arrays
from air_recsys.storage.tensor_files import TensorFile
from air_recsys.storage.validation import check_integer
from attacks.processes import wait_for

_SHAPE = 200, 120, 4_000  # users, items, ratings
TRAININGS: dict[str, dict[str, Any]] = {
    "adam": {"solver": "adam", "n_epochs": 300, "validation_fraction": 0.1},
    "variational": {"solver": "variational", "n_sweeps": 120},
    "langevin": {"solver": "langevin", "n_sweeps": 200},
}
_SECONDS = 300  # for one training, which takes about two
_SCRIPT = (
    "import sys; from pathlib import Path; from attacks.kills import train; "
    "print(train(sys.argv[1], Path(sys.argv[2]), go_on=sys.argv[3] == 'True'))"
)


def killed_trainings(n_kills: int, seed: int) -> list[dict[str, Any]]:
    """Kill trainings with SIGKILL, let them go on, and compare what they learned with one that was never killed.

    Each training writes a checkpoint every epoch or sweep and is killed a random time after its first one, up to the
    time that such a training takes; so a kill may hit a step as well as the writing of a file. A row a training:
    kills, exact (equal to the bit) and lost (anything else).
    """
    check_integer("n_kills", n_kills, minimum=1)
    rng = np.random.default_rng(seed)
    kills = {name: len(range(number, n_kills, len(TRAININGS))) for number, name in enumerate(TRAININGS)}
    return [_row(name, times, rng) for name, times in kills.items() if times]


def train(name: str, path: Path, *, go_on: bool) -> str:
    """Train with checkpoints at `path`, or go on from there; return a digest of the learned state and the history."""
    data = make_planted_ratings(*_SHAPE, random_state=0).interactions
    model = AIR.for_ratings(**TRAININGS[name], random_state=0, device="cpu")
    model.fit(data, checkpoint=path, every=1, resume_from=path if go_on else None)
    arrays = [model.user_factors_, model.item_factors_, model.user_biases_, model.item_biases_]
    for matrix in (model.user_adjacency_, model.item_adjacency_):
        assert matrix is not None
        arrays += [matrix.data, matrix.indices, matrix.indptr]
    return hash_arrays(*arrays, model.history_.drop(columns="seconds").to_numpy()).hexdigest()


def _row(name: str, kills: int, rng: np.random.Generator) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected, seconds = _whole(name, place / "whole.ckpt")
        exact, epochs = 0, []
        while len(epochs) < kills:
            path = place / f"{len(epochs)}" / "run.ckpt"
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            if not _killed(name, path, rng.uniform(0, seconds)):
                continue  # it had ended by then
            epochs.append(_epochs_in(path))
            alike = _run(name, path, go_on=True) == expected
            exact += alike and [file.name for file in path.parent.iterdir()] == [path.name]
    counts = {"kills": kills, "exact": exact, "lost": kills - exact}
    return {"training": name, **counts, "earliest epoch": min(epochs), "latest epoch": max(epochs)}


def _epochs_in(path: Path) -> int:
    """Return how far a training had come, by the records in its checkpoint."""
    state = json.loads(TensorFile.read(path).metadata["state"])[""]
    records = state["course"][""]["records"]
    return records[-1][0] if records else 0


def _start(name: str, path: Path, *, go_on: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _SCRIPT, name, str(path), str(go_on)]
    with thread_variables(1):
        found = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # this module, too
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=found)


def _run(name: str, path: Path, *, go_on: bool) -> str:
    with _start(name, path, go_on=go_on) as process:
        return process.communicate(timeout=_SECONDS)[0].strip()


def _whole(name: str, path: Path) -> tuple[str, float]:
    """Return the digest of a training that is left alone, and the seconds from its first checkpoint to its end."""
    with _start(name, path, go_on=False) as process:
        wait_for(path, process)
        start = time.perf_counter()
        digest = process.communicate(timeout=_SECONDS)[0].strip()
    assert digest, f"the training {name} ended without a result"
    return digest, time.perf_counter() - start


def _killed(name: str, path: Path, seconds: float) -> bool:
    """Start a training and kill it so long after its first checkpoint; return whether it was still at work."""
    with _start(name, path, go_on=False) as process:
        wait_for(path, process)
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
    return process.returncode == -signal.SIGKILL
