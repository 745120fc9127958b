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
    launches, waits : Counter of (str, str)
        Operators, and waits of the host, by name and line.
    peak : int
        Bytes of living tensors.
    """

    def __init__(self) -> None:
        self.launches: Counter[Site] = Counter()
        self.waits: Counter[Site] = Counter()
        self.peak = 0

    def __str__(self) -> str:
        launches, waits = (sum(counts.values()) for counts in (self.launches, self.waits))
        lines = [f"{launches} launches, {waits} waits, peak {self.peak / 1e6:.1f} MB"]
        lines += [f"  {count:6d} {kind} at {line}" for (kind, line), count in self.waits.most_common()]
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
