"""One operator on an emulated device: checked by the rules of CUDA, counted, and run on the CPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from emulation import tensors
from emulation.machine import machine, site

_CPU = torch.device("cpu")

# By names in ATen. The host waits for their result, or for the size of it.
WAITS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"),
    *("equal", "is_nonzero", "histc", "_linalg_check_errors", "_linalg_svd", "linalg_svd", "linalg_lstsq"),
    *("to_sparse_csr", "_to_sparse_csr", "cholesky_inverse"),
}
NO_WORK = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "_unsafe_view"}
INDEXING = {"index", "index_put", "index_put_"}  # indices may be on the CPU
WITH_NUMBERS = {"_fused_adam_", "fill_", "index_put", "index_put_", "where"}  # numbers may be on the CPU
EVERYWHERE = {"record_stream"}  # operands may be anywhere


@cache
def name_of(func: Any) -> str:
    """Return the name that the rules know an operator by."""
    return func._schema.name.split("::")[1]


@cache
def gives_work(func: Any) -> bool:
    """Whether an operator launches at least one kernel: views and new memory do not."""
    aliases = [one.alias_info for one in func._schema.returns]
    is_view = any(alias is not None and not alias.is_write for alias in aliases)
    return not is_view and name_of(func) not in NO_WORK


class Call:
    """An operator with its arguments.

    Attributes
    ----------
    name : str
        As in the rules.
    tensors, own : list of Tensor
        All operands, and those on a device.
    """

    def __init__(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name = name_of(func)
        self.tensors = tensors.tensors_in([*args, *kwargs.values()])
        self.own = [one for one in self.tensors if isinstance(one, tensors.DeviceTensor)]

    def run(self, place: torch.device) -> Any:
        """Run on the CPU, and wrap what comes out for `place`."""
        kwargs = tensors.mapped(tensors.unwrapped, self.kwargs)
        kwargs |= {name: value for name, value in (("device", _CPU), ("pin_memory", False)) if kwargs.get(name)}
        args, graph = tensors.mapped(tensors.unwrapped, self.args), machine().graph
        if graph is not None:
            graph.check(self.name, machine().generator)
            graph.keep(self.func, args, kwargs)
        found = self.func(*args, **kwargs)
        if graph is not None:
            graph.record(self.func, args, kwargs, found)
        wrappers = {id(one.inner): one for one in self.own}

        def wrapped(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or place.type == "cpu":
                return value
            known = wrappers.get(id(value))
            return tensors.DeviceTensor(value, place) if known is None else known

        return tensors.mapped(wrapped, found)

    def indices(self) -> list[torch.Tensor]:
        """Return the indices of an operator that has some, which may be on the CPU if what they index is not."""
        is_indexing = self.name in INDEXING and isinstance(self.args[0], tensors.DeviceTensor)
        return tensors.tensors_in([self.args[1]]) if is_indexing else []

    def check_devices(self) -> None:
        """Raise the error of torch for operands on two devices; numbers and indices may be on the CPU."""
        places = {str(one.device) for one in self.own}
        if len(self.own) < len(self.tensors) and self.name not in EVERYWHERE:
            may_have_numbers = torch.Tag.pointwise in self.func.tags or self.name in WITH_NUMBERS
            indices = {id(one) for one in self.indices()}
            for one in self.tensors:
                if one.device.type == "cpu" and not (one.dim() == 0 and may_have_numbers) and id(one) not in indices:
                    places.add("cpu")
        if len(places) > 1:
            found = " and ".join(sorted(places))
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{found}! (emulated, {self.func} at {site()})"
            )

    def wait(self) -> None:
        """Let the host wait where it needs the result, or the size of it."""
        indices = self.indices()
        unknown_size = self.name == "repeat_interleave" and self.kwargs.get("output_size") is None
        masked = any(one.dtype in (torch.bool, torch.uint8) for one in indices)
        if self.name in WAITS or unknown_size or masked:
            machine().wait(self.name)
        if any(not isinstance(one, tensors.DeviceTensor) for one in indices):
            machine().wait("copy of an index to the device")


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operator by the rules of CUDA where a device takes part, as always elsewhere."""
    call, asked = Call(func, args, kwargs), kwargs.get("device")
    own = call.own
    if asked is not None:
        asked = machine().indexed(asked)
    if not own and (asked is None or asked.type == "cpu"):
        return func(*args, **kwargs)
    if gives_work(func):
        machine().launch(call.name)
    device = own[0].device if asked is None or (own and asked.type == "cpu") else asked
    tensors.check_generator(device, kwargs.get("generator"))
    if call.name == "_to_copy":
        return _moved(call, asked)
    if call.name == "copy_":
        return _copied(call)
    call.check_devices()
    call.wait()
    return call.run(_CPU if asked == _CPU else device)


def _moved(call: Call, asked: torch.device | None) -> Any:
    """Return a copy of a tensor on another device, or in another type."""
    source = call.args[0]
    origin = source.device
    target = origin if asked is None else asked
    if origin == target:
        return call.run(target)
    if "cpu" in (origin.type, target.type):
        machine().wait("copy to the host" if target.type == "cpu" else "copy to the device")
    inner = call.func(tensors.unwrapped(source), **call.kwargs | {"device": _CPU})
    return inner if target.type == "cpu" else tensors.DeviceTensor(inner, target)


def _copied(call: Call) -> Any:
    """Copy into a tensor from one on the same or on another device."""
    target, source = call.args[:2]
    to_host = not isinstance(target, tensors.DeviceTensor)
    device = source.device if to_host else target.device
    if to_host or (source.dim() and not isinstance(source, tensors.DeviceTensor)):
        machine().wait("copy to the host" if to_host else "copy to the device")
    return call.run(device)
