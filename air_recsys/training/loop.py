"""The training loop: Adam on an objective, with records, early stopping and a way back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import scipy.sparse as sp
import torch
import torch.distributed as dist
from torch import Tensor
from tqdm import tqdm

from air_recsys.exceptions import DivergenceError, MemoryLimitError
from air_recsys.nn.objective import Objective, Observations, Terms
from air_recsys.training.schedules import SCHEDULES
from air_recsys.training.steps import make_stepper

# An objective this many times its start (or 1, the size of scaled data) is never on its way to a minimum.
_DIVERGED = 1e3


@dataclass(frozen=True)
class Plan:
    """How to train.

    Parameters
    ----------
    n_epochs : int
        Most passes over all observations: one step each, or one for every batch of the objective.
    learning_rate : float
        Adam's step size for factors and biases.
    schedule : str
        A key of `air_recsys.training.schedules.SCHEDULES`.
    graph_rate : float
        Step size of the graphs' logits as a multiple of `learning_rate`.
    graph_refresh : int
        Epochs between two choices of a sparse graph's edges.
    evaluate_every : int
        Epochs between two records.
    patience : int, optional
        Records without a better validation error before training stops.
    stopping_delta : float, optional
        The paper's rule: stop once m n |F(t+1) - F(t)| falls below it.
    snapshot_epochs : frozenset of int
        Epochs at which the graphs are kept.
    """

    n_epochs: int
    learning_rate: float
    schedule: str = "constant"
    graph_rate: float = 1.0
    graph_refresh: int = 100
    evaluate_every: int = 50
    patience: int | None = None
    stopping_delta: float | None = None
    snapshot_epochs: frozenset[int] = frozenset()


class Record(NamedTuple):
    """The state of training after `epoch` steps."""

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


class Course(Protocol):
    """Keeps a training on the way, so that it can go on after an interruption."""

    def begin(self, optimizer: torch.optim.Adam, result: Result) -> int:
        """Return the epoch to begin with, everything being as it was then."""
        ...

    def reach(self, epoch: int, optimizer: torch.optim.Adam, result: Result) -> None:
        """Take note of the state before the record and the steps of an epoch."""
        ...


Callback = Callable[[Record], bool | None]
"""Called with every record; training stops where one returns True."""


@dataclass
class Result:
    """What training leaves behind: its records, the epoch of the state kept, and why it stopped."""

    records: list[Record] = field(default_factory=list)
    kept_epoch: int = 0
    stopped_by: str = "n_epochs"
    error: DivergenceError | MemoryLimitError | None = None
    snapshots: dict[int, list[sp.csr_array]] = field(default_factory=dict)
    """Adjacencies of the objective's graphs by epoch."""


@torch.no_grad()
def train(
    objective: Objective,
    plan: Plan,
    *,
    validation: Observations | None = None,
    validation_unit: float = 1.0,
    callbacks: Iterable[Callback] = (),
    progress: bool = False,
    course: Course | None = None,
) -> Result:
    """Minimise `objective` in place.

    With a validation part the objective ends in the state of the lowest validation error, else in the last one. If
    the objective leaves the finite numbers, it ends in its last good state and the result carries the error.

    Parameters
    ----------
    objective : Objective
    plan : Plan
    validation : Observations, optional
        Observed entries that `objective` has not seen.
    validation_unit : float
        What one unit of `validation` is to the reader of the records.
    callbacks : iterable of callable
        Called with every `Record`; one that returns True stops training.
    progress : bool
        Show a progress bar on the standard error.
    course : Course, optional
        Begins the training and sees every epoch.

    Returns
    -------
    Result
    """
    return _Run(objective, plan, validation, validation_unit, list(callbacks), progress, course).run()


