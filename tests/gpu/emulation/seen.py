"""What the emulated devices have done, by line of the package."""

from __future__ import annotations

import os
import sys
from collections import Counter

_PACKAGE = f"{os.sep}air_recsys{os.sep}"

Site = tuple[str, str]  # kind, and file:line


class Seen:
    """Counts of what happened on the devices.

    Attributes
    ----------
    launches, waits, unordered : Counter of (str, str)
        Operators, waits of the host, and operators whose sums have no fixed order, by name and line.
    captures, replays : int
        Of CUDA graphs.
    peak : int
        Bytes of living tensors.
    """

    def __init__(self) -> None:
        self.launches: Counter[Site] = Counter()
        self.waits: Counter[Site] = Counter()
        self.unordered: Counter[Site] = Counter()
        self.captures = self.replays = self.peak = 0

    def __str__(self) -> str:
        launches, waits = (sum(counts.values()) for counts in (self.launches, self.waits))
        head = f"{launches} launches, {waits} waits, {self.captures} captures, {self.replays} replays, "
        lines = [f"{head}peak {self.peak / 1e6:.1f} MB"]
        for title, counts in (("waits", self.waits), ("no fixed order", self.unordered)):
            lines += [f"{title}:", *(f"  {count:6d} {kind} at {line}" for (kind, line), count in counts.most_common())]
        return "\n".join(lines)


def site() -> str:
    """Return the innermost line of the package that is running."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if _PACKAGE in path:
            return f"{path.rsplit(_PACKAGE, 1)[1]}:{frame.f_lineno}"
        frame = frame.f_back
    return "elsewhere"
