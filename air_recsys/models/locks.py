"""The lock of a model: one writer at a time; readers take the state as it is and never wait."""

from __future__ import annotations

import os
import threading
from typing import Any


class WriterLock:
    """A lock that one thread may take several times; copies, pickles and forked processes have one of their own.

    Examples
    --------
    >>> import pickle
    >>> lock = WriterLock()
    >>> with lock, pickle.loads(pickle.dumps(lock)):
    ...     print("held, and so is that of the copy")
    held, and so is that of the copy
    """

    def __init__(self) -> None:
        # By process: a thread that held the lock is not there in a forked process to release it.
        self._locks: dict[int, Any] = {}

    def __enter__(self) -> None:
        self._own().acquire()

    def __exit__(self, *_: object) -> None:
        self._own().release()

    def __reduce__(self) -> tuple[type[WriterLock], tuple[()]]:
        return WriterLock, ()

    def _own(self) -> Any:
        return self._locks.setdefault(os.getpid(), threading.RLock())


def lock_of(owner: object) -> WriterLock:
    """Return the lock of an object, made when it is first asked for."""
    return vars(owner).setdefault("_lock", WriterLock())
