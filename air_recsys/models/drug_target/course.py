"""The course of `DrugTargetAIR.fit`: what its rounds tell callbacks, and the memory that it takes."""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

import numpy as np

from air_recsys.data.described.sides import Given, n_kernels
from air_recsys.data.interactions import Interactions
from air_recsys.models.drug_target.completion import Completed
from air_recsys.models.drug_target.similarities import WHOLE
from air_recsys.nn.memory import MemoryPlan
from air_recsys.training import Callback, Record


class Rounds:
    """Calls callbacks with a record after each round, until one of them returns True."""

    def __init__(self, callbacks: list[Callback]) -> None:
        self.callbacks, self.start = callbacks, perf_counter()
        self.stopped_at: int | None = None
        self.bar: Any = None

    def __call__(self, done: int, completed: Completed) -> bool:
        """Whether a callback stops the rounds."""
        if self.bar is not None:
            self.bar.update()
        if not self.callbacks:
            return False
        fit, objective = completed.objective()
        seconds = perf_counter() - self.start
        terms = fit, math.nan, math.nan, math.nan, objective - fit, objective
        record = Record(done, *terms, validation_rmse=math.nan, learning_rate=math.nan, seconds=seconds)
        answers = [each(record) for each in self.callbacks]  # a list: all of them are called
        if any(answers):
            self.stopped_at = done
        return self.stopped_at is not None


_DOUBLE = 2**22  # pairs of the largest table that is completed in 64 bits


def precision_of(data: Interactions) -> type[np.floating]:
    """The type of the numbers of a completion."""
    return np.float64 if data.n_users * data.n_items <= _DOUBLE else np.float32


def planned(data: Interactions, given: tuple[Given, Given], unobserved: float | str) -> MemoryPlan:
    """The memory of a fit at its peak, from the arrays that each of its stages holds: a slightly high estimate."""
    kernels = [n_kernels(each) for each in given]
    sides = (data.n_users, data.user_index, kernels[0]), (data.n_items, data.item_index, kernels[1])
    word, pairs = np.dtype(precision_of(data)).itemsize, data.n_users * data.n_items
    squares = [n**2 for n, _, _ in sides]
    similar = [8 * n**2 for n, _, several in sides if several]
    several = max((8 * n**2 * (each + 3) for n, _, each in sides if each > 1), default=0)
    missing = unobserved == 0 or (unobserved == "auto" and not data.ratings.all())
    compared = 8 * (data.n_ratings if missing else pairs) // 10
    held = MemoryPlan(sum(similar) + word * sum(squares), 2 * word * pairs, 4 * word * pairs, 0)
    rounds = held.total + (2 * sum(squares) + (12 if missing else 9) * pairs) * word + sum(similar) * (word + 8) // 8
    regression = held.total + 3 * word * pairs + 15 * compared  # the rounds: two spectra at a time
    is_new = any(several and np.unique(rows[data.ratings > 0]).size < n for n, rows, several in sides)
    own = (21 if is_new else 4) * 8 * pairs
    extension = held.total + sum(similar) + 6 * max(similar, default=0) + own + 12 * compared
    dense = [7 * 8 * each if n <= WHOLE else 3 * word * each for each, (n, _, _) in zip(squares, sides, strict=True)]
    graphs = 4 * word * pairs + sum(similar) + max(dense[0], dense[1] + min(12 * squares[0], 12 * WHOLE**2))
    reading = sum(similar) + 4 * max(similar, default=0) + held.ratings + several
    peak = max(rounds, regression, extension, graphs, reading)
    return held._replace(work=int(1.05 * peak) - held.total)
