"""How far the fit of a `GraphRanker` has come, and the file that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from air_recsys.models.graph_ranker.factors import FactorCourse, ItemFactors
from air_recsys.models.graph_ranker.search.time_budget import TimeBudget
from air_recsys.models.graph_ranker.smoothings import RankerSettings
from air_recsys.training.checkpoint import HeldCheckpoint, of_this_training
from air_recsys.training.interrupts import interruptible, interruption

State = dict[str, Any]
Parts = Callable[[], State]  # what a part of the fit adds to the state
_CHOSEN = (*RankerSettings._fields, "n_steps")


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
        The settings tried so far.
    state : dict
        What parts of the fit keep, by their names: "steps" (of the choice of the number of steps), "chosen" (what the
        search has chosen), "last" (of the training with it).
    """

    def __init__(
        self, file: HeldCheckpoint, seconds: float | None = None, interrupted: Callable[[], int] = lambda: 0
    ) -> None:
        self._file, self._interrupted = file, interrupted
        before = file.state or {"seconds": 0.0, "history": [], "state": {}}
        with of_this_training():
            self.budget = TimeBudget(seconds, float(before["seconds"]))
            self.history = [_numbers(row, (*_CHOSEN, "ndcg", "recall")) for row in before["history"]]
            self.state: State = dict(before["state"])
            if self.chosen is not None:
                self.state["chosen"] = _numbers(self.chosen, _CHOSEN)

    @property
    def chosen(self) -> State | None:
        """The settings that a finished search has chosen, and the number of steps as "n_steps"."""
        return self.state.get("chosen")

    def has_chosen(self, chosen: State) -> None:
        """Write down what the search has chosen, in place of its own state."""
        self.state.clear()
        self.keep(lambda: {"chosen": chosen})

    def trained(self, course: FactorCourse, n_steps: int) -> ItemFactors:
        """Return the factors of the last training, going on from its state."""
        with of_this_training():
            course.load_state(self.state.get("last"))
        self.train(course, n_steps, lambda: {"last": course.state()})
        self.keep(lambda: {"last": course.state()})
        return course.factors()

    def keep(self, parts: Parts) -> None:
        """Replace the checkpoint, where there is to be one, by the state with these parts."""
        if self._file.file is not None:
            self.state |= parts()
            seconds = self.budget.spent()
            self._file.file.write({"seconds": seconds, "history": self.history, "state": self.state})

    def tried(self) -> None:
        """Write down that a setting was tried, while the state is small."""
        if not self.state:
            self.keep(dict)
        self._end_if_asked(dict, f"after {len(self.history)} settings")

    def train(self, course: FactorCourse, until: int, parts: Parts) -> None:
        """Take steps of a course, and write the state where it is due.

        Raises
        ------
        KeyboardInterrupt, Terminated
            After a signal, once the state is written.
        """
        if self._file.file is None:
            course.advance(until)
            return
        while course.step < min(until, course.n_steps):
            course.advance(course.step + 1)
            if course.step % self._file.every == 0:
                self.keep(parts)
            self._end_if_asked(parts, f"at step {course.step} of the factors")

    def _end_if_asked(self, parts: Parts, where: str) -> None:
        if number := self._interrupted():
            self.keep(parts)
            raise interruption(number, f"training was interrupted {where}")


@contextmanager
def progress_of(file: HeldCheckpoint, seconds: float | None) -> Iterator[Progress]:
    """Yield the progress of a fit, which hears signals while it has a file to write, and close the file."""
    with file, interruptible() if file.file is not None else nullcontext(lambda: 0) as interrupted:
        yield Progress(file, seconds, interrupted)
        if number := interrupted():
            raise interruption(number, "training was interrupted after its last step")


def _numbers(row: Mapping[str, Any], names: Iterable[str]) -> State:
    """Return a row of a state, or raise where it lacks a number."""
    return {**row, **{name: row[name] + 0 for name in names}}
