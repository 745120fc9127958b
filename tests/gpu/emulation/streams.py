"""Which device is the present one, and waits for it."""

from __future__ import annotations

from typing import Any

from emulation.machine import machine


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
    machine().number(device)
    machine().wait("synchronize")
