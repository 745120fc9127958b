"""Ctrl-C and the signals that end a process, as a wish: the training ends at the next epoch, with a usable model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# What is listened to, and the handlers of a process that has set none. Windows has no SIGHUP.
_PLAIN: dict[str, Any] = {
    "SIGINT": signal.default_int_handler,
    "SIGTERM": signal.SIG_DFL,
    "SIGHUP": signal.SIG_DFL,
}


@contextmanager
def interruptible() -> Iterator[Callable[[], int]]:
    """A function that returns the number of the signal that asked for an end, 0 without one.

    SIGINT (Ctrl-C), SIGTERM and SIGHUP are listened to. The second signal of a kind does what it did before: Ctrl-C
    interrupts at once. Only the main thread hears signals, and a handler that somebody else has set stays.
    """
    heard, plain = 0, _plain_handlers()

    def listen(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard = number
        signal.signal(number, plain[number])

    for number in plain:
        signal.signal(number, listen)
    try:
        yield lambda: heard
    finally:
        for number, handler in plain.items():
            signal.signal(number, handler)


class Terminated(SystemExit):
    """SIGTERM or SIGHUP has asked for an end; uncaught it ends the process with the status of shells."""

    def __init__(self, number: int, message: str) -> None:
        self.status = 128 + number
        super().__init__(self.status)
        self._message = message

    def __str__(self) -> str:
        """The message: what was interrupted, and where."""
        return self._message


def interruption(number: int, message: str) -> KeyboardInterrupt | Terminated:
    """The exception of a signal: `KeyboardInterrupt` of Ctrl-C, else `Terminated`."""
    return KeyboardInterrupt(message) if number == signal.SIGINT else Terminated(number, message)


def _plain_handlers() -> dict[int, Any]:
    """The handlers, by the number of the signal, of those signals that nobody else listens to."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = {getattr(signal, name, None): handler for name, handler in _PLAIN.items()}
    return {
        int(number): handler
        for number, handler in numbers.items()
        if number is not None and signal.getsignal(number) is handler
    }
