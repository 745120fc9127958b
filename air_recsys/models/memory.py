"""Whether a training fits into memory, said before it starts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from air_recsys.exceptions import MemoryLimitError, ParameterError
from air_recsys.interactions import Interactions
from air_recsys.models.devices import resolve_device
from air_recsys.nn.memory import MemoryPlan, Sizes, memory_plan, readable, smaller
from air_recsys.nn.posterior.memory import posterior_bytes

if TYPE_CHECKING:
    from air_recsys.models.air import AIR

_UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def plan_of(model: AIR, data: Interactions) -> MemoryPlan:
    """Return what a training of `model` on `data` will hold: the larger of its two stages."""
    sizes, settings = _sizes(model, data), model._settings(data)
    plan = memory_plan(sizes, settings)
    if model.solver == "adam":
        return plan
    width, sample = settings.width or min(data.n_users, data.n_items), model.solver == "langevin"
    sweeps = posterior_bytes(sizes, width, model.pattern_features, sample=sample)
    # Graphs stay; the ratings, the factors and their work make room.
    return plan._replace(work=max(plan.work, sweeps - plan.ratings - plan.factors))


def announcement(model: AIR, data: Interactions) -> str:
    """Say which form the graphs take, and what the training will hold."""
    settings = model._settings(data)
    form = "all pairs" if settings.n_neighbors is None else f"{settings.n_neighbors} edges a node"
    graphs = f"graphs of {form}" if any(settings.strengths) else "no graphs"
    return f"{graphs}; training will take about {plan_of(model, data)}"


def check_memory(model: AIR, data: Interactions) -> None:
    """Raise `MemoryLimitError` where a training will need more than `max_memory`, or than the device has."""
    limit = parse_size(model.max_memory) if model.max_memory is not None else device_memory(model.device)
    needed = plan_of(model, data)
    if limit is None or needed.total <= limit:
        return
    place = "max_memory allows" if model.max_memory is not None else "the device has"
    raise MemoryLimitError(f"training needs about {needed}; {place} {readable(limit)}; {fitting(model, data, limit)}")


def fitting(model: AIR, data: Interactions, limit: float) -> str:
    """Say which settings would fit into `limit` bytes."""
    sizes = _sizes(model, data)
    for name, settings in smaller(model._settings(data), sizes):
        needed = memory_plan(sizes, settings).total
        if needed <= limit:
            return f"{name} needs about {readable(needed)}"
    return "no setting tried fits: train on fewer ratings, or on several machines"


@contextmanager
def naming_what_fits(model: AIR, data: Interactions) -> Iterator[None]:
    """Turn a device that runs out of memory into an error that says what to lower."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryLimitError) as error:
        hint = fitting(model, data, plan_of(model, data).total / 2)
        raise MemoryLimitError(f"{error}; {hint}") from error


def parse_size(value: int | str) -> int:
    """Return a number of bytes, given as such or as text.

    Examples
    --------
    >>> parse_size("8GB"), parse_size("500 MB"), parse_size(1000)
    (8000000000, 500000000, 1000)
    """
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]B)\s*", value.upper())
        if found:
            return int(float(found[1]) * _UNITS[found[2]])
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


def _sizes(model: AIR, data: Interactions) -> Sizes:
    itemsize = 8 if model.dtype == "float64" else 4
    return Sizes(data.n_users, data.n_items, data.n_ratings, itemsize, data.weights is not None)
