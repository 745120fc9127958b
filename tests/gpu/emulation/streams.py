"""Streams and events, and which device and stream are the present ones."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from emulation.machine import machine


class Stream:
    """`torch.cuda.Stream`: of the present device unless told, and not ordered with the default stream."""

    _numbers = itertools.count()

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device, self.number = machine().indexed(device), next(self._numbers)
        self.clock: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"stream {self.number} of {self.device}"

    def knows(self, clock: Mapping[int, int]) -> None:
        """Take note of how far other streams are."""
        for number, when in clock.items():
            self.clock[number] = max(self.clock[number], when)

    def wait_stream(self, other: Stream) -> None:
        """Wait for what the other stream was given so far."""
        self.knows(other.clock)

    def wait_event(self, event: Event) -> None:
        """Wait for what came before the event."""
        self.knows(event.clock)

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event behind what the stream was given so far."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Let the host wait."""
        machine().wait(self.device.index, "Stream.synchronize", self)


class Event:
    """`torch.cuda.Event`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.clock: Counter[int] = Counter()
        self._time = 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Stand behind what the stream was given so far."""
        self.clock, self._time = Counter((stream or current_stream()).clock), time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Let a stream wait."""
        (stream or current_stream()).wait_event(self)

    def synchronize(self) -> None:
        """Let the host wait."""
        machine().wait(machine().current, "Event.synchronize")

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds between two events, of the CPU."""
        return 1e3 * (end._time - self._time)


def current_stream(device: Any = None) -> Stream:
    """Return the present stream of a device."""
    return machine().streams[machine().number(device)]


def default_stream(device: Any = None) -> Stream:
    """Return the default stream of a device."""
    return machine().default_streams[machine().number(device)]


@contextmanager
def stream_context(stream: Stream | None) -> Iterator[None]:
    """`torch.cuda.stream`: make a stream, and its device, the present one."""
    if stream is None:
        yield
        return
    state, index = machine(), stream.device.index
    before = state.streams[index]
    with DeviceContext(index):
        state.streams[index] = stream
        try:
            yield
        finally:
            state.streams[index] = before


class DeviceContext:
    """`torch.cuda.device`: make a device the present one."""

    def __init__(self, device: Any) -> None:
        self._index, self._before = machine().number(device), 0

    def __enter__(self) -> None:
        self._before, machine().current = machine().current, self._index

    def __exit__(self, *_: object) -> None:
        machine().current = self._before


def set_device(device: Any) -> None:
    """Make a device the present one."""
    machine().current = machine().number(device)


def synchronize(device: Any = None) -> None:
    """Let the host wait for a device."""
    index = machine().number(device)
    machine().wait(index, "synchronize")
