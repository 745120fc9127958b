"""Where the states of a training go, and where it goes on from: a file that one process keeps."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from air_recsys.exceptions import CheckpointError
from air_recsys.held_files import HeldError, HeldFile, hold
from air_recsys.training.checkpoint import CheckpointFile, Upgrade, of_this_training
from air_recsys.training.result import Record, Remembered, Result
from air_recsys.training.trainee import Trainee
from air_recsys.validation import RandomState, as_generator, check_integer
from air_recsys.writing import beside, real_place, remove_leftovers


class Checkpointer(Protocol):
    """Keeps a training on the way, so that it can go on after an interruption."""

    def restore(self, trainee: Trainee, result: Result) -> int:
        """Return the position to begin with, everything being as it was then."""
        ...

    def keep(self, position: int, trainee: Trainee, result: Result, *, ends: bool) -> None:
        """Take note of the state at a position, before its record; `ends` where no step follows."""
        ...


class FileCheckpointer:
    """Keeps the newest state in one file, and brings one back: from then on all goes as if it had never stopped.

    A training holds its file until `close`, or until its process ends: another one is refused.

    Parameters
    ----------
    fingerprint : mapping
        What a training that goes on from the file has to agree with, see `CheckpointFile`.
    checkpoint : path, optional
        File for the state of the training; None keeps none.
    every : int
        Positions between two states; the last position, interrupted or not, has one as well.
    resume_from : path, optional
        File to go on from; it is read here, before any work.
    upgrade : callable, optional
        See `CheckpointFile.read`.

    Attributes
    ----------
    chosen : dict, optional
        What the training took for settings that it found, as JSON holds it; None before it has, and in older files.

    Raises
    ------
    ParameterError
        For `every` below 1.
    CheckpointError
        If a file cannot be read or written, belongs to other data or parameters, or if another training writes to it.
    """

    def __init__(
        self,
        fingerprint: Mapping[str, Any],
        checkpoint: str | os.PathLike[str] | None = None,
        every: int = 50,
        resume_from: str | os.PathLike[str] | None = None,
        upgrade: Upgrade | None = None,
    ) -> None:
        self._every = check_integer("every", every, minimum=1)
        self._resume_from, self._file = resume_from, None
        self._state: dict[str, Any] | None = None
        self._start: dict[str, Any] = {}
        self._kept = 0
        self.chosen: Any = None
        if checkpoint is not None:
            self._file = CheckpointFile(checkpoint, fingerprint)
            self._release = weakref.finalize(self, hold_checkpoint(self._file.path).remove)
        try:
            if resume_from is not None:
                self._state = CheckpointFile(resume_from, fingerprint).read(upgrade)
                self.chosen = self._state.get("chosen")
            if self._file is not None:
                self._file.check_replaceable()
                remove_leftovers(self._file.path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other trainings have the file."""
        if self._file is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def generator(self, random_state: RandomState) -> np.random.Generator:
        """Return the generator that the training starts with, at the position where it stood then."""
        rng = as_generator(random_state)
        if self._state is not None:
            rng = generator_at(self._state.get("start"))
        self._start = position_of(rng)
        return rng

    def restore(self, trainee: Trainee, result: Result) -> int:
        """Return the position to begin with, everything being as it was then.

        Raises
        ------
        CheckpointError
            If the state is not one of such a training.
        """
        if self._state is None:
            return 0
        with of_this_training():
            course, self._state = self._state["course"], None
            trainee.load_step_state(course["steps"])
            result.records[:] = [Record(int(epoch), *map(float, rest)) for epoch, *rest in course["records"]]
            result.snapshots |= {int(position): list(graphs) for position, graphs in course["snapshots"]}
            result.remembered = _remembered(course, trainee)
            self._kept = int(course["position"])
        return self._kept

    def keep(self, position: int, trainee: Trainee, result: Result, *, ends: bool) -> None:
        """Write the state at a position, where it is due."""
        if self._file is None or position <= self._kept or not (ends or position % self._every == 0):
            return
        remembered = result.remembered
        assert remembered is not None
        states = {} if trainee.checks_steps else {"last_good": remembered.last_good}
        states |= {"best": remembered.best} if trainee.is_watched else {}
        course = {
            "position": position,
            "state": trainee.state(),
            "steps": trainee.step_state(),
            "records": result.records,
            "snapshots": list(result.snapshots.items()),
            "remembered": states,
            "best_rmse": remembered.best_rmse,
        }
        self._file.write({"start": self._start, "chosen": self.chosen, "course": course})
        self._kept = position


def _remembered(course: Mapping[str, Any], trainee: Trainee) -> Remembered:
    """Load the state of a course into the trainee, and return those that it may go back to."""
    present = int(course["position"]), course["state"]
    states = {name: (int(epoch), state) for name, (epoch, state) in course["remembered"].items()}
    for _, state in (*states.values(), present):
        trainee.load_state(state)  # shows that it can be gone back to
    return Remembered(states.get("last_good", present), states.get("best", present), float(course["best_rmse"]))


def hold_checkpoint(path: Path, lock: Path | None = None) -> HeldFile:
    """Hold the lock file of a checkpoint, by default beside it.

    Raises
    ------
    CheckpointError
        If another training holds it, in another process or in another thread, or where it cannot be made.
    """
    try:
        return hold(lock or beside(real_place(path), "lock"))
    except HeldError as error:
        holder = "" if error.args[0] is None else f" (process {error.args[0]})"
        raise CheckpointError(f"another training{holder} writes to {path}; give another path") from None
    except (OSError, ValueError) as error:  # a ValueError for a path with a null byte
        reason = getattr(error, "strerror", None) or error
        raise CheckpointError(f"cannot write the checkpoint {path}: {reason}") from None


def position_of(rng: np.random.Generator) -> dict[str, Any]:
    """Return where a generator stands, for a checkpoint."""
    return dict(rng.bit_generator.state)


def generator_at(state: Any) -> np.random.Generator:
    """Return a generator that stands where `position_of` found one."""
    kinds = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
    by_name = {kind.__name__: kind for kind in kinds}
    try:
        bits = by_name[state["bit_generator"]](0)
        bits.state = state
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(f"the checkpoint holds no position of a random generator: {error!r}") from None
    return np.random.Generator(bits)
