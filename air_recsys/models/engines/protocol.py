"""The parameters that all engines read, and whether a training fits into memory."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.exceptions import DataError, MemoryLimitError, ParameterError
from air_recsys.models.ratings import Clip
from air_recsys.models.rows import SIDES
from air_recsys.models.solvers import STRENGTH_NAMES
from air_recsys.nn.devices import resolve_device
from air_recsys.nn.memory import MemoryPlan, Sizes, is_of_memory, readable
from air_recsys.storage.lazy import torch
from air_recsys.storage.validation import warn_of_unread

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Setup:
    """Parameters that every engine reads, as in `AIR`."""

    n_factors: int | str | None
    dtype: str
    device: str
    clips: Clip
    adjacency: str = "row_softmin"
    graph_neighbors: int | str | None = None
    graph_refresh: int | str | None = None
    memory_limit: int | None = None  # bytes

    def check(self, *, sparse: bool) -> None:
        """Raise or warn where what is said of the graphs does not go together; `sparse` where a graph may be."""
        if self.graph_neighbors not in (None, "auto") and self.adjacency != "row_softmin":
            raise ParameterError(
                f"graph_neighbors needs adjacency='row_softmin', found {self.adjacency!r}; set it to None"
            )
        if self.graph_refresh not in (None, "auto") and not sparse:
            warn_of_unread("graph_refresh", self.graph_refresh, "sparse graphs, graph_neighbors=...")

    def sizes(self, data: Extent) -> Sizes:
        """The sizes that the memory of a training depends on."""
        itemsize = np.dtype(self.dtype).itemsize
        on_gpu = resolve_device(self.device).type == "cuda"
        return Sizes(data.n_users, data.n_items, data.n_ratings, itemsize, data.has_weights, on_gpu)


class Planned(Protocol):
    """What tells the memory of a training before it starts."""

    def memory_plan(self, data: Interactions) -> MemoryPlan:
        """The bytes that a training will take at its peak, beside the interactions."""
        ...

    def smaller(self, data: Interactions) -> Iterator[tuple[str, int]]:
        """Yield changes of parameters that need less and less memory, and the bytes that they need."""
        ...


def check_strengths(solver: Any, known: tuple[bool, bool]) -> None:
    """Raise `DataError` where a strength has a value, and nothing that it would be of is known."""
    for name, side, is_known in zip(STRENGTH_NAMES, SIDES, known, strict=True):
        strength = getattr(solver, name, 0)
        if strength not in ("auto", 0) and not is_known:
            raise DataError(f"{name}={strength} needs {side}_similarity beside the ratings, found none")


def graph_form(learns: bool, n_neighbors: int | None) -> str:
    """The form of learned graphs, in words."""
    form = "all pairs" if n_neighbors is None else f"{n_neighbors} edges a node"
    return f"graphs of {form}" if learns else "no graphs"


_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(engine: Planned, data: Interactions, max_memory: int | str | None, device: str) -> None:
    """Raise `MemoryLimitError` where a training will need more than `max_memory`, or than the device has."""
    check_limit(engine.memory_plan(data), max_memory, device, partial(what_fits, engine, data))


def check_limit(needed: MemoryPlan, max_memory: int | str | None, device: str, mend: Callable[[int], str]) -> None:
    """Raise `MemoryLimitError` with a mend where more is needed than `max_memory`, or than the device has."""
    limit = parse_size(max_memory) if max_memory is not None else device_memory(device)
    if limit is None or needed.total <= limit:
        return
    place = "max_memory allows" if max_memory is not None else "the device has"
    raise MemoryLimitError(f"training needs about {needed}; {place} {readable(limit)}; {mend(limit)}")


def what_fits(engine: Planned, data: Interactions, limit: float) -> str:
    """Say which settings would fit into `limit` bytes."""
    for changes, needed in engine.smaller(data):
        if needed <= limit:
            return f"{changes} needs about {readable(needed)}"
    return "no setting tried fits: train on fewer ratings, or on several machines"


@contextmanager
def naming_what_fits(engine: Planned, data: Interactions) -> Iterator[None]:
    """Turn a device that runs out of memory into an error that says what to lower."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_of_memory(error):
            raise
        hint = what_fits(engine, data, engine.memory_plan(data).total / 2)
        raise MemoryLimitError(f"{error}; {hint}") from error


def parse_size(value: int | str) -> int:
    """A number of bytes, given as such or as text."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]B)\s*", value.upper())
        if match:
            return int(float(match[1]) * _UNITS[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ParameterError(f"max_memory must be a number of bytes or text such as '8GB', found {value!r}")


def device_memory(device: str) -> int | None:
    """The bytes that a device has (a GPU: has free); None where the system does not tell."""
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
