"""Checks of a model, its data and its memory before a training over ranks."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np

from air_recsys.data.interactions import Extent, Interactions
from air_recsys.distributed.group import Group
from air_recsys.distributed.planning import Cost
from air_recsys.exceptions import DataError, MemoryLimitError, ParameterError
from air_recsys.models import GraphRanker
from air_recsys.models.engines import ObjectiveEngine, PosteriorEngine
from air_recsys.models.engines.likes import LikesMemory
from air_recsys.models.engines.protocol import device_memory, parse_size
from air_recsys.models.engines.scaling import edges_per_node
from air_recsys.models.solvers import STRENGTH_NAMES
from air_recsys.models.trained import TrainedRecommender
from air_recsys.nn.memory import readable


def check_kind(model: Any) -> None:
    """Raise `ParameterError` unless a model is trained by steps that can be shared out."""
    if not isinstance(model, TrainedRecommender | GraphRanker):
        raise ParameterError(f"expected a model of class AIR, DMF or GraphRanker, found {type(model).__name__}")


def shared_engine(model: TrainedRecommender, data: Interactions | None) -> ObjectiveEngine | PosteriorEngine:
    """The engine of a model, or `ParameterError` with the parameter to set where it cannot be shared out.

    `data` is None where ranks have yet to read their parts.
    """
    if data is not None:
        model.check(data)
    engine = model.engine()
    if isinstance(engine, ObjectiveEngine):
        if data is None:
            raise ParameterError(
                "ParquetRatings are for the solvers Variational and Langevin: give every rank all ratings, from "
                "air_recsys.datasets.read_ratings"
            )
        engine = _shared_objective(model, engine, data)
    assert isinstance(engine, ObjectiveEngine | PosteriorEngine)  # there are no others
    whole_only = {
        "validation_fraction": (model.validation_fraction, 0),
        "snapshot_epochs": (tuple(model.get_params().get("snapshot_epochs", ())), ()),
    }
    if isinstance(engine, ObjectiveEngine):
        whole_only["stopping_delta"] = engine.descent.stopping_delta, None
    else:
        whole_only["time"] = engine.solver.time, None
        _check_strengths(engine, data)
    for name, (value, needed) in whole_only.items():
        if value != needed:
            raise ParameterError(f"distributed training needs {name}={needed!r}, found {value!r}")
    return engine


def _shared_objective(model: TrainedRecommender, engine: ObjectiveEngine, data: Interactions) -> ObjectiveEngine:
    """The engine with graphs that can be shared out, or `ParameterError`."""
    if any(data.n_features):
        raise ParameterError("distributed training by Adam reads no features and no similarities, found some")
    if engine.given is not None:
        raise ParameterError(f"distributed training learns its graphs, found {type(model).__name__} with given ones")
    engine = _with_few_edges(engine, data)
    settings = engine.settings(data)
    narrower, width = min(data.n_users, data.n_items), settings.width
    if width is None or width >= narrower:
        raise ParameterError(
            f"distributed training needs factors narrower than the {narrower} users or items: set n_factors below "
            f"{narrower}, found n_factors={width}"
        )
    if any(settings.strengths) and settings.n_neighbors is None:
        raise ParameterError(
            "distributed training needs sparse graphs or none: set graph_neighbors, or user_graph_reg=0 and "
            "item_graph_reg=0; found graph_neighbors=None"
        )
    return engine


def _with_few_edges(engine: ObjectiveEngine, data: Interactions) -> ObjectiveEngine:
    """An engine with sparse graphs where `graph_neighbors="auto"` took all pairs: these cannot be shared."""
    setup = engine.setup
    bound = setup.adjacency != "row_softmin" or engine.terms.graph_every > 1
    if setup.graph_neighbors != "auto" or bound or engine.settings(data).n_neighbors is not None:
        return engine
    return ObjectiveEngine(replace(setup, graph_neighbors=edges_per_node("auto")), engine.descent, engine.terms)


def check_enough(group: Group, n_users: int, n_items: int) -> None:
    """Raise `DataError` where there are fewer users or items than ranks."""
    for kind, size in (("users", n_users), ("items", n_items)):
        if size < group.size:
            raise DataError(f"expected at least one of the {kind} for each of {group.size} ranks, found {size}")


def check_ranks(group: Group, data: Extent, mark: dict[str, Any]) -> None:
    """Raise where there are fewer rows than ranks, or where ranks were given other data or parameters."""
    marks = group.of_all(mark)  # first, so that no rank leaves while another one still joins
    check_enough(group, data.n_users, data.n_items)
    for kind, error in (("data", DataError), ("parameters", ParameterError)):
        other = [rank for rank, its_mark in enumerate(marks) if its_mark[kind] != marks[0][kind]]
        if other:
            raise error(f"expected the same {kind} on every rank, found others than those of rank 0 on {other}")


def check_memory(
    group: Group,
    engine: ObjectiveEngine | PosteriorEngine | LikesMemory,
    data: Interactions,
    max_memory: int | str | None,
) -> None:
    """Raise `MemoryLimitError` where a rank needs more than `max_memory`, or the ranks of a machine than it has."""
    needed = _bytes_needed(group, engine, data)
    if max_memory is not None:
        limit, place = parse_size(max_memory), "max_memory allows"
    else:
        limit, place = device_memory(str(group.device)), "it has"
        if limit is not None and group.device.type == "cpu":  # one memory for all ranks of a machine
            limit //= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if limit is not None and needed > limit:
        others = "graph_neighbors, leave a graph out (user_graph_reg=0), or take more machines"
        raise MemoryLimitError(
            f"each of {group.size} ranks needs about {readable(int(needed))}; {place} {readable(limit)}: lower "
            f"n_factors or {'n_validation' if isinstance(engine, LikesMemory) else others}"
        )


def _bytes_needed(group: Group, engine: ObjectiveEngine | PosteriorEngine | LikesMemory, data: Interactions) -> float:
    """The memory of a rank."""
    if not isinstance(engine, ObjectiveEngine):
        return engine.memory_plan(data).total  # every rank holds the rows of all
    settings = engine.settings(data)
    graphs = [strength > 0 for strength in settings.strengths]
    width, neighbors = settings.width or 0, settings.n_neighbors or 0
    sizes = data.n_users, data.n_items, data.n_ratings, width, neighbors, group.size
    cost = Cost(*sizes, depth=settings.depth, n_batches=settings.n_batches, user_graph=graphs[0], item_graph=graphs[1])
    return (cost.bytes_held + cost.bytes_passing) * np.dtype(engine.setup.dtype).itemsize / 4


def _check_strengths(engine: PosteriorEngine, data: Interactions | None) -> None:
    """Raise `ParameterError` where given graphs have no strengths, which `AIR.fit` would search."""
    for name, has_graph in zip(STRENGTH_NAMES, (False, False) if data is None else data.has_places, strict=True):
        if has_graph and getattr(engine.solver, name) == "auto":
            raise ParameterError(
                f"distributed training does not search the strength of a given graph: set {name}, for instance to "
                "that of a training in one process on a part of the ratings; found 'auto'"
            )
