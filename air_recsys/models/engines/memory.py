"""Whether a training fits into memory, said before it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from air_recsys.data.interactions import Interactions
from air_recsys.exceptions import MemoryLimitError, ParameterError
from air_recsys.models.engines.protocol import Engine
from air_recsys.nn.devices import resolve_device
from air_recsys.nn.memory import readable

_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(engine: Engine, data: Interactions, max_memory: int | str | None, device: str) -> None:
    """Raise `MemoryLimitError` where a training will need more than `max_memory`, or than the device has."""
    limit = parse_size(max_memory) if max_memory is not None else device_memory(device)
    needed = engine.memory_plan(data)
    if limit is None or needed.total <= limit:
        return
    place = "max_memory allows" if max_memory is not None else "the device has"
    hint = what_fits(engine, data, limit)
    raise MemoryLimitError(f"training needs about {needed}; {place} {readable(limit)}; {hint}")


def announcement(engine: Engine, data: Interactions) -> str:
    """Say which form the graphs take, and what the training will hold."""
    return f"{engine.graph_form(data)}; training will take about {engine.memory_plan(data)}"


def what_fits(engine: Engine, data: Interactions, limit: float) -> str:
    """Say which settings would fit into `limit` bytes."""
    for changes, needed in engine.smaller(data):
        if needed <= limit:
            return f"{changes} needs about {readable(needed)}"
    return "no setting tried fits: train on fewer ratings, or on several machines"


@contextmanager
def naming_what_fits(engine: Engine, data: Interactions) -> Iterator[None]:
    """Turn a device that runs out of memory into an error that says what to lower."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryLimitError) as error:
        hint = what_fits(engine, data, engine.memory_plan(data).total / 2)
        raise MemoryLimitError(f"{error}; {hint}") from error


def parse_size(value: int | str) -> int:
    """Return a number of bytes, given as such or as text.

    Examples
    --------
    >>> parse_size("8GB"), parse_size("500 MB"), parse_size(1000)
    (8000000000, 500000000, 1000)
    """
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]B)\s*", value.upper())
        if match:
            return int(float(match[1]) * _UNITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ParameterError(f"max_memory must be a number of bytes or text such as '8GB', found {value!r}")


def device_memory(device: str) -> int | None:
    """Return the bytes that a device has (a GPU: has free); None where the system does not tell."""
    place = resolve_device(device)
    if place.type == "cuda":
        return torch.cuda.mem_get_info(place)[0]
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return None
    try:
        return min(whole, int(_CONTROL_GROUP.read_text()))
    except (OSError, ValueError):  # no such group, or one without a limit
        return whole
