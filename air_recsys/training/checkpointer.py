"""Where the states of a training go, and where it goes on from: a file that one process keeps."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from air_recsys.exceptions import CheckpointError
from air_recsys.storage.validation import RandomState, as_generator
from air_recsys.training.checkpoint import HeldCheckpoint, of_this_training
from air_recsys.training.trainer import Record, Remembered, Result, Trainer


class Checkpointer(Protocol):
    """Keeps a training on the way, so that it can go on after an interruption."""

    def restore(self, trainer: Trainer, result: Result) -> int:
        """The position to begin with, everything being as it was then."""
        ...

    def keep(self, position: int, trainer: Trainer, result: Result, *, ends: bool) -> None:
        """Take note of the state at a position, before its record; `ends` where no step follows."""
        ...


class FileCheckpointer(HeldCheckpoint):
    """Keeps the newest state in one file, and brings one back: from then on all goes as if it had never stopped.

    The parameters are those of `HeldCheckpoint`. The last position, interrupted or not, has a state as well.

    Attributes
    ----------
    chosen : dict, optional
        What the training took for settings that it found, as JSON holds it; None before it has.
    """

    chosen: Any = None
    _start: Mapping[str, Any] = MappingProxyType({})
    _kept = 0

    def generator(self, random_state: RandomState) -> np.random.Generator:
        """The generator that the training starts with, at the position where it stood then."""
        rng = as_generator(random_state)
        if self.state is not None:
            rng, self.chosen = generator_at(self.state.get("start")), self.state.get("chosen")
        self._start = position_of(rng)
        return rng

    def restore(self, trainer: Trainer, result: Result) -> int:
        """The position to begin with, everything being as it was then."""
        if self.state is None:
            return 0
        with of_this_training():
            course, self.state = self.state["course"], None
            trainer.load_step_state(course["steps"])
            result.records[:] = [Record(int(epoch), *map(float, rest)) for epoch, *rest in course["records"]]
            result.snapshots |= {int(position): list(graphs) for position, graphs in course["snapshots"]}
            result.remembered = _remembered(course, trainer)
            self._kept = int(course["position"])
        return self._kept

    def keep(self, position: int, trainer: Trainer, result: Result, *, ends: bool) -> None:
        """Write the state at a position, where it is due."""
        if self.file is None or position <= self._kept or not (ends or position % self.every == 0):
            return
        remembered = result.remembered
        assert remembered is not None
        states = {} if trainer.checks_steps else {"last_good": remembered.last_good}
        states |= {"best": remembered.best} if trainer.is_watched else {}
        course = {
            "position": position,
            "state": trainer.state(),
            "steps": trainer.step_state(),
            "records": result.records,
            "snapshots": list(result.snapshots.items()),
            "remembered": states,
            "best_rmse": remembered.best_rmse,
        }
        self.file.write({"start": dict(self._start), "chosen": self.chosen, "course": course})
        self._kept = position


def _remembered(course: Mapping[str, Any], trainer: Trainer) -> Remembered:
    """Load the state of a course into the trainer, and return those that it may go back to."""
    present = int(course["position"]), course["state"]
    states = {name: (int(epoch), state) for name, (epoch, state) in course["remembered"].items()}
    for _, state in (*states.values(), present):
        trainer.load_state(state)  # shows that it can be gone back to
    return Remembered(states.get("last_good", present), states.get("best", present), float(course["best_rmse"]))


def position_of(rng: np.random.Generator) -> dict[str, Any]:
    """The position of a generator, for a checkpoint."""
    return dict(rng.bit_generator.state)


def generator_at(state: Any) -> np.random.Generator:
    """A generator that stands where `position_of` found one."""
    kinds = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
    by_name = {kind.__name__: kind for kind in kinds}
    try:
        bits = by_name[state["bit_generator"]](0)
        bits.state = state
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(f"the checkpoint holds no position of a random generator: {error!r}") from None
    return np.random.Generator(bits)
