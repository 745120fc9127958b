"""What the course of a training asks of that which is trained, whatever solver it belongs to."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import scipy.sparse as sp

from air_recsys.training.result import Record

Adjacencies = list[sp.csr_array | None]
"""The graph of the rows, that of the columns, and those over other rows; None where one of the first two is absent."""


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


class Trainee(Protocol):
    """Something that is trained in steps, epochs or sweeps; step k leads from position k to position k + 1.

    Attributes
    ----------
    unit : str
        "epoch" or "sweep".
    n_steps : int
        The last position.
    first_record : int
        The first position whose state can be measured.
    evaluate_every : int
        Positions between two records.
    watches_every_step : bool
        Whether `has_settled` has to be asked at each position.
    checks_steps : bool
        Whether a step that fails raises `NumericalError` and leaves the state as it was; where not, `problem` tells.
    alone : bool
        False where several processes train together and can only end together.
    """

    unit: str
    n_steps: int
    first_record: int
    evaluate_every: int
    watches_every_step: bool
    checks_steps: bool
    alone: bool

    @property
    def ready(self) -> bool:
        """Whether the training may end at this state."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether there are held-out entries."""
        ...

    def advance(self, position: int) -> None:
        """Take the step from `position` to the next one."""
        ...

    def measure(self, position: int) -> Measures:
        """Return the figures of the present state."""
        ...

    def validation_error(self) -> float:
        """Return the root mean squared error on the held-out entries, NaN where there are none."""
        ...

    def problem(self, record: Record, first: Record | None) -> str | None:
        """Return what is wrong with the state of a record, None where all is well; `first` is the first record."""
        ...

    def has_settled(self, measures: Measures) -> bool:
        """Return whether the paper's stopping rule ends the training here."""
        ...

    def adjacencies(self) -> Adjacencies:
        """Return the present graphs."""
        ...

    def state(self) -> Any:
        """Return what predictions and graphs depend on; no later step changes it."""
        ...

    def load_state(self, state: Any) -> None:
        """Go back to what `state` returned, perhaps read from a file since."""
        ...

    def step_state(self) -> Any:
        """Return what further steps depend on beside `state`, such as the moments of an optimiser."""
        ...

    def load_step_state(self, state: Any) -> None:
        """Go back to what `step_state` returned, perhaps read from a file since."""
        ...
