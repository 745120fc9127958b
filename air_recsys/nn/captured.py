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

import torch
from torch import Tensor

_WARM_UP = 2  # plain runs before that of the check: libraries need their workspaces, and Triton its kernels
MOST_ENTRIES = 2**22  # entries whose kernels take about as long as their launches
MOST_BYTES = 2**26  # of the tensors that a step takes and gives
_CHECKS = 2  # replays that are compared; a graph that reads the tensors of another step does well at the first one
_TOLERANCE = 1e-3  # of the norm of a tensor: libraries may take other kernels within a graph
_LOGGER = logging.getLogger("air_recsys")
_ONE_CAPTURE = threading.Lock()  # in a process
Run = Callable[[], Sequence[Tensor]]


class Replayed:
    """Kernels of one device, which need not be the current one.

    Parameters
    ----------
    stream : torch.cuda.Stream
        Of the device, for what is not replayed.
    generator : torch.Generator, optional
        The only one that is drawn from.
    pool : tuple of int, optional
        The memory that graphs share which are always replayed in one order, of `torch.cuda.graph_pool_handle`.
    known : bool
        Whether such kernels have been captured before: one check is enough then, without a warm-up.

    Attributes
    ----------
    is_dropped : bool
        Whether capturing was given up.
    """

    def __init__(
        self,
        stream: torch.cuda.Stream,
        generator: torch.Generator | None = None,
        pool: tuple[int, int] | None = None,
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
        """Whether the next call is a replay."""
        return self._graph is not None

    def __call__(self, run: Run, changed: Callable[[], Sequence[Tensor]] = tuple) -> Sequence[Tensor]:
        """Run the kernels, and return what `run` returned.

        `run`, which does the same in every call, gives the kernels to the current stream, and returns tensors: those
        of a replay are the same every time. `changed` returns the tensors that it changes in place.
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
            return self._checked(run, changed)

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

    def _checked(self, run: Run, changed: Callable[[], Sequence[Tensor]]) -> Sequence[Tensor]:
        """Run the kernels, and keep their graph if it does the same from the same start."""
        own = list(changed())
        start, place = _copies(own), _position(self._generator)
        plain = self._plainly(run)
        expected, end = [*plain, *_copies(own)], _position(self._generator)
        _restore(own, start)
        _go_to(self._generator, place)
        try:
            if self._graph is None:
                with _ONE_CAPTURE:
                    self._graph, self._results = self._capture(run)
            self._graph.replay()
            problem = _difference([*self._results, *own], expected) or ("" if _same(_position(self._generator), end) else "other draws")
        except Exception as error:  # of an operator that waits, a library, or memory
            problem = f"{type(error).__name__}: {str(error).strip()[:200]}"
            _release(self._generator, self._stream.device)
        self._n_checks -= 1
        if not problem:
            return self._results
        _LOGGER.warning("steps on %s are launched kernel by kernel: %s", self._stream.device, problem)
        self.drop()
        _restore(own, start)
        _go_to(self._generator, place)
        return run()

    def _capture(self, run: Run) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor]]:
        graph = torch.cuda.CUDAGraph()
        if self._generator is not None:
            with warnings.catch_warnings():  # later versions find generators themselves, and warn
                warnings.simplefilter("ignore")
                graph.register_generator_state(self._generator)
        # Other threads may go on: their calls are no part of this capture.
        mode = {"stream": self._stream, "capture_error_mode": "thread_local"}
        with torch.cuda.graph(graph, pool=self._pool, **mode):  # captured, not run
            results = run()
        return graph, results


class CapturedStep:
    """A step from tensors to tensors, of the same number and shapes, that is replayed as a graph.

    Parameters
    ----------
    device : torch.device
    generator : torch.Generator, optional
        The only one that is drawn from.
    """

    def __init__(self, device: torch.device, generator: torch.Generator | None = None) -> None:
        self._device, self._generator = device, generator
        self._own: list[Tensor] = []  # what a graph reads
        self._replayed: Replayed | None = None

    def __call__(self, step: Callable[[list[Tensor]], list[Tensor]], given: list[Tensor]) -> list[Tensor]:
        """The tensors after a step, which no later one changes.

        `step` returns new tensors or those that it was given, which it does not change, and depends on nothing else
        that changes.
        """
        if sum(each.nbytes for each in given) > MOST_BYTES or (self._replayed and self._replayed.is_dropped):
            return step(given)
        if [each.shape for each in given] != [each.shape for each in self._own]:
            self._own, self._replayed = _copies(given), Replayed(torch.cuda.Stream(self._device), self._generator)
        assert self._replayed is not None
        _restore(self._own, given)
        return _copies(self._replayed(lambda: step(self._own)))


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [each.clone() for each in tensors]


def _restore(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for each, value in zip(tensors, values, strict=True):
        each.copy_(value)


def _difference(found: Sequence[Tensor], expected: Sequence[Tensor]) -> str:
    """What differs by more than rounding, in words; the host waits for it."""
    errors = torch.stack([_norm(one - other) for one, other in zip(found, expected, strict=True)])
    sizes = torch.stack([_norm(other) for other in expected])
    wrong = int((~(errors <= _TOLERANCE * sizes)).sum())
    return f"a replay of their CUDA graph had {wrong} of {len(expected)} tensors wrong" if wrong else ""


def _norm(tensor: Tensor) -> Tensor:
    return torch.linalg.vector_norm(tensor, dtype=torch.float64)


def _position(generator: torch.Generator | None) -> Tensor | None:
    return None if generator is None else generator.get_state()


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    return one is None or other is None or torch.equal(one, other)


def _go_to(generator: torch.Generator | None, place: Tensor | None) -> None:
    if generator is not None and place is not None:
        generator.set_state(place)


def _release(generator: torch.Generator | None, device: torch.device) -> None:
    """Let generators draw again that a capture held when it failed."""
    for each in [generator, torch.cuda.default_generators[device.index or 0]]:
        if each is not None:
            fresh = torch.Generator(device)
            fresh.set_state(each.get_state())
            each.graphsafe_set_state(fresh.graphsafe_get_state())
