"""CUDA graphs: the operators of a capture are recorded, undone, and done again in a replay, in the same memory.

As on a device, a capture runs nothing, and a replay reads what stands in the tensors of the capture, whatever Python
has put in their place since. Within a capture an error is raised where the host would wait, where memory of the host
would be read, where an operator is no series of kernels on a device, and where a generator that is not registered is
drawn from. Streams do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from emulation import tensors
from emulation.machine import machine

# By names in ATen: not by kernels alone, in one of the versions of torch that are supported.
NOT_CAPTURED = {
    *("linalg_inv_ex", "linalg_lu_factor_ex", "linalg_lu", "linalg_qr", "linalg_eigh", "_linalg_eigh"),
    *("cholesky_solve", "_cholesky_solve_helper"),
}


class Stream:
    """A stream of a device, on which all is done at once."""

    def __init__(self, device: Any = None) -> None:
        self.device = machine().indexed(device)

    def wait_stream(self, other: Stream) -> None:
        """Do nothing."""


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    """`torch.cuda.stream`."""
    before, machine().current = machine().current, stream.device.index
    try:
        yield
    finally:
        machine().current = before


class Graph:
    """`torch.cuda.CUDAGraph`."""

    def __init__(self) -> None:
        self._calls: list[tuple[Any, tuple, dict[str, Any], Any]] = []
        self._generators: list[tensors.Generator] = []
        self._own: set[int] = set()  # blocks of memory that are made within the capture
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}  # others that it writes to

    def register_generator_state(self, generator: tensors.Generator) -> None:
        """Let the capture draw from a generator."""
        self._generators.append(generator)

    def replay(self) -> None:
        """Do what was recorded once more, as one launch."""
        machine().launch("graph")
        for func, args, kwargs, results in self._calls:
            again = tree_leaves(func(*args, **kwargs))
            for result, found in zip(tree_leaves(results), again, strict=True):
                if isinstance(result, torch.Tensor):
                    result, found = tensors.values_of(result), tensors.values_of(found)
                    if result.numel() and result.data_ptr() != found.data_ptr():
                        result.copy_(found)

    def check(self, name: str, generator: Any) -> None:
        """Raise the error of an operator that cannot be captured."""
        if generator is not None and all(generator is not each for each in self._generators):
            raise RuntimeError("Attempt to increase offset for a CUDA generator not in capture mode. (emulated)")
        if name in NOT_CAPTURED:
            machine().wait(name)

    def keep(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Take note of what an operator will write to."""
        names = [argument.name for argument in func._schema.arguments]
        for place, argument in enumerate(func._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = args[place] if place < len(args) else kwargs.get(names[place])
                for one in tree_leaves(given):
                    if isinstance(one, torch.Tensor) and tensors.block_of(one) not in self._own:
                        storage = tensors.values_of(one).untyped_storage()
                        self._before.setdefault(storage._cdata, (storage, storage.clone()))

    def record(self, func: Any, args: tuple, kwargs: dict[str, Any], results: Any) -> None:
        """Take note of an operator that was run for its shapes."""
        given = {tensors.block_of(one) for one in tree_leaves([args, kwargs]) if isinstance(one, torch.Tensor)}
        made = {tensors.block_of(one) for one in tree_leaves(results) if isinstance(one, torch.Tensor)}
        self._own |= made - given
        self._calls.append((func, args, kwargs, results))

    @contextmanager
    def captured(self) -> Iterator[None]:
        """Record within the block, and undo it."""
        places = [generator.get_state() for generator in self._generators]
        machine().graph = self
        try:
            yield
        finally:
            machine().graph = None
            for storage, values in self._before.values():
                storage.copy_(values)
            for generator, place in zip(self._generators, places, strict=True):
                generator.set_state(place)


@contextmanager
def capture(graph: Graph, pool: Any = None, stream: Any = None, capture_error_mode: str = "global") -> Iterator[None]:
    """`torch.cuda.graph`."""
    machine().wait("synchronize")
    with graph.captured():
        yield
