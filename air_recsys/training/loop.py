"""The training loop: Adam on an objective, with records, early stopping and a way back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import Tensor
from tqdm import tqdm

from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError
from air_recsys.nn.objective import Objective, Observations, Terms
from air_recsys.training.interrupts import interruptible
from air_recsys.training.plan import Plan
from air_recsys.training.result import Callback, Course, Fault, Record, Remembered, Result, stopped_by
from air_recsys.training.schedules import SCHEDULES
from air_recsys.training.steps import make_stepper

# An objective this many times its start (or 1, the size of scaled data) is never on its way to a minimum.
_DIVERGED = 1e3


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
    the objective leaves the finite numbers, it ends in its last good state and the result carries the error. Ctrl-C
    ends the training at the next epoch, as a callback would, and the result carries the `KeyboardInterrupt`.

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
        self.alone = not (dist.is_available() and dist.is_initialized())

    @property
    def remembered(self) -> Remembered:
        assert self.result.remembered is not None
        return self.result.remembered

    def run(self) -> Result:
        try:
            # The ranks of a group have to end together, which no signal to one of them can bring about.
            with interruptible() if self.alone else nullcontext(lambda: False) as interrupted:
                return self._run(interrupted)
        except torch.OutOfMemoryError as error:
            if not self.alone:
                raise  # the other ranks wait for this one: it has to end
            self._go_back("memory")
            last_good = f"The model holds the last good state, of epoch {self.result.kept_epoch}"
            self.result.error = MemoryLimitError(f"{error}; {last_good}")
            return self.result

    def _run(self, interrupted: Callable[[], bool]) -> Result:
        first = self._begin()
        with self.bar:
            for epoch in range(first, self.plan.n_epochs):
                if epoch % self.plan.graph_refresh == 0:
                    self._refresh_graphs()
                self._take_snapshot(epoch)
                fault = self._reach(epoch, interrupted=interrupted())
                if fault is not None:
                    return self._end(epoch, fault)
                watched = epoch % self.plan.evaluate_every == 0 or self.plan.stopping_delta is not None
                if watched and self._stops(epoch):
                    return self._finish()
                self._steps(epoch, evaluated=watched and len(self.objective.batches) == 1)
            self._take_snapshot(self.plan.n_epochs)
            return self._end(self.plan.n_epochs, self._reach(self.plan.n_epochs))

    def _begin(self) -> int:
        first = 0 if self.course is None else self.course.begin(self.stepper.optimizer, self.result)
        if self.result.remembered is None:
            state = first, self.objective.state()
            self.result.remembered = Remembered(state, state)
        if self.result.records:
            self.start -= self.result.records[-1].seconds
        return first

    def _reach(self, epoch: int, *, interrupted: bool = False) -> Fault | None:
        """Let the course take note of the state; return what has gone wrong."""
        ends = interrupted or epoch == self.plan.n_epochs
        try:
            if self.course is not None:
                self.course.reach(epoch, self.stepper.optimizer, self.result, ends=ends)
        except CheckpointError as error:
            if not self.alone:
                raise
            return error
        return KeyboardInterrupt(f"training was interrupted at epoch {epoch}") if interrupted else None

    def _end(self, epoch: int, fault: Fault | None) -> Result:
        """Record the state before step `epoch`, the last one, and finish."""
        stopped = self._stop_after_record(epoch, self.objective.evaluate_all(), last=True)
        if fault is not None and self.result.error is None:
            self.result.error = fault
            if not stopped:
                self.result.stopped_by = stopped_by(fault)
        return self._finish()

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
        record = Record._make((epoch, *values, time.perf_counter() - self.start, math.nan))
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
        better = record.validation_rmse < self.remembered.best_rmse
        if not last or better:
            self.remembered.last_good = (record.epoch, self.objective.state())
        if better:
            self.remembered.best, self.remembered.best_rmse = self.remembered.last_good, record.validation_rmse

    def _validation_rmse(self) -> float:
        if self.validation is None:
            return math.nan
        error = self.objective.predict_pairs(self.validation.pattern) - self.validation.values
        return float(error.square().mean().sqrt()) * self.validation_unit

    def _diverged(self, record: Record) -> bool:
        first = self.result.records[0].objective if self.result.records else math.inf
        finite, rate = self._finite_logits(), self.plan.learning_rate
        if math.isfinite(record.objective) and record.objective <= _DIVERGED * max(first, 1.0) and finite:
            return False
        self._go_back("divergence")
        self.result.error = DivergenceError(
            record.epoch,
            self.remembered.last_good[0],
            f"{f'the objective is {record.objective:g}' if finite else 'the logits of a graph are not finite'} at "
            f"epoch {record.epoch} with learning_rate={rate:g}; lower learning_rate (try {rate / 10:g})",
        )
        return True

    def _finite_logits(self) -> bool:
        # The objective does not show logits that are not due: of a graph that is kept for some epochs, or of a part.
        # The ranks of a group see their own parts only, and have to end together.
        return not self.alone or all(bool(logits.isfinite().all()) for logits in self.objective.logits())

    def _go_back(self, reason: str) -> None:
        """Go back to the last good state."""
        self.result.kept_epoch, state = self.remembered.last_good
        self.objective.load_state(state)
        self.result.stopped_by = reason

    def _out_of_patience(self, epoch: int) -> bool:
        waited = (epoch - self.remembered.best[0]) // self.plan.evaluate_every
        return self.plan.patience is not None and waited >= self.plan.patience

    def _delta_reached(self, epoch: int, terms: Terms) -> bool:
        if self.plan.stopping_delta is None:
            return False
        value = float(terms.objective) * self.objective.size
        change, self.remembered.previous_objective = abs(self.remembered.previous_objective - value), value
        if not change < self.plan.stopping_delta:
            return False
        recorded = self.result.records[-1].epoch == epoch
        if recorded or not self._stop_after_record(epoch, terms, last=True):
            self.result.stopped_by = "stopping_delta"
        return True

    def _finish(self) -> Result:
        if isinstance(self.result.error, DivergenceError):
            return self.result
        if self.validation is not None:
            self.result.kept_epoch, state = self.remembered.best
            self.objective.load_state(state)
        else:
            self.result.kept_epoch = self.result.records[-1].epoch
        return self.result
