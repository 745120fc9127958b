"""Ctrl-C as a wish: the training ends at the next epoch, with a usable model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; pressed again, it interrupts at once.

    Only the main thread hears signals, and a handler that somebody else has set stays: in both cases the function
    says no for ever, and Ctrl-C does what it did before.

    Examples
    --------
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> with interruptible() as interrupted:
    ...     signal.raise_signal(signal.SIGINT)
    ...     interrupted()
    True
    >>> _ = signal.signal(signal.SIGINT, before)
    """
    heard = False

    def listen(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not ours:
        yield lambda: False
        return
    signal.signal(signal.SIGINT, listen)
    try:
        yield lambda: heard
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
