"""The state of all emulated devices: their memory, and what each stream knows of the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from emulation.seen import Seen, site


class Machine:
    """Emulated devices: how many, which is the present one, and what their memory holds."""

    def __init__(self, n_devices: int, memory: int) -> None:
        self.n_devices, self.memory, self.current = n_devices, memory, 0
        self.seen = Seen()
        self.generator_device: torch.device | None = None  # of the call in progress
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

    def wait(self, kind: str) -> None:
        """Count a wait of the host for a device."""
        self.seen.waits[kind, site()] += 1

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
