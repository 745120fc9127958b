"""One operator on an emulated device: checked, counted, put in order, and run on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from emulation import calls, generators, rules, tensors
from emulation.machine import machine
from emulation.seen import site

_CPU = torch.device("cpu")


def dispatch(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operator by the rules of CUDA where a device takes part, as always elsewhere."""
    call, asked = calls.Call(func, args, kwargs), kwargs.get("device")
    own = call.own
    if asked is not None:
        asked = machine().indexed(asked)
    if not own and (asked is None or asked.type == "cpu"):
        return func(*args, **kwargs)
    device = own[0].device if asked is None or (own and asked.type == "cpu") else asked
    generators.check_generator(device, kwargs.get("generator"))
    if call.name == "_to_copy":
        return _moved(call, asked)
    if call.name == "copy_":
        return _copied(call)
    _check_devices(call)
    _wait(call)
    return _run(call, _CPU if asked == _CPU else device)


def _run(call: calls.Call, place: torch.device) -> Any:
    """Run on the CPU, and wrap what comes out for `place`."""
    own, inner = call.own, call.inner()
    found = inner.func(*inner.args, **inner.kwargs)
    if call.name not in rules.FREE:
        machine().seen.launches[call.name, site()] += 1
    wrappers = {id(one.inner): one for one in own}

    def wrapped(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or place.type == "cpu":
            return value
        known = wrappers.get(id(value))
        return tensors.DeviceTensor(value, place) if known is None else known

    return tensors.mapped(found, wrapped)


def _wait(call: calls.Call) -> None:
    """Let the host wait where it needs the result, or the size of it."""
    name = call.name
    indices = _indices(call)
    unknown_size = name == "repeat_interleave" and call.kwargs.get("output_size") is None
    masked = any(one.dtype in (torch.bool, torch.uint8) for one in indices)
    if name in rules.WAITS or unknown_size or masked:
        machine().wait(name)
    if any(not isinstance(one, tensors.DeviceTensor) for one in indices):
        machine().wait("copy of an index to the device")


def _indices(call: calls.Call) -> list[torch.Tensor]:
    """Return the indices of an operator that has some, which may be on the CPU if what they index is not."""
    is_indexing = call.name in rules.INDEXING and isinstance(call.args[0], tensors.DeviceTensor)
    return tensors.tensors_in([call.args[1]]) if is_indexing else []


def _check_devices(call: calls.Call) -> None:
    """Raise the error of torch for operands on two devices; numbers and indices may be on the CPU."""
    name = call.name
    places = {str(one.device) for one in call.own}
    if len(call.own) < len(call.tensors) and name not in rules.EVERYWHERE:
        may_have_numbers = call.facts.is_pointwise or name in rules.WITH_NUMBERS
        indices = {id(one) for one in _indices(call)}
        for one in call.tensors:
            if one.device.type == "cpu" and not (one.dim() == 0 and may_have_numbers) and id(one) not in indices:
                places.add("cpu")
    if len(places) > 1:
        found = " and ".join(sorted(places))
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{found}! (emulated, {call.func} at {site()})"
        )


def _moved(call: calls.Call, asked: torch.device | None) -> Any:
    """Return a copy of a tensor on another device, or in another type."""
    source = call.args[0]
    origin = source.device
    target = origin if asked is None else asked
    if origin == target:
        return _run(call, target)
    if "cpu" in (origin.type, target.type):
        machine().wait("copy to the host" if target.type == "cpu" else "copy to the device")
    inner = call.func(tensors.unwrapped(source), **call.kwargs | {"device": _CPU})
    machine().seen.launches["copy", site()] += 1
    return inner if target.type == "cpu" else tensors.DeviceTensor(inner, target)


def _copied(call: calls.Call) -> Any:
    """Copy into a tensor from one on the same or on another device."""
    target, source = call.args[:2]
    to_host = not isinstance(target, tensors.DeviceTensor)
    device = source.device if to_host else target.device
    if to_host or (source.dim() and not isinstance(source, tensors.DeviceTensor)):
        machine().wait("copy to the host" if to_host else "copy to the device")
    return _run(call, device)
