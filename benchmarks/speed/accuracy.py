"""Time to a stated accuracy on a picture: the engine against plain autograd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from air_recsys.data.interactions import Interactions
from air_recsys.evaluation.results import ResultTable
from air_recsys.evaluation.results.apart import Stopwatch, run_apart
from air_recsys.metrics import nmae
from air_recsys.models import AIR
from air_recsys.models.presets import routed
from air_recsys.solvers import Adam
from air_recsys.training import Record
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
        """Return the NMAE on the hidden entries."""
        hidden = ~self.observed
        return nmae(self.truth[hidden], completed[hidden], value_range=float(np.ptp(self.truth)))


class Curve(NamedTuple):
    """The error on the hidden entries after some steps and the seconds that these took."""

    steps: list[int]
    seconds: list[float]
    errors: list[float]

    def add(self, step: int, seconds: float, error: float) -> None:
        """Append a look."""
        self.steps.append(step)
        self.seconds.append(seconds)
        self.errors.append(error)

    def reached(self, target: float) -> int | None:
        """Return the first look at which the error was at most `target`."""
        return next((look for look, error in enumerate(self.errors) if error <= target), None)


def bench_accuracy(
    root: Path, settings: dict[str, Any], *, n_steps: int = 10_001, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Time until Barbara, 30 % missing, is completed as well as the paper's AIR: the row of Table 1.

    Parameters
    ----------
    settings : dict
        What differs from the paper's program with a step size that falls at the end; nothing is chosen here.
    n_steps : int
        Of plain autograd, at the settings of the program behind the published tables.
    seed : int
        Of the mask and of both starts.
    """
    row = next(row for row in recipes_of("table1") if row.row == _ROW)
    case = load_case(row.data, root)
    every = _model(settings).get_params()["solver__evaluate_every"]
    task = Task(case.truth, observed_entries(row, case, root, seed), every)
    table = time_to_accuracy(task, row.published["AIR"], settings, n_steps=n_steps, seed=seed, threads=threads)
    table.title = f"Time to the published accuracy: {row.title}"
    return table


def time_to_accuracy(
    task: Task, target: float, settings: dict[str, Any], *, n_steps: int, seed: int = 0, threads: int = 1
) -> ResultTable:
    """Train AIR with some settings and plain autograd, each in a process of its own, and compare the times.

    Where plain autograd never gets to `target`, its whole run counts, and the ratio is a lower bound.
    """
    curves = {
        "engine": run_apart(engine_curve, task, settings, seed, threads=threads),
        "plain autograd": run_apart(plain_curve, task, n_steps, seed, threads=threads),
    }
    rows = [{"contender": name, **_row(curve, target)} for name, curve in curves.items()]
    seconds = [row["seconds_to_target"] for row in rows]
    if not rows[1]["reached"]:
        seconds[1] = rows[1]["seconds"]
    for row, own in zip(rows, seconds, strict=True):
        row["plain / this"] = seconds[1] / own
    given = ", ".join(f"{name}={value}" for name, value in settings.items())
    protocol = (
        f"NMAE on hidden entries at most {target:g}, looked at every {task.every} steps; engine: "
        f"AIR(solver=Adam(schedule='cooldown')) with {given or 'nothing else'}; "
        f"plain autograd: depth {_DEPTH}, eta {_STRENGTH:g}, Adam {_LEARNING_RATE:g}, "
        f"{n_steps} steps; seed {seed}, CPU, {threads} thread(s), one process after the other; looks are not timed"
    )
    notes = [f"{row['contender']}: lowest NMAE seen {row['lowest']:.4f}" for row in rows]
    notes += [f"{row['contender']} never got to the target" for row in rows if not row["reached"]]
    return ResultTable("Time to an accuracy", protocol, rows, notes)


def _model(settings: dict[str, Any]) -> AIR:
    model = AIR(solver=Adam(schedule="cooldown"))
    return model.set_params(**routed(model, settings))


def engine_curve(task: Task, settings: dict[str, Any], seed: int) -> Curve:
    """Train the engine and return its curve."""
    model = _model({"random_state": seed, "device": "cpu"} | settings | {"evaluate_every": task.every})
    curve, looking = Curve([], [], []), Stopwatch()

    def look(record: Record) -> None:
        seconds = record.seconds - looking.seconds
        with looking:
            factors = model.current_factors()
            completed = factors.user_factors @ factors.item_factors.T + factors.mean
            completed += factors.user_biases[:, None] + factors.item_biases
            curve.add(record.epoch, seconds, task.error(completed))

    model.fit(Interactions.from_dense(np.where(task.observed, task.truth, np.nan)), callbacks=[look])
    return curve


def plain_curve(task: Task, n_steps: int, seed: int) -> Curve:
    """Train plain autograd and return its curve."""
    targets, mask = (torch.as_tensor(array, dtype=torch.float32) for array in (task.truth, task.observed))
    n_rows, n_columns = task.truth.shape
    model = PlainAIR(n_rows, n_columns, _DEPTH, _STRENGTH, torch.Generator().manual_seed(seed))
    optimizers = plain_optimizers(model, _LEARNING_RATE)
    curve, training, done = Curve([], [], []), Stopwatch(), 0
    while done < n_steps:
        block = min(task.every, n_steps - done)
        with training:
            for _ in range(block):
                plain_step(model, optimizers, targets, mask)
        done += block
        curve.add(done, training.seconds, task.error(model.completed().detach().numpy()))
    return curve


def _row(curve: Curve, target: float) -> dict[str, Any]:
    look = curve.reached(target)
    return {
        "steps": curve.steps[-1],
        "seconds": curve.seconds[-1],
        "ms_a_step": 1e3 * curve.seconds[-1] / curve.steps[-1],
        "nmae": curve.errors[-1],
        "lowest": min(curve.errors),
        "reached": look is not None,
        "steps_to_target": None if look is None else curve.steps[look],
        "seconds_to_target": math.nan if look is None else curve.seconds[look],
    }
