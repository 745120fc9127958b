"""Files that one process, and one thread of it, holds at a time.

A lock belongs to an open file (``flock``), so the system lets go of it when its process ends, however it ends: what a
killed process has left behind is free. Systems without it, such as Windows, remove no file that is open, which tells
the same. On a file system that knows no locks nobody can tell, and nothing is refused.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
_PRESENT = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
_TRIES = 10


class HeldError(Exception):
    """A file is held; the argument is the number of the process, as far as it is known."""


class HeldFile:
    """A new file, where none is, that is held until it is closed; `stream` is to write to.

    `mode` has its permissions, less those that the process gives to no file. `HeldError` tells that another process
    took it at once for one that was left behind.
    """

    def __init__(self, path: Path, mode: int = 0o666) -> None:
        self.path, self._process = path, os.getpid()
        handle = os.open(path, _NEW, mode)
        try:
            if fcntl is not None and (_locked(handle) is False or not _is_at(handle, path)):
                raise HeldError
            self.stream = os.fdopen(handle, "wb")
        except BaseException:
            os.close(handle)
            raise

    def remove(self) -> None:
        """Remove the file, and let go of it; in a process that was forked from the holder, do nothing."""
        if os.getpid() != self._process:
            return
        if fcntl is None:
            self.stream.close()
        self.path.unlink(missing_ok=True)  # while it is held, so that it is not taken for one that was left behind
        with suppress(OSError):  # a full disk may keep what was not written yet
            self.stream.close()

    def move(self, target: Path) -> None:
        """Let the file, all of it written, take the place of another, and let go of it."""
        if fcntl is None:
            self.stream.close()
        self.path.replace(target)
        self.stream.close()


def hold(path: Path) -> HeldFile:
    """Make a lock file with the number of this process, in the place of one that nobody holds any more.

    Raises
    ------
    HeldError
        If another process, or another thread of this one, holds it.
    OSError
        If it cannot be made.
    """
    for _ in range(_TRIES):
        try:
            lock = HeldFile(path)
        except FileExistsError:
            if remove_free(path, where_unknown=True):
                continue
            raise HeldError(_holder(path)) from None
        except HeldError:
            continue
        lock.stream.write(str(os.getpid()).encode())
        lock.stream.flush()
        return lock
    raise HeldError(_holder(path))


def remove_free(path: Path, *, where_unknown: bool = False) -> bool:
    """Remove a file that nobody holds, and return whether it is gone.

    `where_unknown` tells whether to remove it on a file system that knows no locks.
    """
    try:
        if fcntl is None:
            path.unlink(missing_ok=True)
            return True
        handle = os.open(path, _PRESENT)
    except OSError:
        return not os.path.lexists(path)
    try:
        locked = _locked(handle)
        if locked is False or (locked is None and not where_unknown):
            return False
        if _is_at(handle, path):  # else another process was faster
            path.unlink(missing_ok=True)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def _locked(handle: int) -> bool | None:
    """Lock an open file; return False where another has done so, None where the file system knows no locks."""
    assert fcntl is not None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _holder(path: Path) -> int | None:
    """Return the number of the process that wrote a lock file."""
    try:
        return int(path.read_bytes()[:20])
    except (OSError, ValueError):
        return None
