"""The course of a training: records, validation, what ends it, and the way back; the same for every solver."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from air_recsys.exceptions import CheckpointError, DivergenceError, MemoryLimitError, NumericalError
from air_recsys.nn.memory import is_of_memory
from air_recsys.storage.lazy import without_gradients
from air_recsys.storage.progress import messages_beside, progress_bar
from air_recsys.training.checkpointer import Checkpointer
from air_recsys.training.interrupts import interruptible, interruption
from air_recsys.training.trainer import Callback, Fault, Measures, Record, Remembered, Result, Trainer


@without_gradients
def train(
    trainer: Trainer,
    *,
    patience: int | None = None,
    snapshot_epochs: Iterable[int] = (),
    callbacks: Iterable[Callback] = (),
    checkpointer: Checkpointer | None = None,
    progress: bool | None = False,
) -> Result:
    """Train in place, to the last step or to what ends it early.

    With held-out entries the trainer ends in the state with the lowest validation error, else in the last one. If it
    diverges to NaN or infinity, or runs out of memory, it ends in its last good state, and the result has the error.
    Ctrl-C, and a checkpoint that cannot be written, end the training at the next position with its present state, and
    the result has them.

    Parameters
    ----------
    trainer : Trainer
    patience : int, optional
        Records without a better validation error before training stops.
    snapshot_epochs : iterable of int
        Positions at which the graphs are kept.
    callbacks : iterable of callable
        Called with every `Record`; one that returns True stops training.
    checkpointer : Checkpointer, optional
        Begins the training and sees every position.
    progress : bool or None
        Show a progress bar on the standard error. None: where that is a terminal, after two seconds.

    Returns
    -------
    Result

    Raises
    ------
    NumericalError
        If the first steps fail, so that there is no good state to end in.
    """
    return _Course(trainer, patience, frozenset(snapshot_epochs), list(callbacks), checkpointer, progress).run()


def asks_to_stop(answer: Any) -> bool:
    """Whether the answer of a callback ends a training: True does, in Python's or NumPy's form."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


