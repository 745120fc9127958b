"""Emulate two CUDA devices for a run of pytest: ``PYTHONPATH=tests/gpu pytest -p emulation.plugin tests/gpu``."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from emulation import graphs, operators, tensors
from emulation.machine import DeviceContext, Machine, machine, switched_on

_whole_run = ExitStack()


def pytest_configure(config: Any) -> None:
    """Switch the emulation on."""
    _whole_run.enter_context(emulated(2, 141 * 10**9))


def pytest_unconfigure(config: Any) -> None:
    """Switch it off."""
    _whole_run.close()


@contextmanager
def emulated(n_devices: int, memory: int) -> Iterator[None]:
    """Emulate CUDA devices of `memory` bytes in all within a block."""
    _lend_a_guard()
    state, lifts = Machine(n_devices, memory), torch._C._only_lift_cpu_tensors()
    with ExitStack() as stack:
        stack.enter_context(switched_on(state))
        for name, value in _of_cuda(state).items():
            stack.enter_context(mock.patch.object(torch.cuda, name, value, create=True))
        stack.enter_context(mock.patch.object(torch, "Generator", tensors.Generator))
        stack.enter_context(mock.patch.object(torch.func, "vjp", _vjp))
        stack.callback(torch._C._set_only_lift_cpu_tensors, lifts)
        torch._C._set_only_lift_cpu_tensors(True)
        stack.enter_context(_Functions())
        stack.enter_context(_Operators())
        yield


def _of_cuda(state: Machine) -> dict[str, Any]:
    """Return the attributes of `torch.cuda` that are replaced."""
    return {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "is_current_stream_capturing": lambda: state.graph is not None,
        "Stream": graphs.Stream,
        "current_stream": graphs.Stream,
        "stream": graphs.on_stream,
        "CUDAGraph": graphs.Graph,
        "graph": graphs.capture,
        "graph_pool_handle": lambda: (0, 1),
        "default_generators": [tensors.Generator(torch.device("cuda", index)) for index in range(state.n_devices)],
        "device_count": lambda: state.n_devices,
        "current_device": lambda: state.current,
        "get_device_name": lambda device=None: "an emulated GPU",
        "set_device": lambda device: setattr(state, "current", state.indexed(device).index),
        "device": DeviceContext,
        "synchronize": lambda device=None: state.wait("synchronize"),
        "empty_cache": lambda: None,
        "mem_get_info": lambda device=None: (state.memory - state.live, state.memory),
        "memory_allocated": lambda device=None: state.live,
        "max_memory_allocated": lambda device=None: state.peak,
        "reset_peak_memory_stats": lambda device=None: setattr(state, "peak", state.live),
    }


class _Functions(TorchFunctionMode):
    """Gives "cuda" its number, and tells operators whose generator they draw from."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        state, kwargs = machine(), dict(kwargs or {})
        if isinstance(kwargs.get("device"), str):
            kwargs["device"] = torch.device(kwargs["device"])
        if "device" in kwargs or any(isinstance(value, torch.device) for value in args):
            args, kwargs = tuple(map(_numbered, args)), {name: _numbered(value) for name, value in kwargs.items()}
        if kwargs.get("generator") is None:
            return func(*args, **kwargs)
        state.generator = kwargs["generator"]
        try:
            return func(*args, **kwargs)
        finally:
            state.generator = None


def _numbered(value: Any) -> Any:
    return machine().indexed(value) if isinstance(value, torch.device) else value


class _Operators(TorchDispatchMode):
    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Leave out what keeps `torch.compile` away, which nothing here calls and every operator would pay for."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return operators.dispatch(func, args, kwargs or {})


_real_vjp = torch.func.vjp


def _vjp(func: Any, *primals: Any) -> Any:
    """`torch.func.vjp`: the function is checked on the device, and derived on the CPU."""
    devices = [one.device for one in primals if isinstance(one, tensors.DeviceTensor)]
    if not devices:
        return _real_vjp(func, *primals)
    _, pull_back = _real_vjp(func, *map(tensors.unwrapped, primals))

    def pulled(*gradients: Any) -> Any:
        found = pull_back(*map(tensors.unwrapped, gradients))
        return tensors.mapped(lambda one: tensors.DeviceTensor(one, devices[0]), found)

    return func(*primals), pulled


_lent: list[Any] = []  # what has to stay in memory


def _lend_a_guard() -> None:
    """Let a build of torch without CUDA make tensors that say they are on a CUDA device.

    `_ensureCUDADeviceGuardSet` registers a guard that does nothing, if the present one says that there are no devices.
    A build without CUDA has none to ask, so one is lent whose every method returns 0.
    """
    if not _lent and not torch.backends.cuda.is_built():
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        registry = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")  # CPU, CUDA
        zero = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)
        methods = (ctypes.c_void_p * 64)(*[ctypes.cast(zero, ctypes.c_void_p).value] * 64)
        guard = (ctypes.c_void_p * 4)(ctypes.addressof(methods))
        registry[1] = ctypes.addressof(guard)
        _lent.extend([library, zero, methods, guard])
    torch._C._ensureCUDADeviceGuardSet()
