"""One operator on an emulated device: checked, counted, put in order, and run on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from emulation import calls, generators, rules, tensors
from emulation.machine import CaptureError, machine
from emulation.seen import site

if TYPE_CHECKING:
    from emulation.graphs import Graph

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
    _wait(call, device)
    return _run(call, device, _CPU if asked == _CPU else device)


def _run(call: calls.Call, device: torch.device, place: torch.device) -> Any:
    """Run on the CPU, as work for the present stream of a device; wrap what comes out for `place`."""
    graph = machine().capturing
    if graph is not None:
        _check_stream(call, device, graph)
        call = call.frozen()
    own, inner = call.own, call.inner()
    if graph is not None:
        graph.keep(inner.written())
    found = inner.func(*inner.args, **inner.kwargs)
    _account(call, inner, tensors.tensors_in([found]), device)
    wrappers = {id(one.inner): one for one in own}

    def wrapped(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or place.type == "cpu":
            return value
        known = wrappers.get(id(value))
        return tensors.DeviceTensor(value, place) if known is None else known

    return tensors.mapped(found, wrapped)


def _account(call: calls.Call, inner: calls.Call, outputs: list[torch.Tensor], device: torch.device) -> None:
    """Count an operator, and put it in the order of streams or into the graph that is captured."""
    state, graph = machine(), machine().capturing
    read = {tensors.block_of(one.inner) for one in call.own}
    written = {tensors.block_of(one) for one in inner.written()}
    new = {tensors.block_of(one) for one in outputs} - read
    if call.name not in rules.FREE:
        state.seen.launches[call.name, site()] += 1
        if _has_no_order(call, outputs):
            state.seen.unordered[call.name, site()] += 1
        if graph is None:
            state.run(device.index, call.name, read - written, written, new)
    if graph is not None:
        is_kernel = call.name not in rules.FREE
        graph.add(inner, outputs, read if is_kernel else set(), written | new if is_kernel else set())


def _check_stream(call: calls.Call, device: torch.device, graph: Graph) -> None:
    """Raise where an operator would run at once, while a graph is captured on another stream."""
    stream = machine().streams[device.index]
    if stream is not graph.stream:
        where = f"{call.name} at {site()} runs on {stream}"
        raise CaptureError(f"{where} while {graph.stream} is captured: it would be missing from the graph")


def _has_no_order(call: calls.Call, outputs: list[torch.Tensor]) -> bool:
    accumulates = call.name in ("index_put", "index_put_") and len(call.args) > 3 and call.args[3]
    sums = call.name == "cumsum" and outputs[0].is_floating_point()
    return call.name in rules.UNORDERED or accumulates or sums


def _wait(call: calls.Call, device: torch.device) -> None:
    """Let the host wait where it needs the result, or the size of it."""
    name = call.name
    indices = _indices(call)
    unknown_size = name == "repeat_interleave" and call.kwargs.get("output_size") is None
    masked = any(one.dtype in (torch.bool, torch.uint8) for one in indices)
    if name in rules.WAITS or unknown_size or masked:
        machine().wait(device.index, name)
    if any(not isinstance(one, tensors.DeviceTensor) for one in indices):
        machine().wait(device.index, "copy of an index to the device")


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
        return _run(call, target, target)
    index = origin.index if target.type == "cpu" else target.index
    if "cpu" in (origin.type, target.type):
        machine().wait(index, "copy to the host" if target.type == "cpu" else "copy to the device")
    elif origin.type == "cuda":  # torch lets the streams of both wait for each other
        machine().streams[index].knows(machine().streams[origin.index].clock)
    inner = call.func(tensors.unwrapped(source), **call.kwargs | {"device": _CPU})
    read = {tensors.block_of(source.inner)} if isinstance(source, tensors.DeviceTensor) else set()
    machine().run(index, "copy", read, set(), {tensors.block_of(inner)} if target.type == "cuda" else ())
    machine().seen.launches["copy", site()] += 1
    return inner if target.type == "cpu" else tensors.DeviceTensor(inner, target)


def _copied(call: calls.Call) -> Any:
    """Copy into a tensor from one on the same or on another device."""
    target, source = call.args[:2]
    to_host = not isinstance(target, tensors.DeviceTensor)
    device = source.device if to_host else target.device
    if to_host or (source.dim() and not isinstance(source, tensors.DeviceTensor)):
        machine().wait(device.index, "copy to the host" if to_host else "copy to the device")
    return _run(call, device, device)
