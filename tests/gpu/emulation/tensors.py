"""A tensor on an emulated device, and the memory below it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from emulation import operators
from emulation.machine import machine


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

    def __repr__(self, *_: Any, **__: Any) -> str:
        return f"DeviceTensor({self.inner!r}, device='{self.device}')"


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
    found: list[torch.Tensor] = []
    for entry in value:
        if isinstance(entry, torch.Tensor):
            found.append(entry)
        elif isinstance(entry, list | tuple):
            found += tensors_in(entry)
    return found


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples and dictionaries with `change` applied to their entries."""
    if isinstance(value, list | tuple):
        entries = [mapped(entry, change) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else type(value)(entries)
    if isinstance(value, dict):
        return {key: mapped(entry, change) for key, entry in value.items()}
    return change(value)