@dataclass
class _Course:
    trainer: Trainer
    patience: int | None
    snapshot_epochs: frozenset[int]
    callbacks: list[Callback]
    checkpointer: Checkpointer | None
    progress: bool | None

    def __post_init__(self) -> None:
        self.result = Result(stopped_by=f"n_{self.trainer.unit}s")
        self.bar = progress_bar(self.progress, total=self.trainer.n_steps, unit=self.trainer.unit, desc="training")
        self.start = time.perf_counter()

    @property
    def remembered(self) -> Remembered:
        assert self.result.remembered is not None
        return self.result.remembered

    def run(self) -> Result:
        alone = self.trainer.alone
        try:
            # Processes that train together have to end together, which no signal to one of them can bring about.
            with interruptible() if alone else nullcontext(lambda: 0) as interrupted:
                self._run(interrupted)
        except (MemoryError, RuntimeError) as error:
            if not is_of_memory(error) or not alone or not self.trainer.ready or self.result.remembered is None:
                raise
            self._go_back("memory")
            last_good = f"The model holds the last good state, of {self.trainer.unit} {self.result.kept_epoch}"
            self.result.error = MemoryLimitError(f"{error}; {last_good}")
        return self.result

    def _run(self, interrupted: Callable[[], int]) -> None:
        with self.bar, messages_beside(self.bar):
            for position in range(self._begin(), self.trainer.n_steps + 1):
                if position in self.snapshot_epochs:
                    self.result.snapshots[position] = self.trainer.snapshot()
                if position >= self.trainer.first_record and self._ends_at(position, interrupted):
                    break
                if not self._advance(position):
                    break
        self._finish()

    def _begin(self) -> int:
        first = 0 if self.checkpointer is None else self.checkpointer.restore(self.trainer, self.result)
        if self.result.remembered is None:
            state = first, self.trainer.state()
            self.result.remembered = Remembered(state, state)
        if self.result.records:
            self.start -= self.result.records[-1].seconds
        return first

    def _ends_at(self, position: int, interrupted: Callable[[], int]) -> bool:
        """Keep, measure and record the state at a position as far as it is due; return whether training ends here."""
        trainer, fault = self.trainer, self._keep(position, interrupted)
        last = fault is not None or position == trainer.n_steps
        due = last or trainer.is_due(position)
        if not (due or trainer.watches_every_step):
            return False
        measures = trainer.measure(position)
        stops = due and self._stops_after_record(position, measures, last=last)
        if not stops and trainer.has_settled(measures):
            stops = True
            if due or not self._stops_after_record(position, measures, last=True):
                self.result.stopped_by = "stopping_delta"
        if fault is not None and self.result.error is None:
            self.result.error = fault
            self.result.stopped_by = "checkpoint" if isinstance(fault, CheckpointError) else "interrupt"
        return stops or last

    def _keep(self, position: int, interrupted: Callable[[], int]) -> Fault | None:
        """Let the checkpointer take note of the state; return what has gone wrong."""
        trainer = self.trainer
        number = interrupted() if trainer.ready else 0
        try:
            if self.checkpointer is not None:
                ends = number > 0 or position == trainer.n_steps
                self.checkpointer.keep(position, trainer, self.result, ends=ends)
        except CheckpointError as error:
            if not trainer.alone:
                raise
            return error if trainer.ready else None
        return interruption(number, f"training was interrupted at {trainer.unit} {position}") if number else None

    def _advance(self, position: int) -> bool:
        """Take a step; return False where it failed and the trainer went back."""
        try:
            self.trainer.advance(position)
        except NumericalError as error:
            if not self.result.records or not self.trainer.ready:
                raise
            self._go_back("divergence")
            self.result.error = DivergenceError(position + 1, self.result.kept_epoch, str(error))
            return False
        if self.trainer.checks_steps:
            self.remembered.last_good = position + 1, self.trainer.state()
        return True

    def _stops_after_record(self, position: int, measures: Measures, *, last: bool) -> bool:
        """Record the state at a position; return whether training ends here."""
        error = self.trainer.validation_error()
        seconds = time.perf_counter() - self.start
        record = Record(epoch=position, validation_rmse=error, seconds=seconds, **measures._asdict())
        if self._has_diverged(record):
            return True
        self.result.records.append(record)
        self._show(record)
        self._remember(record, last)
        answers = [asks_to_stop(callback(record)) for callback in self.callbacks]  # every callback sees every record
        if not self.trainer.ready:
            return False
        if self._is_out_of_patience(position):
            self.result.stopped_by = "patience"
        elif any(answers):
            self.result.stopped_by = "callback"
        else:
            return False
        return True

    def _show(self, record: Record) -> None:
        self.bar.update(record.epoch - self.bar.n)
        figures = {"objective": record.objective, "noise": record.noise}
        shown = {name: f"{value:.3g}" for name, value in figures.items() if math.isfinite(value)}
        self.bar.set_postfix(shown, refresh=False)

    def _has_diverged(self, record: Record) -> bool:
        reason = self.trainer.problem(record, self.result.records[0] if self.result.records else None)
        if reason is None:
            return False
        self._go_back("divergence")
        self.result.error = DivergenceError(record.epoch, self.result.kept_epoch, reason)
        return True

    def _remember(self, record: Record, last: bool) -> None:
        better = record.validation_rmse < self.remembered.best_rmse and self.trainer.ready
        if not self.trainer.checks_steps and (better or not last):
            self.remembered.last_good = record.epoch, self.trainer.state()
        if better:
            self.remembered.best, self.remembered.best_rmse = self.remembered.last_good, record.validation_rmse

    def _is_out_of_patience(self, position: int) -> bool:
        waited = (position - self.remembered.best[0]) // self.trainer.evaluate_every
        return self.trainer.is_watched and self.patience is not None and waited >= self.patience

    def _go_back(self, reason: str) -> None:
        """Go back to the last good state."""
        self.result.kept_epoch, state = self.remembered.last_good
        self.trainer.load_state(state)
        self.result.stopped_by = reason

    def _finish(self) -> None:
        if isinstance(self.result.error, DivergenceError):
            return
        if self.trainer.is_watched:
            self.result.kept_epoch, state = self.remembered.best
            self.trainer.load_state(state)
        else:
            self.result.kept_epoch = self.result.records[-1].epoch
