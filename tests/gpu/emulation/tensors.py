"""A tensor on an emulated device, the memory below it, and generators of random numbers that know their device."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from emulation import operators
from emulation.machine import is_on, machine


class DeviceTensor(torch.Tensor):
    """A tensor on an emulated device; `inner` holds its numbers in CPU memory."""

    inner: torch.Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: torch.Tensor, device: torch.device) -> DeviceTensor:
        places: dict[str, Any] = {}
        if inner.layout == torch.strided:
            places = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=device, requires_grad=inner.requires_grad, **places
        )
        made.inner = inner
        state, block = machine(), block_of(inner)
        state.hold(block, values_of(inner).untyped_storage().nbytes())
        weakref.finalize(made, state.release, block)
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return operators.dispatch(func, args, kwargs or {})

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Raise the error of torch, unless forced."""
        if force:
            return self.cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.numpy()

    def tolist(self) -> Any:
        """Return the numbers, after a copy to the host."""
        return self.cpu().tolist()

    def untyped_storage(self) -> Any:
        """Return the memory."""
        return self.inner.untyped_storage()

    def data_ptr(self) -> int:
        """Return the address."""
        return self.inner.data_ptr()


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the stored numbers of a dense or sparse tensor."""
    return tensor.values() if tensor.layout == torch.sparse_csr else tensor


def block_of(inner: torch.Tensor) -> int:
    """Return what names the block of memory of a CPU tensor."""
    return values_of(inner).untyped_storage()._cdata


def unwrapped(value: Any) -> Any:
    """Return the CPU tensor below a tensor of a device; anything else as it is."""
    return value.inner if isinstance(value, DeviceTensor) else value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors of nested lists and tuples, in their order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for each in value for one in tensors_in(each)] if isinstance(value, list | tuple) else []


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Return what a function makes of each part of nested lists, tuples and dicts; torch's `tree_map` takes longer."""
    kind = type(value)
    if kind is list or kind is tuple:
        return kind([mapped(function, each) for each in value])
    return {name: mapped(function, each) for name, each in value.items()} if kind is dict else function(value)


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

    def graphsafe_get_state(self) -> Generator:
        """Return a generator that shares the state."""
        return self

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Take the state of another generator."""
        return self.set_state(state.get_state())


def check_generator(device: torch.device, generator: Any) -> None:
    """Raise the error of torch where an operator draws from a generator of another device."""
    if generator is None:
        return
    place = torch.device("cpu") if machine().generator is None else machine().generator.device
    if place.type != device.type:
        raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{place.type}'")
