"""Fair timing: contenders in turn, in one process, medians."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager


def median_seconds(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of one call of each contender, called in turn after one call that does not count.

    The garbage collector rests meanwhile, as in `timeit`: whose turn it would fall into is chance.

    Examples
    --------
    >>> sorted(median_seconds({"a": lambda: None, "b": lambda: None}, rounds=3))
    ['a', 'b']
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    with _without_collector():
        for _ in range(rounds):
            for name, call in contenders.items():
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


@contextmanager
def _without_collector() -> Iterator[None]:
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
