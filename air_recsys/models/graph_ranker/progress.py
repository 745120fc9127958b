"""How far the fit of a `GraphRanker` has come: its seconds, and the file that keeps it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from air_recsys.models.graph_ranker.factors import FactorTraining, ItemFactors
from air_recsys.models.graph_ranker.settings import RankerSettings
from air_recsys.training import Callback, Result, Trainer, train
from air_recsys.training.checkpoint import HeldCheckpoint, of_this_training
from air_recsys.training.interrupts import interruptible, interruption

State = dict[str, Any]
Parts = Callable[[], State]  # what a part of the fit adds to the state
_SELECTED = (*RankerSettings._fields, "n_steps")


class TimeBudget:
    """The seconds that a fit may take.

    Parameters
    ----------
    seconds : float, optional
        None for all that it needs.
    spent : float
        Seconds before, of a fit that goes on.

    Examples
    --------
    >>> TimeBudget(100.0, spent=60.0).has(0.5)
    False
    """

    def __init__(self, seconds: float | None = None, spent: float = 0.0) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._start = time.perf_counter() - spent

    def spent(self) -> float:
        """The seconds since the start."""
        return time.perf_counter() - self._start

    def left(self) -> float:
        """The seconds that are left, below 0 where the time is over."""
        return self.seconds - self.spent()

    def has(self, share: float) -> bool:
        """Whether a share of the seconds is left, and more."""
        return self.seconds == math.inf or self.left() > share * self.seconds


class Progress:
    """The state of a fit, as it goes on from a checkpoint, and what writes it to one.

    Parameters
    ----------
    file : HeldCheckpoint
    seconds : float, optional
        The time budget. Seconds of the fit that the checkpoint is of count.
    interrupted : callable
        Returns the number of the signal that asks for an end, 0 without one.

    Attributes
    ----------
    budget : TimeBudget
    history : list of dict
        The candidates tried so far.
    state : dict
        What parts of the fit keep, by their names: "steps" (of the search for the number of steps), "selected" (what
        the search has selected), "last" (of the training with it).
    """

    def __init__(
        self, file: HeldCheckpoint, seconds: float | None = None, interrupted: Callable[[], int] = lambda: 0
    ) -> None:
        self._file, self._interrupted = file, interrupted
        before = file.state or {"seconds": 0.0, "history": [], "state": {}}
        with of_this_training():
            self.budget = TimeBudget(seconds, float(before["seconds"]))
            self.history = [_numbers(row, (*_SELECTED, "ndcg", "recall")) for row in before["history"]]
            self.state: State = dict(before["state"])
            if self.selected is not None:
                self.state["selected"] = _numbers(self.selected, _SELECTED)

    @property
    def selected(self) -> State | None:
        """The settings that a finished search has selected, and the number of steps as "n_steps"."""
        return self.state.get("selected")

    def has_selected(self, selected: State) -> None:
        """Write down what the search has selected, in place of its own state."""
        self.state.clear()
        self.keep(lambda: {"selected": selected})

    def trained(self, training: FactorTraining, n_steps: int, callbacks: Iterable[Callback]) -> ItemFactors:
        """The factors of the last training, which goes on from its state."""
        with of_this_training():
            training.load_state(self.state.get("last"))
        self.train(training, n_steps, lambda: {"last": training.state()}, callbacks)
        self.keep(lambda: {"last": training.state()})
        return training.factors()

    def keep(self, parts: Parts) -> None:
        """Replace the checkpoint, where there is to be one, by the state with these parts."""
        if self._file.file is not None:
            self.state |= parts()
            seconds = self.budget.spent()
            self._file.file.write({"seconds": seconds, "history": self.history, "state": self.state})

    def tried(self) -> None:
        """Write down that a candidate was tried, while the state is small."""
        if not self.state:
            self.keep(dict)
        self.end_if_asked(dict, f"after {len(self.history)} settings")

    def train(self, training: FactorTraining, until: int, parts: Parts, callbacks: Iterable[Callback] = ()) -> None:
        """Take the steps that are missing to a number of them, and write the state where it is due.

        Raises
        ------
        DivergenceError, MemoryLimitError
            As `air_recsys.training.train` finds them.
        KeyboardInterrupt, Terminated
            After a signal, once the state is written.
        """
        trainer = training.trainer(until)
        if trainer.step < trainer.n_steps:
            keeper = _Keeper(self, trainer.step, self._file.every, parts)
            error = train(trainer, callbacks=callbacks, checkpointer=keeper).error
            if error is not None:
                raise error

    def end_if_asked(self, parts: Parts, where: str) -> None:
        """Raise where a signal has asked for an end, once the state with these parts is written."""
        if number := self._interrupted():
            self.keep(parts)
            raise interruption(number, f"training was interrupted {where}")


class _Keeper(NamedTuple):
    """Keeps the progress of a fit at the positions of one of its trainings."""

    progress: Progress
    first: int
    every: int
    parts: Parts

    def restore(self, trainer: Trainer, result: Result) -> int:
        """The position to begin with: the progress has loaded the state."""
        return self.first

    def keep(self, position: int, trainer: Trainer, result: Result, *, ends: bool) -> None:
        """Write the state at a position, where it is due or a signal has asked for an end."""
        if position > self.first:
            if position % self.every == 0:
                self.progress.keep(self.parts)
            self.progress.end_if_asked(self.parts, f"at step {position} of the factors")


@contextmanager
def progress_of(file: HeldCheckpoint, seconds: float | None) -> Iterator[Progress]:
    """Yield the progress of a fit, which hears signals while it has a file to write, and close the file."""
    with file, interruptible() if file.file is not None else nullcontext(lambda: 0) as interrupted:
        yield Progress(file, seconds, interrupted)
        if number := interrupted():
            raise interruption(number, "training was interrupted after its last step")


def _numbers(row: Mapping[str, Any], names: Iterable[str]) -> State:
    """A row of a state; raise where it lacks a number."""
    return {**row, **{name: row[name] + 0 for name in names}}
