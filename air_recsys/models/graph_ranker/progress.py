"""How far the fit of a `GraphRanker` has come: its seconds, the file that keeps it, and the steps of the factors.

The factors are trained as long as lists on the hidden parts get better. The step size falls to 0 over all steps of a
training; one that is stopped early is the same training, cut short.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from air_recsys.models.graph_ranker.factors import Begin, FactorTraining, ItemFactors
from air_recsys.models.graph_ranker.hidden import HeldOut
from air_recsys.models.graph_ranker.inputs import RankerSettings
from air_recsys.training import Callback, Result, Trainer, train
from air_recsys.training.checkpoint import HeldCheckpoint, of_this_training
from air_recsys.training.interrupts import interruptible, interruption

State = dict[str, Any]
Parts = Callable[[], State]  # what a part of the fit adds to the state
_SELECTED = (*RankerSettings._fields, "n_steps")
_PARTS = 6  # of a training; its lists are measured after the second, and after each one that follows
_PATIENCE = 2  # measurements without a gain after which training stops
_FOR_FACTORS = 0.3  # share of a time budget without which it is no use to start
_NAME = "steps"


class TimeBudget:
    """The seconds that a fit may take."""

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
    seconds : float, optional
        The time budget. Seconds of the fit that the checkpoint is of count.
    interrupted : callable
        Returns the number of the signal that asks for an end, 0 without one.

    Attributes
    ----------
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
    row = {**row, "strength": row.get("strength", 0.0)}  # older ones have none
    return {**row, **{name: row[name] + 0 for name in names}}


class StepSearch:
    """Trainings of the factors on all hidden parts, in step with each other, and the best number of steps.

    Training also ends where the next steps, and the training that follows the search, would take longer than what is
    left of the budget of `progress`.
    """

    def __init__(self, ways: Sequence[HeldOut], begin: Begin, progress: Progress) -> None:
        self._ways, self._progress, self._budget = ways, progress, progress.budget
        self._trainings = [begin(way.shown) for way in ways]
        self._speed = 0.0  # seconds of a step, over all trainings so far
        self._best, self._kept = 0, list[ItemFactors]()
        if _NAME in progress.state:
            with of_this_training():
                self._load(progress.state[_NAME])

    def best(self, measure: Callable[[int], float]) -> int:
        """The best number of steps, whose factors the ways have then; 0 without time for any."""
        if self._trainings:
            self._search(measure)
            self._trainings.clear()  # several times the bytes of the factors
            self._progress.keep(self._state)
        for way, factors in zip(self._ways, self._kept, strict=False):
            way.use_factors(factors)
        return self._best

    def share_for_last(self) -> float:
        """The share of the time budget that a training of the best number of steps takes."""
        return self._speed * self._best / self._budget.seconds

    def _search(self, measure: Callable[[int], float]) -> None:
        highest, waited, n_steps = -1.0, 0, self._trainings[0].n_steps
        for step in sorted({-(-n_steps * part // _PARTS) for part in range(2, _PARTS + 1)}):
            if not self._advance(step):
                break
            ndcg = measure(step)
            waited += 1
            if ndcg > highest:
                highest, waited = ndcg, 0
                self._keep(step)
            if waited >= _PATIENCE:
                break
            self._progress.keep(self._state)

    def _advance(self, step: int) -> bool:
        """Train all to a number of steps, and return whether there is time for that, and for the last training."""
        for number, training in enumerate(self._trainings):
            if training.step >= step:
                continue
            if not self._has_time(number, step):
                return False
            begun = self._budget.spent() - self._speed * sum(self._steps())
            self._progress.train(training, step, lambda t=begun: self._timed(t))
            self._timed(begun)
        if set(self._steps()) == {step}:
            for way, training in zip(self._ways, self._trainings, strict=True):
                way.use_factors(training.factors())
        return self._has_time(len(self._trainings), step)

    def _has_time(self, number: int, step: int) -> bool:
        """Whether the trainings from a number on, and a last training, can come to a step."""
        if not self._speed:
            return self._budget.has(_FOR_FACTORS)
        missing = sum(step - training.step for training in self._trainings[number:])
        return self._speed * (missing + step) <= self._budget.left()

    def _steps(self) -> list[int]:
        return [training.step for training in self._trainings]

    def _keep(self, step: int) -> None:
        """Keep the factors of all ways, unless what was read from a checkpoint has come further."""
        if set(self._steps()) == {step}:
            self._best, self._kept = step, [way.factors for way in self._ways]

    def _timed(self, begun: float) -> State:
        """The state, where the first step of all trainings was begun then, had they never stopped."""
        self._speed = (self._budget.spent() - begun) / sum(self._steps())
        return self._state()

    def _state(self) -> State:
        trainings = [training.state() for training in self._trainings]
        return {_NAME: {"trainings": trainings, "speed": self._speed, "best": self._best, "kept": self._kept}}

    def _load(self, state: State) -> None:
        self._speed, self._best = float(state["speed"]), int(state["best"])
        self._kept = [ItemFactors(*each) for each in state["kept"]]
        for training, factors in zip(self._trainings, self._kept, strict=bool(self._best)):
            training.check(factors)
        if not state["trainings"]:
            self._trainings.clear()
        for training, own in zip(self._trainings, state["trainings"], strict=True):
            training.load_state(own)
