"""Journals: changes of a file, one a line beside it, which several processes write and read in turns.

A line is JSON with its digest; the first one says what the others change. A last line without an end is what a killed
process was writing, which nobody was told of: it goes. All else that is amiss is an error.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from air_recsys.exceptions import DataFileError, DataWarning
from air_recsys.storage.held_files import HeldError, HeldFile, hold
from air_recsys.storage.reading import parse_json
from air_recsys.storage.tensor_files import check_seal, to_sealed_json
from air_recsys.storage.writing import beside, real_place

_TRIES, _PAUSE = 6000, 0.005  # looks at whether another process is done, and seconds between them


def journal_beside(file: Path) -> Path:
    """Return where the journal of a file is."""
    return Path(f"{real_place(file)}.journal")


class Journal:
    """The changes of a file that has this digest; all but `is_behind` wants the journal to be `held`."""

    def __init__(self, path: Path, digest: str) -> None:
        self.path, self._head = path, to_sealed_json({"of": digest}) + b"\n"
        self._end = 0  # of what was read

    @property
    def is_behind(self) -> bool:
        """Whether `read` may have something to tell."""
        try:
            return self.path.stat().st_size != self._end
        except OSError:
            return self._end > 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes and threads from it; what the system refuses meanwhile is a `DataFileError`."""
        try:
            lock = self._lock()
            try:
                yield
            finally:
                lock.remove()
        except OSError as error:
            raise DataFileError(f"cannot use {self.path}: {error.strerror or error}") from None

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the changes that were not read yet; one counts as read when the next is asked for."""
        if not self.is_behind:
            return
        with self.path.open("r+b") as file:
            if file.seek(0, os.SEEK_END) < self._end:
                raise DataFileError(f"{self.path} lacks changes that it had: start all services of it again")
            file.seek(self._end)
            for line in file:
                if not line.endswith(b"\n"):
                    warnings.warn(f"{self.path}: left out a last change that was cut short", DataWarning, stacklevel=2)
                    file.truncate(self._end)
                    break
                change = self._checked(line)
                if self._end:
                    yield change
                elif line != self._head:
                    raise DataFileError(
                        f"{self.path} has changes of another file than the present one: bring that one back, or move "
                        "the journal away to give up its changes"
                    )
                self._end += len(line)

    def append(self, change: Mapping[str, Any]) -> None:
        """Write a change, all others being read, onto the disk; or nothing, and raise `OSError`."""
        line = to_sealed_json(change) + b"\n"
        line = line if self._end else self._head + line
        with self.path.open("ab", buffering=0) as file:
            try:
                if file.write(line) < len(line):
                    raise OSError("the disk is full")
                os.fsync(file.fileno())
                if not self._end and hasattr(os, "O_DIRECTORY"):  # Windows keeps names unasked
                    folder = os.open(self.path.parent, os.O_DIRECTORY)
                    os.fsync(folder)
                    os.close(folder)
            except OSError:
                with suppress(OSError):
                    file.truncate(self._end)
                raise
        self._end += len(line)

    def _checked(self, line: bytes) -> dict[str, Any]:
        try:
            check_seal(line.rstrip(b"\n"))
            return parse_json(line)
        except ValueError:
            raise DataFileError(
                f"{self.path} is damaged at byte {self._end}: bring back a copy of it, or give up all changes from "
                f"there on by truncate -s {self._end}"
            ) from None

    def _lock(self) -> HeldFile:
        for _ in range(_TRIES):
            try:
                return hold(beside(self.path, "lock"))
            except HeldError:
                time.sleep(_PAUSE)
        raise DataFileError(f"another process uses {self.path} for too long")
