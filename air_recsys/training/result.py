"""What a training tells while it runs, and what it leaves behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import scipy.sparse as sp
import torch

from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError
from air_recsys.nn.objective import State


class Record(NamedTuple):
    """The state of training after `epoch` steps, or of a posterior after so many sweeps; NaN is what it has not."""

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


class Course(Protocol):
    """Keeps a training on the way, so that it can go on after an interruption."""

    def begin(self, optimizer: torch.optim.Adam, result: Result) -> int:
        """Return the epoch to begin with, everything being as it was then."""
        ...

    def reach(self, epoch: int, optimizer: torch.optim.Adam, result: Result, *, ends: bool) -> None:
        """Take note of the state before the record and the steps of an epoch; `ends` where no step follows."""
        ...


Fault = CheckpointError | KeyboardInterrupt
"""What ends a training early with all that it has reached."""

Callback = Callable[[Record], bool | None]
"""Called with every record; training stops where one returns True."""


@dataclass
class Remembered:
    """What the loop looks back at: states with their epochs, and values of the objective."""

    last_good: tuple[int, State]
    best: tuple[int, State]
    best_rmse: float = math.inf
    previous_objective: float = math.inf


@dataclass
class Result:
    """What training leaves behind: its records, the epoch of the state kept, and why it stopped."""

    records: list[Record] = field(default_factory=list)
    kept_epoch: int = 0
    stopped_by: str = "n_epochs"
    error: DivergenceError | MemoryLimitError | Fault | None = None
    snapshots: dict[int, list[sp.csr_array]] = field(default_factory=dict)
    """Adjacencies of the objective's graphs by epoch."""
    remembered: Remembered | None = None
    """Of a training under way."""


def stopped_by(fault: Fault) -> str:
    """Return the word for what ended a training early."""
    return "interrupt" if isinstance(fault, KeyboardInterrupt) else "checkpoint"
