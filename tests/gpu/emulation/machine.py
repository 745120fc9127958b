"""The state of all emulated devices: which is the present one, what their memory holds, and who waits for them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

_PACKAGE = f"{os.sep}air_recsys{os.sep}"
Device = torch.device | str | int | None
Waits = Counter[tuple[str, str]]  # of the host, by kind, and file:line of the package


class Machine:
    """Emulated devices: how many, which is the present one, and what their memory holds."""

    def __init__(self, n_devices: int, memory: int) -> None:
        self.n_devices, self.memory, self.current = n_devices, memory, 0
        self.waits: Waits = Counter()
        self.launches = Counter[str]()  # by line of the package
        self.generator: Any = None  # of the call in progress
        self.graph: Any = None  # the capture in progress
        self._held: dict[int, list[int]] = {}  # block: tensors, bytes
        self.live, self.peak = 0, 0  # bytes

    def hold(self, block: int, size: int) -> None:
        """Count a tensor in a block of memory, or raise `OutOfMemoryError`."""
        if block not in self._held:
            if self.live + size > self.memory:
                sizes = f"{size} bytes wanted, {self.live} of {self.memory} taken"
                raise torch.OutOfMemoryError(f"CUDA out of memory (emulated): {sizes}")
            self._held[block] = [0, size]
            self.live += size
            self.peak = max(self.peak, self.live)
        self._held[block][0] += 1

    def release(self, block: int) -> None:
        """Count a tensor less, and forget a block without any."""
        entry = self._held[block]
        entry[0] -= 1
        if not entry[0]:
            self.live -= entry[1]
            del self._held[block]

    def wait(self, kind: str) -> None:
        """Count a wait of the host for a device, or raise the error of a capture."""
        if self.graph is not None:
            told = f"(emulated, {kind} at {site()})"
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing {told}")
        self.waits[kind, site()] += 1

    def launch(self, name: str) -> None:
        """Count an operator that a device is given, unless it is captured."""
        if self.graph is None:
            self.launches[f"{name} {site()}"] += 1

    def indexed(self, device: Device) -> torch.device:
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


def site() -> str:
    """Return the innermost line of the package that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if _PACKAGE in path:
            return f"{path.rsplit(_PACKAGE, 1)[1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"


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


def watched() -> AbstractContextManager[Waits]:
    """Return how often the host waits within the block."""
    return _counted("waits")


def launched() -> AbstractContextManager[Counter[str]]:
    """Return what the device is given within the block."""
    return _counted("launches")


@contextmanager
def _counted(name: str) -> Iterator[Any]:
    state, counts = machine(), Counter()
    before = getattr(state, name)
    setattr(state, name, counts)
    try:
        yield counts
    finally:
        setattr(state, name, before)


class DeviceContext:
    """`torch.cuda.device`: make a device the present one."""

    def __init__(self, device: Device) -> None:
        self._index, self._before = machine().indexed(device).index, 0

    def __enter__(self) -> None:
        self._before, machine().current = machine().current, self._index

    def __exit__(self, *_: object) -> None:
        machine().current = self._before
