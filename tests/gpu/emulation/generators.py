"""Generators of random numbers that know their device."""

from __future__ import annotations

from typing import Any

import torch

from emulation.machine import is_on, machine
from emulation.tensors import DeviceTensor

_LONGER = 16  # bytes: the state of a generator on a device has another size than that of one on the CPU


class Generator(torch._C.Generator):
    """`torch.Generator`; its numbers are those of the CPU, its state is not."""

    _place: torch.device

    def __new__(cls, device: Any = "cpu") -> Generator:
        made = super().__new__(cls)
        made._place = machine().indexed(device) if is_on() else torch.device(device)
        return made

    def __init__(self, device: Any = "cpu") -> None:
        pass

    @property
    def device(self) -> torch.device:
        """Where it draws."""
        return self._place

    def get_state(self) -> torch.Tensor:
        """Return where it stands, on the CPU."""
        state = super().get_state()
        return torch.cat([state, state.new_zeros(_LONGER)]) if self._place.type == "cuda" else state

    def set_state(self, state: torch.Tensor) -> Generator:
        """Go to where a generator of the same kind stood."""
        if isinstance(state, DeviceTensor):
            raise TypeError("RNG state must be a torch.ByteTensor")
        size, extra = super().get_state().numel(), _LONGER if self._place.type == "cuda" else 0
        if state.numel() != size + extra:
            raise RuntimeError("RNG state is wrong size")
        super().set_state(state[:size].clone())
        return self


def check_generator(device: torch.device, generator: Any) -> None:
    """Raise the error of torch where an operator draws from a generator of another device."""
    if generator is None:
        return
    place = machine().generator_device or torch.device("cpu")
    if place.type != device.type:
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{place.type}'")
