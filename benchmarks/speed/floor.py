"""The least cost of a training step on ratings: the bytes that it has to move and the products that it has to make."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable
from typing import NamedTuple

import torch

_REAL, _INDEX = 4, 4  # bytes
_STEP_BYTES = 6 * _REAL  # of a parameter: Adam reads and writes it and its two moments
_ROUNDS = 9


class Work(NamedTuple):
    """Bytes between memory and processor, and additions and multiplications."""

    bytes: float
    flops: float


class Machine(NamedTuple):
    """The measured speed of this process: bytes and operations a second."""

    bandwidth: float
    flop_rate: float

    def seconds(self, work: Work) -> tuple[float, float]:
        """Return the seconds of the bytes and of the operations, each alone; the larger one is the floor."""
        return work.bytes / self.bandwidth, work.flops / self.flop_rate


def step_work(shape: tuple[int, int], n_ratings: int, width: int, n_neighbors: int, depth: int = 2) -> Work:
    """Return the least work of a step over all ratings with both learned graphs, in single precision.

    Every array is read or written once: column and value of each rating, each edge, and each parameter with its two
    moments; factors are taken to stay in the cache while they are gathered, and gradients to be used where they arise.
    Products: three for the ratings, three for the edges, five of a side's factors with an r x r matrix or
    with each other, three a further layer.

    Parameters
    ----------
    shape : tuple of int
        m and n.

    Examples
    --------
    >>> step_work((10, 5), 20, width=1, n_neighbors=1)
    Work(bytes=1660.0, flops=360.0)
    """
    nodes, edges = sum(shape), sum(shape) * n_neighbors
    parameters = nodes * (width + 1) + edges + nodes + (depth - 2) * width**2
    moved = n_ratings * (_INDEX + _REAL) + edges * _INDEX + parameters * _STEP_BYTES
    flops = 6 * width * (n_ratings + edges) + 10 * nodes * width**2 + 6 * (depth - 2) * shape[0] * width**2
    return Work(float(moved), float(flops))


def measure_machine(megabytes: int = 256, size: int = 1024) -> Machine:
    """Return the bandwidth of a copy and the rate of a matrix product, on the threads that torch has.

    Parameters
    ----------
    megabytes : int
        Of the array that is copied.
    size : int
        Of the square matrices.
    """
    source = torch.ones(megabytes * 2**18)
    target = torch.empty_like(source)
    left, out = torch.ones(size, size), torch.empty(size, size)
    copied = median_time(lambda: target.copy_(source))
    multiplied = median_time(lambda: torch.mm(left, left, out=out))
    return Machine(2 * source.numel() * _REAL / copied, 2 * size**3 / multiplied)


def median_time(call: Callable[[], object], rounds: int = _ROUNDS) -> float:
    """Return the median seconds of a call after one that does not count."""
    call()
    return statistics.median(timeit.repeat(call, number=1, repeat=rounds))
