"""The records of a training while it runs, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import scipy.sparse as sp

from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError, ParameterError


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


Fault = CheckpointError | KeyboardInterrupt | SystemExit
"""What ends a training early with all that it has reached."""

Callback = Callable[[Record], bool | None]
"""Called with every record; training stops where one returns True."""


def check_callbacks(callbacks: Any) -> list[Callback]:
    """Return callbacks as a list, or raise `ParameterError` where one cannot be called.

    Examples
    --------
    >>> check_callbacks([5])
    Traceback (most recent call last):
    air_recsys.exceptions.ParameterError: callbacks must be functions of a record, found 5
    """
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
