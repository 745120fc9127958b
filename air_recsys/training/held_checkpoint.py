"""A checkpoint file that one training holds, and the state that it goes on from."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from air_recsys.exceptions import CheckpointError
from air_recsys.storage.held_files import HeldError, HeldFile, hold
from air_recsys.storage.validation import check_integer, check_path
from air_recsys.storage.writing import beside, real_place, remove_leftovers
from air_recsys.training.checkpoint import CheckpointFile


class HeldCheckpoint:
    """The file for the states of a training, and the state that is read at its start.

    A training holds its file until `close`, or until its process ends: another one is refused.

    Parameters
    ----------
    fingerprint : mapping
        What a training that goes on from the file has to agree with, see `CheckpointFile`.
    checkpoint : path, optional
        File for the state of the training; None keeps none.
    every : int
        Positions between two states.
    resume_from : path, optional
        File to go on from; it is read here, before any work.

    Attributes
    ----------
    file : CheckpointFile or None
    state : dict or None
        What `resume_from` holds.

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
    ) -> None:
        self.every = check_integer("every", every, minimum=1)
        self.state: dict[str, Any] | None = None
        self.file: CheckpointFile | None = None
        if checkpoint is not None:
            self.file = CheckpointFile(checkpoint, fingerprint)
            self._release = weakref.finalize(self, hold_checkpoint(self.file.path).remove)
        try:
            if resume_from is not None:
                self.state = CheckpointFile(resume_from, fingerprint).read()
            if self.file is not None:
                self.file.check_replaceable()
                remove_leftovers(self.file.path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let other trainings have the file."""
        if self.file is not None:
            self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_paths(**paths: Any) -> None:
    """Raise `ParameterError` where one of these is neither None nor a path."""
    for name, path in paths.items():
        if path is not None:
            check_path(name, path)


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
