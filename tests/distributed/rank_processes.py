"""Ranks for the tests: started by torchrun or one by one, and what they leave in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

JOB = Path(__file__).with_name("training_jobs.py")
PACKAGE = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """Return the variables of a rank."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(PACKAGE)}


def start(out: Path, tasks: list[dict[str, Any]], command: list[str], **variables: str) -> subprocess.Popen[str]:
    """Start a command on tasks of `training_jobs.run`, whose results go to `out`."""
    out.mkdir(exist_ok=True)
    (out / "tasks.json").write_text(json.dumps(tasks))
    return subprocess.Popen(
        [*command, str(JOB), str(out)],
        env=environment() | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def torchrun(out: Path, tasks: list[dict[str, Any]], *, n_ranks: int = 2, fails: bool = False) -> str:
    """Run tasks on all ranks and return what they printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_ranks)]
    job = start(out, tasks, command)
    printed, _ = job.communicate(timeout=100)
    assert (job.returncode != 0) is fails, printed
    return printed


def results(out: Path, name: str, n_ranks: int = 2) -> list[dict[str, np.ndarray]]:
    """Return what each rank has written for a task."""
    return [dict(np.load(out / f"{name}-{rank}.npz")) for rank in range(n_ranks)]


def message(out: Path, name: str, rank: int = 0) -> str:
    """Return the error that a task has ended with."""
    return (out / f"{name}-{rank}.txt").read_text()


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Return whether two results are equal to the bit, whatever their traffic."""
    names = (first.keys() | second.keys()) - {"n_bytes", "n_messages"}
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in names)
