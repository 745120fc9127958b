"""The state of all emulated devices: their memory, and what each stream knows of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from emulation.seen import Seen, site

if TYPE_CHECKING:
    from emulation.graphs import Graph
    from emulation.streams import Stream


class RaceError(RuntimeError):
    """A stream uses what another one has written or reads, and has not waited for it."""


class CaptureError(RuntimeError):
    """What cannot be part of a CUDA graph."""


class Machine:
    """Emulated devices.

    The order of streams is kept by vector clocks: `written` and `read` hold, for each block of memory, when which
    stream last used it; the clock of a stream holds how far of every stream it has waited for.
    """

    def __init__(self, n_devices: int, memory: int) -> None:
        self.n_devices, self.memory, self.current = n_devices, memory, 0
        self.seen = Seen()
        self.capturing: Graph | None = None
        self.generator_device: torch.device | None = None  # of the call in progress
        self.default_streams: list[Stream] = []
        self.streams: list[Stream] = []  # the present one of each device
        self.capture_streams: list[Stream] = []  # that of graphs which are given none
        self._host: Counter[int] = Counter()
        self._written: dict[int, tuple[int, int]] = {}
        self._read: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._held: dict[int, list[int]] = {}  # block: tensors, bytes
        self.live = 0

    # ---------------------------------------------------------------- memory

    def hold(self, block: int, size: int) -> None:
        """Count a tensor in a block of memory, or raise `OutOfMemoryError`."""
        if block not in self._held:
            if self.live + size > self.memory:
                sizes = f"{size} bytes wanted, {self.live} of {self.memory} taken"
                raise torch.OutOfMemoryError(f"CUDA out of memory (emulated): {sizes}")
            self._held[block] = [0, size]
            self.live += size
            self.seen.peak = max(self.seen.peak, self.live)
        self._held[block][0] += 1

    def release(self, block: int) -> None:
        """Count a tensor less, and forget a block without any."""
        entry = self._held[block]
        entry[0] -= 1
        if not entry[0]:
            self.live -= entry[1]
            del self._held[block]
            self._written.pop(block, None)
            self._read.pop(block, None)

    # ---------------------------------------------------------------- order

    def run(self, index: int, name: str, reads: set[int], writes: set[int], new: Iterable[int] = ()) -> None:
        """Let the present stream of a device use blocks of memory, or raise `RaceError`."""
        stream = self.streams[index]
        stream.knows(self._host)
        stream.clock[stream.number] += 1
        now = stream.clock[stream.number]
        for block in reads | writes:
            writer, when = self._written.get(block, (stream.number, 0))
            if stream.clock[writer] < when:
                raise RaceError(f"{name} on {stream} uses what stream {writer} wrote without a wait, at {site()}")
        for block in writes:
            late = [reader for reader, when in self._read[block].items() if stream.clock[reader] < when]
            if late:
                raise RaceError(f"{name} on {stream} overwrites what stream {late[0]} reads, at {site()}")
        for block in (*writes, *new):
            self._written[block] = stream.number, now
            self._read.pop(block, None)
        for block in reads:
            self._read[block][stream.number] = now

    def wait(self, index: int, kind: str, stream: Stream | None = None) -> None:
        """Let the host wait for a stream of a device, by default its present one."""
        if self.capturing is not None:
            raise CaptureError(f"operation not permitted when stream is capturing: {kind} at {site()}")
        self.seen.waits[kind, site()] += 1
        for number, when in (stream or self.streams[index]).clock.items():
            self._host[number] = max(self._host[number], when)

    # ---------------------------------------------------------------- names

    def indexed(self, device: torch.device | str | int | None) -> torch.device:
        """Return a device with its number: the present one for "cuda" and None."""
        if device is None or isinstance(device, int):
            return torch.device("cuda", self.current if device is None else device)
        device = torch.device(device)
        if device.type != "cuda":
            return device
        index = self.current if device.index is None else device.index
        if index >= self.n_devices:
            raise RuntimeError("CUDA error: invalid device ordinal (emulated)")
        return torch.device("cuda", index)

    def number(self, device: torch.device | str | int | None) -> int:
        """Return the number of a CUDA device."""
        return self.indexed(device).index


_present: list[Machine] = []


def machine() -> Machine:
    """Return the devices that are emulated now."""
    return _present[-1]


def is_on() -> bool:
    """Whether devices are emulated now."""
    return bool(_present)


@contextmanager
def switched_on(made: Machine) -> Iterator[None]:
    """Make these the present devices."""
    assert not _present, "devices are emulated already"
    _present.append(made)
    try:
        yield
    finally:
        _present.clear()


@contextmanager
def watched() -> Iterator[Seen]:
    """Return what the devices do within the block, and their peak of memory above what is taken now."""
    state = machine()
    before, taken, state.seen = state.seen, state.live, Seen()
    state.seen.peak = taken
    try:
        yield state.seen
    finally:
        state.seen.peak -= taken
        state.seen = before
