"""`fit` with checkpoints: where the state of a training goes, and where it comes from."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from air_recsys.exceptions import CheckpointError
from air_recsys.interactions import Interactions
from air_recsys.models.fingerprint import fingerprint
from air_recsys.training.checkpoint import CheckpointFile
from air_recsys.validation import as_generator, check_integer
from air_recsys.writing import remove_leftovers

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

Path = str | os.PathLike[str]


@dataclass
class Keeping:
    """What `fit` was asked to keep, and to go on from.

    Parameters
    ----------
    checkpoint : path, optional
        File for the state of the training.
    every : int
        Epochs, or sweeps of a posterior, between two states.
    resume_from : path, optional
        File to go on from.
    """

    checkpoint: Path | None = None
    every: int = 50
    resume_from: Path | None = None
    _file: CheckpointFile | None = field(default=None, init=False)
    _state: dict[str, Any] = field(default_factory=dict, init=False)
    _start: dict[str, Any] = field(default_factory=dict, init=False)

    def open(self, model: AIR, data: Interactions, validation: Interactions | None) -> None:
        """Read what is to go on, before any work.

        Raises
        ------
        ParameterError
            For `every` below 1.
        CheckpointError
            Where a file cannot be read or cannot stand at its path, or is of other data or parameters.
        """
        check_integer("every", self.every, minimum=1)
        if self.checkpoint is None and self.resume_from is None:
            return
        mark = fingerprint(model, data, validation)
        if self.resume_from is not None:
            self._state = CheckpointFile(self.resume_from, mark).read()
        if self.checkpoint is not None:
            self._file = CheckpointFile(self.checkpoint, mark)
            remove_leftovers(self._file.path)

    def generator(self, model: AIR) -> np.random.Generator:
        """Return the generator that the training starts with, at the position where it stood then."""
        rng = as_generator(model.random_state)
        if self._state:
            rng = restored(self._state.get("start"))
        self._start = position(rng)
        return rng

    @property
    def state(self) -> dict[str, Any] | None:
        """What to go on from, if anything."""
        if not self._state:
            return None
        found = self._state.get("course")
        if not isinstance(found, dict):
            raise CheckpointError(f"{self.resume_from} holds no state of this training")
        return found

    @property
    def write(self) -> Callable[[dict[str, Any]], None] | None:
        """What keeps a state, or None where nothing is kept."""
        file = self._file
        if file is None:
            return None
        return lambda state: file.write({"start": self._start, "course": state})


def position(rng: np.random.Generator) -> dict[str, Any]:
    """Return where a generator stands, for a checkpoint."""
    return dict(rng.bit_generator.state)


def restored(state: Any) -> np.random.Generator:
    """Return a generator that stands where `position` found one."""
    known = {kind.__name__: kind for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937)}
    known |= {kind.__name__: kind for kind in (np.random.Philox, np.random.SFC64)}
    try:
        bits = known[state["bit_generator"]](0)
        bits.state = state
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(f"the checkpoint holds no position of a random generator: {error!r}") from None
    return np.random.Generator(bits)