class _Run:
    def __init__(
        self,
        objective: Objective,
        plan: Plan,
        validation: Observations | None,
        validation_unit: float,
        callbacks: list[Callback],
        progress: bool,
        course: Course | None,
    ) -> None:
        self.objective, self.plan, self.callbacks, self.course = objective, plan, callbacks, course
        self.validation, self.validation_unit = validation, validation_unit
        # Each part of the logits is stepped once an epoch, the rest once a batch.
        n_parts = max((len(laplacian.parts) for laplacian in objective.laplacians), default=1)
        rates = ((objective.model_parameters(), 1.0), (objective.logits(), plan.graph_rate * n_parts))
        groups = [{"params": tensors, "rate": rate} for tensors, rate in rates if tensors]
        self.stepper = make_stepper(objective, groups, plan.learning_rate)
        self.result = Result()
        self.bar = tqdm(total=plan.n_epochs, disable=not progress, unit="epoch", desc="training")
        self.start = time.perf_counter()
        self.best_rmse = math.inf
        self.previous_objective = math.inf

    def run(self) -> Result:
        try:
            return self._run()
        except torch.OutOfMemoryError as error:
            if dist.is_available() and dist.is_initialized():
                raise  # the other ranks wait for this one: it has to end
            self._go_back("memory")
            last_good = f"The model holds the last good state, of epoch {self.last_good[0]}"
            self.result.error = MemoryLimitError(f"{error}; {last_good}")
            return self.result

    def _run(self) -> Result:
        first = 0 if self.course is None else self.course.begin(self.stepper.optimizer, self.result)
        self.last_good = self.best = (first, self.objective.state())
        with self.bar:
            for epoch in range(first, self.plan.n_epochs):
                if epoch % self.plan.graph_refresh == 0:
                    self._refresh_graphs()
                self._take_snapshot(epoch)
                self._reach(epoch)
                watched = epoch % self.plan.evaluate_every == 0 or self.plan.stopping_delta is not None
                if watched and self._stops(epoch):
                    return self._finish()
                self._steps(epoch, evaluated=watched and len(self.objective.batches) == 1)
            self._take_snapshot(self.plan.n_epochs)
            self._reach(self.plan.n_epochs)
            self._stop_after_record(self.plan.n_epochs, self.objective.evaluate_all(), last=True)
        return self._finish()

    def _reach(self, epoch: int) -> None:
        if self.course is not None:
            self.course.reach(epoch, self.stepper.optimizer, self.result)

    def _refresh_graphs(self) -> None:
        for logits, carry in self.objective.refresh_graphs():
            for state in self.stepper.optimizer.state[logits].values():
                if isinstance(state, Tensor) and state.shape == logits.shape:
                    state.copy_(carry(state))

    def _take_snapshot(self, epoch: int) -> None:
        if epoch in self.plan.snapshot_epochs:
            self.result.snapshots[epoch] = [laplacian.adjacency() for laplacian in self.objective.laplacians]

    def _steps(self, epoch: int, *, evaluated: bool) -> None:
        """Take the steps of an epoch; with one batch the gradients may be there already."""
        n_batches = len(self.objective.batches)
        for batch in range(n_batches):
            self.stepper.step(batch, self._learning_rate(epoch + batch / n_batches), evaluated=evaluated)

    def _learning_rate(self, epoch: float) -> float:
        return self.plan.learning_rate * SCHEDULES[self.plan.schedule](epoch / self.plan.n_epochs)

    def _stops(self, epoch: int) -> bool:
        terms = self.objective.evaluate_all()
        if epoch % self.plan.evaluate_every == 0 and self._stop_after_record(epoch, terms):
            return True
        return self._delta_reached(epoch, terms)

    def _stop_after_record(self, epoch: int, terms: Terms, last: bool = False) -> bool:
        """Record the state before step `epoch`; return whether training ends here."""
        values = (*torch.stack(terms).tolist(), self._validation_rmse(), self._learning_rate(epoch))
        record = Record._make((epoch, *values, time.perf_counter() - self.start))
        if self._diverged(record):
            return True
        self.result.records.append(record)
        self.bar.update(epoch - self.bar.n)
        self.bar.set_postfix(objective=f"{record.objective:.3g}", refresh=False)
        self._remember(record, last)
        if self.validation is not None and self._out_of_patience(epoch):
            self.result.stopped_by = "patience"
            return True
        answers = [callback(record) for callback in self.callbacks]  # every callback sees every record
        if any(answer is True for answer in answers):
            self.result.stopped_by = "callback"
            return True
        return False

    def _remember(self, record: Record, last: bool) -> None:
        better = record.validation_rmse < self.best_rmse
        if not last or better:
            self.last_good = (record.epoch, self.objective.state())
        if better:
            self.best, self.best_rmse = self.last_good, record.validation_rmse

    def _validation_rmse(self) -> float:
        if self.validation is None:
            return math.nan
        error = self.objective.predict_pairs(self.validation.pattern) - self.validation.values
        return float(error.square().mean().sqrt()) * self.validation_unit

    def _diverged(self, record: Record) -> bool:
        first = self.result.records[0].objective if self.result.records else math.inf
        if math.isfinite(record.objective) and record.objective <= _DIVERGED * max(first, 1.0):
            return False
        self._go_back("divergence")
        self.result.error = DivergenceError(record.epoch, self.last_good[0], record.objective, self.plan.learning_rate)
        return True

    def _go_back(self, reason: str) -> None:
        """Go back to the last good state."""
        self.result.kept_epoch, state = self.last_good
        self.objective.load_state(state)
        self.result.stopped_by = reason

    def _out_of_patience(self, epoch: int) -> bool:
        waited = (epoch - self.best[0]) // self.plan.evaluate_every
        return self.plan.patience is not None and waited >= self.plan.patience

    def _delta_reached(self, epoch: int, terms: Terms) -> bool:
        if self.plan.stopping_delta is None:
            return False
        value = float(terms.objective) * self.objective.size
        change, self.previous_objective = abs(self.previous_objective - value), value
        if not change < self.plan.stopping_delta:
            return False
        recorded = self.result.records[-1].epoch == epoch
        if recorded or not self._stop_after_record(epoch, terms, last=True):
            self.result.stopped_by = "stopping_delta"
        return True

    def _finish(self) -> Result:
        if self.result.error is not None:
            return self.result
        if self.validation is not None:
            self.result.kept_epoch, state = self.best
            self.objective.load_state(state)
        else:
            self.result.kept_epoch = self.result.records[-1].epoch
        return self.result
