"""CUDA graphs: operators that run again in the memory that they had when they were captured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from emulation.calls import Call
from emulation.machine import CaptureError, machine
from emulation.streams import Stream, stream_context
from emulation.tensors import block_of, tensors_in, values_of


class Graph:
    """`torch.cuda.CUDAGraph`."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.stream: Stream | None = None
        self._calls: list[tuple[Call, list[torch.Tensor]]] = []
        self._before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._reads: set[int] = set()
        self._writes: set[int] = set()
        self._is_done = False

    def begin(self, stream: Stream) -> None:
        """Capture what the stream is given from now on."""
        if stream in machine().default_streams:
            raise CaptureError("CUDA graphs must be captured on a non-default stream")
        self.stream, machine().capturing = stream, self

    def add(self, call: Call, outputs: list[torch.Tensor], reads: set[int], writes: set[int]) -> None:
        """Record an operator with what it returned."""
        self._calls.append((call, outputs))
        self._reads |= reads
        self._writes |= writes

    def keep(self, written: Sequence[torch.Tensor]) -> None:
        """Remember the numbers that an operator is about to overwrite."""
        for inner in written:
            base = inner if inner._base is None else inner._base
            if id(base) not in self._before:
                self._before[id(base)] = base, base.clone()

    def end(self, *, failed: bool) -> None:
        """Bring back the numbers from before: a capture runs nothing."""
        machine().capturing = None
        for base, value in self._before.values():
            base.copy_(value)
        self._before.clear()
        if failed:
            return
        if not self._calls:
            raise CaptureError("The CUDA Graph is empty: captured on the wrong device or stream")
        self._is_done = True
        machine().seen.captures += 1

    def replay(self) -> None:
        """Run the operators again, in the same memory."""
        if not self._is_done:
            raise CaptureError("replay before capture")
        state = machine()
        state.run(state.current, "replay", self._reads - self._writes, self._writes)
        state.seen.replays += 1
        for call, outputs in self._calls:
            for kept, new in zip(outputs, tensors_in([call.func(*call.args, **call.kwargs)]), strict=True):
                if kept is not new and block_of(kept) != block_of(new):
                    values_of(kept).copy_(values_of(new))


class Capture:
    """`torch.cuda.graph`: capture a block, on a stream of the present device unless told."""

    def __init__(self, cuda_graph: Graph, pool: Any = None, stream: Stream | None = None) -> None:
        # As in torch, the stream that none was given for is made once, on the device that is the present one then.
        if stream is None and not machine().capture_streams:
            machine().capture_streams.append(Stream())
        self._graph, self._stream = cuda_graph, stream or machine().capture_streams[0]
        self._context = stream_context(self._stream)

    def __enter__(self) -> None:
        state = machine()
        state.wait(state.current, "capture")
        self._context.__enter__()
        self._graph.begin(self._stream)

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            self._graph.end(failed=kind is not None)
        finally:
            self._context.__exit__(None, None, None)
