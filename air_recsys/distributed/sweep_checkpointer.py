"""Checkpoints of sweeps over several ranks: each holds the whole state, so rank 0 keeps the file of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from air_recsys.distributed.group import Group
from air_recsys.storage.validation import RandomState
from air_recsys.training import Result, Trainee
from air_recsys.training.checkpointer import Checkpointer, FileCheckpointer

FILE = "sweeps.ckpt"


class SweepCheckpointer(Checkpointer):
    """Keeps a training in ``sweeps.ckpt`` of a folder, every `every` sweeps and after the last, and restores it.

    Rank 0 writes the file and all ranks read it, however many there are. All methods raise `CheckpointError` on all
    ranks where one of them fails.
    """

    def __init__(self, group: Group, folder: Path, fingerprint: dict[str, Any], every: int) -> None:
        self._group, self._every = group, every
        file = folder / FILE
        before = group.of_first(file if file.exists() else None)
        own = file if group.rank == 0 else None
        self._file = group.together(lambda: FileCheckpointer(fingerprint, own, every, before))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def generator(self, random_state: RandomState) -> np.random.Generator:
        """Return the generator that the training starts with, at the position where it stood then."""
        return self._file.generator(random_state)

    def restore(self, trainee: Trainee, result: Result) -> int:
        """Return the sweep to begin with, everything being as it was then."""
        return self._group.together(lambda: self._file.restore(trainee, result))

    def keep(self, position: int, trainee: Trainee, result: Result, *, ends: bool) -> None:
        """Let rank 0 write the state at a position, where it is due."""
        if ends or position % self._every == 0:
            self._group.together(lambda: self._file.keep(position, trainee, result, ends=ends))
