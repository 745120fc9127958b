"""What the loop of a training asks of a trainer, of whatever solver, and what it gives: records and a result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import scipy.sparse as sp

from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError, ParameterError

Fault = CheckpointError | KeyboardInterrupt | SystemExit
"""What ends a training early with all that it has reached."""
Adjacencies = list[sp.csr_array | None]
"""The graph of the rows, that of the columns, and those over other rows; None where one of the first two is absent."""


class Record(NamedTuple):
    """The state of a training after `epoch` epochs, or after so many sweeps; NaN is what a solver does not have."""

    epoch: int
    fit: float
    row_energy: float
    column_energy: float
    decay: float
    further: float
    objective: float
    validation_rmse: float  # NaN without a validation part
    learning_rate: float
    seconds: float
    noise: float = math.nan  # of a posterior: standard deviation, in the unit of the ratings


Callback = Callable[[Record], bool | None]
"""Called with every record; training stops where one returns True."""


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Callbacks as a list, or `ParameterError` where one cannot be called."""
    if not isinstance(callbacks, Iterable):
        raise ParameterError(f"callbacks must be a list of functions, found {callbacks!r}")
    listed = list(callbacks)
    for each in listed:
        if not callable(each):
            raise ParameterError(f"callbacks must be functions of a record, found {each!r}")
    return listed


@dataclass
class Remembered:
    """The states that a training may go back to, each with its position."""

    last_good: tuple[int, Any]
    best: tuple[int, Any]
    best_rmse: float = math.inf


@dataclass
class Result:
    """The result of a training: its records, the position of the kept state, and why it stopped."""

    records: list[Record] = field(default_factory=list)
    kept_epoch: int = 0
    stopped_by: str = ""
    error: DivergenceError | MemoryLimitError | Fault | None = None
    snapshots: dict[int, list[sp.csr_array | None]] = field(default_factory=dict)
    """Adjacencies by position."""
    remembered: Remembered | None = None
    """Of a training under way."""


class Measures(NamedTuple):
    """The figures of a state; NaN is what a solver does not have."""

    fit: float = math.nan
    row_energy: float = math.nan
    column_energy: float = math.nan
    decay: float = math.nan
    further: float = math.nan
    objective: float = math.nan
    learning_rate: float = math.nan
    noise: float = math.nan


class Trainer(Protocol):
    """Something that is trained in steps, epochs or sweeps; step k leads from position k to position k + 1.

    What one leaves out is as of a trainer without graphs and without held-out entries.
    """

    unit: str  # "epoch" or "sweep"
    n_steps: int  # the last position
    first_record: int  # the first position whose state can be measured
    evaluate_every: int  # positions between two records
    watches_every_step: bool  # whether `has_settled` has to be asked at each position
    checks_steps: bool  # whether a step that fails raises `NumericalError` and leaves the state; else `problem` tells
    alone: bool  # False where several processes train together and can only end together

    @property
    def ready(self) -> bool:
        """Whether the training may end at this state."""
        return True

    @property
    def is_watched(self) -> bool:
        """Whether there are held-out entries."""
        return False

    def is_due(self, position: int) -> bool:
        """Whether the state at a position has a record, beside the last one."""
        return position % self.evaluate_every == 0

    def advance(self, position: int) -> None:
        """Take the step from `position` to the next one."""
        ...

    def measure(self, position: int) -> Measures:
        """The figures of the present state."""
        ...

    def validation_error(self) -> float:
        """The root mean squared error on the held-out entries, NaN where there are none."""
        return math.nan

    def problem(self, record: Record, first: Record | None) -> str | None:
        """The fault of the state of a record, None where all is well; `first` is the first record."""
        return None

    def has_settled(self, measures: Measures) -> bool:
        """Whether the paper's stopping rule, which is about the objective, ends the training here."""
        return False

    def adjacencies(self) -> Adjacencies:
        """The present graphs, of those that are trained."""
        return [None, None]

    def snapshot(self) -> Adjacencies:
        """The graphs of the present state, for those who look on."""
        return self.adjacencies()

    def state(self) -> Any:
        """The values that predictions and graphs depend on; no later step changes them."""
        ...

    def load_state(self, state: Any) -> None:
        """Go back to what `state` returned, perhaps read from a file since."""
        ...

    def step_state(self) -> Any:
        """The values that further steps depend on beside `state`, such as the moments of an optimiser."""
        ...

    def load_step_state(self, state: Any) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        ...
