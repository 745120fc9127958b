"""The training loop: full-batch Adam on an objective, with records, early stopping and a way back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import scipy.sparse as sp
import torch
from torch import Tensor
from tqdm import tqdm

from air_recsys.exceptions import DivergenceError
from air_recsys.nn.objective import Objective, Observations, Terms
from air_recsys.training.schedules import SCHEDULES

# An objective this many times its start (or 1, the size of scaled data) is never on its way to a minimum.
_DIVERGED = 1e3


@dataclass(frozen=True)
class Plan:
    """How to train.

    Parameters
    ----------
    n_epochs : int
        Most optimiser steps; each sees all observations.
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


Callback = Callable[[Record], bool | None]
"""Called with every record; training stops where one returns True."""


@dataclass
class Result:
    """What training leaves behind: its records, the epoch of the state kept, and why it stopped."""

    records: list[Record] = field(default_factory=list)
    kept_epoch: int = 0
    stopped_by: str = "n_epochs"
    error: DivergenceError | None = None
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

    Returns
    -------
    Result
    """
    return _Run(objective, plan, validation, validation_unit, list(callbacks), progress).run()


class _Run:
    def __init__(
        self,
        objective: Objective,
        plan: Plan,
        validation: Observations | None,
        validation_unit: float,
        callbacks: list[Callback],
        progress: bool,
    ) -> None:
        self.objective, self.plan, self.callbacks = objective, plan, callbacks
        self.validation, self.validation_unit = validation, validation_unit
        rates = ((objective.model_parameters(), 1.0), (objective.logits(), plan.graph_rate))
        groups = [{"params": tensors, "rate": rate} for tensors, rate in rates if tensors]
        self.optimizer = torch.optim.Adam(groups, lr=plan.learning_rate, fused=True)
        self.result = Result()
        self.bar = tqdm(total=plan.n_epochs, disable=not progress, unit="epoch", desc="training")
        self.start = time.perf_counter()
        self.last_good = (0, objective.state())
        self.best, self.best_rmse = self.last_good, math.inf
        self.previous_objective = math.inf

    def run(self) -> Result:
        with self.bar:
            for epoch in range(self.plan.n_epochs):
                if epoch % self.plan.graph_refresh == 0:
                    self._refresh_graphs()
                self._take_snapshot(epoch)
                terms = self.objective.evaluate()
                if epoch % self.plan.evaluate_every == 0 and self._stop_after_record(epoch, terms):
                    return self._finish()
                if self._delta_reached(epoch, terms):
                    return self._finish()
                self._step(epoch)
            self._take_snapshot(self.plan.n_epochs)
            self._stop_after_record(self.plan.n_epochs, self.objective.evaluate(), last=True)
        return self._finish()

    def _refresh_graphs(self) -> None:
        for logits, carry in self.objective.refresh_graphs():
            for state in self.optimizer.state[logits].values():
                if isinstance(state, Tensor) and state.shape == logits.shape:
                    state.copy_(carry(state))

    def _take_snapshot(self, epoch: int) -> None:
        if epoch in self.plan.snapshot_epochs:
            self.result.snapshots[epoch] = [laplacian.adjacency() for laplacian in self.objective.laplacians]

    def _step(self, epoch: int) -> None:
        rate = self._learning_rate(epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        self.optimizer.step()

    def _learning_rate(self, epoch: int) -> float:
        return self.plan.learning_rate * SCHEDULES[self.plan.schedule](epoch / self.plan.n_epochs)

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
        epoch, state = self.last_good
        self.objective.load_state(state)
        self.result.stopped_by, self.result.kept_epoch = "divergence", epoch
        self.result.error = DivergenceError(record.epoch, epoch, record.objective, self.plan.learning_rate)
        return True

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
