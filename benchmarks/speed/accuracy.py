"""Time to a stated accuracy on a picture: the engine against plain autograd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results.apart import Stopwatch, run_apart
from air_recsys.metrics import nmae
from air_recsys.models import AIR
from air_recsys.models.presets import routed
from air_recsys.solvers import Adam
from air_recsys.training import Record
from benchmarks.harness import Found
from benchmarks.paper.cases import load_case, observed_entries
from benchmarks.paper.recipes import recipes_of
from benchmarks.plain_autograd import PlainAIR, plain_optimizers, plain_step

_ROW = "barbara-random"
_DEPTH, _STRENGTH, _LEARNING_RATE = 3, 1e-4, 1e-3  # of the program behind the published tables


class Task(NamedTuple):
    """A picture of which some entries are shown, and the steps between two looks at the error on the others."""

    truth: np.ndarray  # (m, n), brightness in [0, 1]
    observed: np.ndarray  # (m, n) of bool
    every: int  # steps between two looks, which are not timed

    def error(self, completed: np.ndarray) -> float:
        """The NMAE on the hidden entries."""
        hidden = ~self.observed
        return nmae(self.truth[hidden], completed[hidden], value_range=float(np.ptp(self.truth)))


class Look(NamedTuple):
    """The error on the hidden entries after some steps, and the seconds that these took."""

    step: int
    seconds: float
    error: float


def bench_accuracy(root: Path, threads: int, seed: int, *, settings: dict[str, Any], n_steps: int) -> Found:
    """Time until Barbara, 30 % missing, is completed as well as the paper's AIR: the row of Table 1."""
    row = next(row for row in recipes_of("table1") if row.row == _ROW)
    case = load_case(row.data, root)
    every = _model(settings).get_params()["solver__evaluate_every"]
    task = Task(case.truth, observed_entries(row, case, root, seed), every)
    rows = time_to_accuracy(task, row.published["AIR"], settings, n_steps, seed, threads)
    notes = [f"{each['contender']}: lowest NMAE seen {each['lowest']:.4f}" for each in rows]
    notes += [f"{each['contender']} never got to the target" for each in rows if not each["reached"]]
    return Found(rows, notes=notes, task=row.title, target=row.published["AIR"], every=every)


def time_to_accuracy(
    task: Task, target: float, settings: dict[str, Any], n_steps: int, seed: int = 0, threads: int = 1
) -> list[dict[str, Any]]:
    """Train AIR with some settings and plain autograd, each in a process of its own, and compare the times.

    Where plain autograd never gets to `target`, its whole run counts, and the ratio is a lower bound.
    """
    curves = {
        "engine": run_apart(engine_curve, task, settings, seed, threads=threads),
        "plain autograd": run_apart(plain_curve, task, n_steps, seed, threads=threads),
    }
    rows = [{"contender": name, **_row(curve, target)} for name, curve in curves.items()]
    plain = rows[1]["seconds_to_target"] if rows[1]["reached"] else rows[1]["seconds"]
    for row, own in zip(rows, (rows[0]["seconds_to_target"], plain), strict=True):
        row["plain / this"] = plain / own
    return rows


def engine_curve(task: Task, settings: dict[str, Any], seed: int) -> list[Look]:
    """Train the engine and look at its errors."""
    model = _model({"random_state": seed, "device": "cpu"} | settings | {"evaluate_every": task.every})
    curve, looking = [], Stopwatch()

    def look(record: Record) -> None:
        seconds = record.seconds - looking.seconds
        with looking:
            factors = model.current_factors()
            completed = factors.user_factors @ factors.item_factors.T + factors.mean
            completed += factors.user_biases[:, None] + factors.item_biases
            curve.append(Look(record.epoch, seconds, task.error(completed)))

    model.fit(Interactions.from_dense(np.where(task.observed, task.truth, np.nan)), callbacks=[look])
    return curve


def plain_curve(task: Task, n_steps: int, seed: int) -> list[Look]:
    """Train plain autograd and look at its errors."""
    targets, mask = (torch.as_tensor(array, dtype=torch.float32) for array in (task.truth, task.observed))
    n_rows, n_columns = task.truth.shape
    model = PlainAIR(n_rows, n_columns, _DEPTH, _STRENGTH, torch.Generator().manual_seed(seed))
    optimizers = plain_optimizers(model, _LEARNING_RATE)
    curve, training, done = [], Stopwatch(), 0
    while done < n_steps:
        block = min(task.every, n_steps - done)
        with training:
            for _ in range(block):
                plain_step(model, optimizers, targets, mask)
        done += block
        curve.append(Look(done, training.seconds, task.error(model.completed().detach().numpy())))
    return curve


def _model(settings: dict[str, Any]) -> Any:
    # The settings of the paper's program but for the step size, which falls at the end.
    model = AIR(solver=Adam(schedule="cooldown"))
    return model.set_params(**routed(model, settings))


def _row(curve: list[Look], target: float) -> dict[str, Any]:
    """The figures of a curve; a target counts from the first look at which the error is at most as large."""
    last, reached = curve[-1], next((look for look in curve if look.error <= target), None)
    return {
        "steps": last.step,
        "seconds": last.seconds,
        "ms_a_step": 1e3 * last.seconds / last.step,
        "nmae": last.error,
        "lowest": min(look.error for look in curve),
        "reached": reached is not None,
        "steps_to_target": None if reached is None else reached.step,
        "seconds_to_target": math.nan if reached is None else reached.seconds,
    }
