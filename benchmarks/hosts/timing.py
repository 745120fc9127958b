"""Fair timing: contenders in turn, in one process, medians."""

from __future__ import annotations

import statistics
import timeit
from collections.abc import Callable, Mapping


def median_seconds(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of one call of each contender, called in turn after one call that does not count.

    The garbage collector is off in every call, see `timeit`: it would fall into one contender's turn by chance.

    Examples
    --------
    >>> sorted(median_seconds({"a": lambda: None, "b": lambda: None}, rounds=3))
    ['a', 'b']
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(rounds):
        for name, call in contenders.items():
            times[name].append(timeit.timeit(call, number=1))
    return {name: statistics.median(values) for name, values in times.items()}
