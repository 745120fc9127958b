"""Kernels that are the same every time: launched one by one at first, then replayed as one CUDA graph.

On small data a GPU waits for Python, which launches hundreds of kernels a step; a graph of them is launched at once.
It holds addresses and numbers, not Python: what changes from step to step has to stand in the same tensors every time,
and nothing in it may wait for the device. Where a capture fails, or one of the first two replays, which start from
different values, does not give what the kernels give one by one, these are launched one by one from then on.

Source: the documentation of PyTorch, CUDA semantics, "CUDA Graphs".
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from air_recsys.storage.lazy import Tensor, torch

MOST_ENTRIES = 2**22  # entries whose kernels take about as long as their launches
MOST_BYTES = 2**26  # of the tensors that a step takes
_WARM_UP = 2  # runs before that of the check: libraries need their workspaces, and Triton its kernels
_CHECKS = 2  # replays that are compared; a graph that reads the tensors of another step does well at the first one
_TOLERANCE = 1e-3  # of the norm of a tensor: libraries may take other kernels within a graph
_LOGGER = logging.getLogger("air_recsys")
_ONE_CAPTURE = threading.Lock()  # in a process
Run = Callable[[], Sequence[Tensor]]


class Replayed:
    """Kernels that are given to a `stream` of their device, and draw from no other generator than this one.

    Graphs of one `pool` (`torch.cuda.graph_pool_handle`) share memory, and have to be replayed in one order. Kernels
    that are `known` have been captured before: one check is enough, without a warm-up. `is_dropped` says whether
    capturing was given up.
    """

    def __init__(
        self,
        stream: torch.cuda.Stream,
        generator: torch.Generator | None = None,
        pool: Any = None,
        *,
        known: bool = False,
    ) -> None:
        self._stream, self._generator, self._pool = stream, generator, pool
        self._n_plain, self._n_checks = (0, 1) if known else (_WARM_UP, _CHECKS)  # that are left
        self._graph: torch.cuda.CUDAGraph | None = None
        self._results: Sequence[Tensor] = ()
        self.is_dropped = False

    @property
    def is_graph(self) -> bool:
        """Whether there is a graph."""
        return self._graph is not None

    def __call__(self, run: Run, changed: Run = tuple) -> Sequence[Tensor]:
        """Run the kernels, and return what `run` returned: of a replay the same tensors every time.

        `run` does the same in every call, and `changed` returns the tensors that it changes in place.
        """
        if self.is_dropped:
            return run()
        with torch.cuda.device(self._stream.device):
            if self._graph is not None and not self._n_checks:
                self._graph.replay()
                return self._results
            if self._n_plain:
                self._n_plain -= 1
                return self._plainly(run)
            return self._checked(run, list(changed()))

    def drop(self) -> None:
        """Launch the kernels one by one from now on."""
        self._graph, self._results, self.is_dropped = None, (), True

    def _plainly(self, run: Run) -> Sequence[Tensor]:
        """Run the kernels on the stream of the capture, whose memory and workspaces they leave ready."""
        current = torch.cuda.current_stream()
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            results = run()
        current.wait_stream(self._stream)
        return results

    def _checked(self, run: Run, own: list[Tensor]) -> Sequence[Tensor]:
        """Run the kernels, and keep their graph if it does the same from the same start."""
        start, place = _copies(own), self._position()
        expected, end = [*self._plainly(run), *_copies(own)], self._position()
        self._go_back(own, start, place)
        try:
            if self._graph is None:
                with _ONE_CAPTURE:
                    self._graph, self._results = self._capture(run)
            self._graph.replay()
            wrong = _n_wrong([*self._results, *own], expected) + (self._position() != end)
            problem = f"{wrong} of {len(expected)} tensors of a replayed CUDA graph are wrong" if wrong else ""
        except Exception as error:  # of an operator that waits, a library, or memory
            problem = f"{type(error).__name__}: {str(error).strip()[:200]}"
            _release(self._generator, self._stream.device)
        self._n_checks -= 1
        if not problem:
            return self._results
        _LOGGER.warning("steps on %s are launched kernel by kernel: %s", self._stream.device, problem)
        self.drop()
        self._go_back(own, start, place)
        return run()

    def _capture(self, run: Run) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor]]:
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            with warnings.catch_warnings():  # later versions find generators themselves, and warn
                warnings.simplefilter("ignore")
                graph.register_generator_state(self._generator)
        # Other threads may go on: their calls are no part of this capture. One that fails leaves its stream current.
        capture = torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local")
        with torch.cuda.stream(torch.cuda.current_stream()), capture:
            return graph, run()  # captured, not run

    def _position(self) -> list[int]:
        return [] if self._generator is None else self._generator.get_state().tolist()

    def _go_back(self, own: list[Tensor], start: list[Tensor], place: list[int]) -> None:
        _set(own, start)
        if self._generator is not None:
            self._generator.set_state(torch.tensor(place, dtype=torch.uint8, device="cpu"))


class CapturedStep:
    """A step from tensors to tensors of the same shapes, which draws from no other generator than this one."""

    def __init__(self, device: torch.device, generator: torch.Generator | None = None) -> None:
        self._device, self._generator = device, generator
        self._own: list[Tensor] = []  # what a graph reads
        self._replayed: Replayed | None = None

    def __call__(self, step: Callable[[list[Tensor]], list[Tensor]], given: list[Tensor]) -> list[Tensor]:
        """The tensors after a step, which no later one changes.

        `step` does not change what it is given, and depends on nothing else that changes.
        """
        if sum(each.nbytes for each in given) > MOST_BYTES or (self._replayed and self._replayed.is_dropped):
            return step(given)
        if self._replayed is None or [each.shape for each in given] != [each.shape for each in self._own]:
            self._own = _copies(given)
            self._replayed = Replayed(torch.cuda.Stream(self._device), self._generator)
        _set(self._own, given)
        return _copies(self._replayed(lambda: step(self._own)))


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [each.clone() for each in tensors]


def _set(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for each, value in zip(tensors, values, strict=True):
        each.copy_(value)


def _n_wrong(found: Sequence[Tensor], expected: Sequence[Tensor]) -> int:
    """How many tensors differ by more than rounding; the host waits for it."""

    def norms(tensors: Sequence[Tensor]) -> Tensor:
        return torch.stack([torch.linalg.vector_norm(each, dtype=torch.float64) for each in tensors])

    errors = norms([one - other for one, other in zip(found, expected, strict=True)])
    return int((~(errors <= _TOLERANCE * norms(expected))).sum())


def _release(generator: torch.Generator | None, device: torch.device) -> None:
    """Let generators draw again that a capture held when it failed."""
    for each in [generator, torch.cuda.default_generators[device.index or 0]]:
        if each is not None:
            fresh = torch.Generator(device)
            fresh.set_state(each.get_state())
            each.graphsafe_set_state(fresh.graphsafe_get_state())
