"""What can be shared out over ranks."""

from __future__ import annotations

import os
from typing import Any

import torch

from air_recsys.distributed.group import Group
from air_recsys.distributed.planning import Cost
from air_recsys.exceptions import DataError, DeviceError, MemoryLimitError, ParameterError
from air_recsys.interactions import Interactions
from air_recsys.models.air import AIR
from air_recsys.models.air_parameters import check_parameters
from air_recsys.models.devices import resolve_device
from air_recsys.models.memory import device_memory, parse_size
from air_recsys.models.scaling import width_of
from air_recsys.nn.memory import readable

_WHOLE_ONLY = {"solver": "adam", "validation_fraction": 0, "stopping_delta": None}


def check_model(model: AIR, data: Interactions) -> None:
    """Raise `ParameterError` for a model that cannot be shared out, naming the parameter to set."""
    if not isinstance(model, AIR):
        raise ParameterError(f"expected a model of class AIR, found {type(model).__name__}")
    check_parameters(model, data, None)
    narrower, width = min(data.n_users, data.n_items), width_of(model, data)
    if width is None or width >= narrower:
        raise ParameterError(
            f"distributed training needs factors narrower than the {narrower} users or items: set n_factors below "
            f"{narrower}, found n_factors={model.n_factors}"
        )
    settings = model._settings(data)
    if any(graph is not None for graph in settings.given):
        raise ParameterError(f"distributed training learns its graphs, found {type(model).__name__} with given ones")
    if any(settings.strengths) and settings.n_neighbors is None:
        raise ParameterError(
            "distributed training needs sparse graphs or none: set graph_neighbors, or user_graph_reg=0 and "
            "item_graph_reg=0; found graph_neighbors=None"
        )
    for name, needed in _WHOLE_ONLY.items():
        if getattr(model, name, needed) != needed:
            raise ParameterError(f"distributed training needs {name}={needed!r}, found {getattr(model, name)!r}")
    if len(list(model.snapshot_epochs)):
        raise ParameterError(f"distributed training needs snapshot_epochs=(), found {model.snapshot_epochs!r}")


def check_ranks(group: Group, data: Interactions, mark: dict[str, Any]) -> None:
    """Raise where there are fewer rows than ranks, or where ranks were given different things to train."""
    for kind, size in (("users", data.n_users), ("items", data.n_items)):
        if size < group.size:
            raise DataError(f"expected at least one of the {kind} for each of {group.size} ranks, found {size}")
    marks = group.of_all(mark)
    for kind, error in (("data", DataError), ("parameters", ParameterError)):
        other = [rank for rank, found in enumerate(marks) if found[kind] != marks[0][kind]]
        if other:
            raise error(f"expected the same {kind} on every rank, found others than those of rank 0 on {other}")


def check_memory(group: Group, model: AIR, data: Interactions) -> None:
    """Raise `MemoryLimitError` where a rank will need more than `max_memory`, or its ranks than their machine has."""
    settings = model._settings(data)
    graphs = [strength > 0 for strength in settings.strengths]
    width, neighbors = settings.width or 0, settings.n_neighbors or 0
    sizes = data.n_users, data.n_items, data.n_ratings, width, neighbors, group.size
    cost = Cost(*sizes, model.depth, model.n_batches, *graphs)
    needed = (cost.bytes_held + cost.bytes_passing) * (2 if model.dtype == "float64" else 1)
    if model.max_memory is not None:
        limit, place = parse_size(model.max_memory), "max_memory allows"
    else:
        limit, place = device_memory(str(group.device)), "it has"
        if limit is not None and group.device.type == "cpu":  # one memory for all ranks of a machine
            limit //= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if limit is not None and needed > limit:
        raise MemoryLimitError(
            f"each of {group.size} ranks needs about {readable(int(needed))}; {place} {readable(limit)}: lower "
            "n_factors or graph_neighbors, leave a graph out (user_graph_reg=0), or take more machines"
        )


def own_device(name: str) -> torch.device:
    """Return the device of this rank: with "auto" and "cuda" the ranks of a machine take one GPU each.

    Raises
    ------
    ParameterError, DeviceError
    """
    device, local = resolve_device(name), os.environ.get("LOCAL_RANK")
    if device.type != "cuda" or local is None:
        return device
    if device.index is not None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ParameterError(f"device must be 'auto', 'cpu' or 'cuda' with several ranks, found {name!r}")
    count = torch.cuda.device_count()
    if int(local) >= count:
        raise DeviceError(f"expected a CUDA device for each rank, found {count} for local rank {local}")
    own = torch.device("cuda", int(local))
    torch.cuda.set_device(own)
    return own
