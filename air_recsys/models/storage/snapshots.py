"""The graphs of a training's way in a model file: those of `snapshots_`, each under the number of its epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from air_recsys.data.interactions import Interactions
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.state import Snapshot
from air_recsys.models.storage.files import graph_from_arrays, graph_to_arrays

_KEYS = {"epoch", "users", "items", "others"}


def snapshots_to_contents(
    snapshots: Mapping[int, Snapshot], data: Interactions
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Return the entries of a model file that say which snapshots there are, and their arrays.

    Ids are not written: the nodes of a snapshot are the first users (items) of the data. `partial_fit` adds others
    behind them.

    Raises
    ------
    ValueError
        Where the nodes are others.
    """
    entries: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for epoch in sorted(snapshots):
        users, items, others = snapshots[epoch]
        for graph, ids in ((users, data.user_ids), (items, data.item_ids)):
            if graph is not None and not np.array_equal(graph.ids, ids[: len(graph)]):
                raise ValueError(f"expected the first {graph.kind}s of the model in the snapshot of epoch {epoch}")
        graphs = {"user": users, "item": items} | {str(number): graph for number, graph in enumerate(others)}
        for name, graph in graphs.items():
            if graph is not None:
                arrays |= _narrow(graph_to_arrays(_prefix(epoch, name), graph))
        sizes = {f"{graph.kind}s": len(graph) for graph in (users, items) if graph is not None}
        entry = {"epoch": int(epoch), "users": None, "items": None, "others": [len(graph) for graph in others]}
        entries.append(entry | sizes)
    return entries, arrays


def snapshots_from_contents(entries: Any, arrays: Mapping[str, np.ndarray], data: Interactions) -> dict[int, Snapshot]:
    """Return what `snapshots_to_contents` was given.

    Raises
    ------
    ValueError
        For entries that it does not write, and where a graph is missing.
    """
    found: dict[int, Snapshot] = {}
    for entry in _checked(entries):
        epoch = entry["epoch"]

        def graph(kind: str, ids: np.ndarray, size: int, name: str, epoch: int = epoch) -> SimilarityGraph:
            if size > ids.size:
                raise ValueError(f"expected a snapshot of at most {ids.size} {kind}s, found one of {size}")
            made = graph_from_arrays(_prefix(epoch, name), kind, ids[:size], arrays)
            if made is None:
                raise ValueError(f"expected the graph of {kind}s in the snapshot of epoch {epoch}, found none")
            return made

        found[epoch] = Snapshot(
            None if entry["users"] is None else graph("user", data.user_ids, entry["users"], "user"),
            None if entry["items"] is None else graph("item", data.item_ids, entry["items"], "item"),
            [
                graph("node", np.arange(_n_rows(epoch, str(number), arrays)), size, str(number))
                for number, size in enumerate(entry["others"])
            ],
        )
    return found


def _prefix(epoch: int, name: str) -> str:
    return f"snapshot_{epoch}_{name}_"


def _n_rows(epoch: int, name: str, arrays: Mapping[str, np.ndarray]) -> int:
    return arrays[f"{_prefix(epoch, name)}indptr"].size - 1


def _narrow(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays of a graph with places of four bytes where these suffice: 24 bytes an edge instead of 32."""
    small = all(array.max(initial=0) < 2**31 for array in arrays.values() if array.dtype.kind == "i")
    return {
        name: array.astype(np.int32) if small and array.dtype.kind == "i" else array for name, array in arrays.items()
    }


def _checked(entries: Any) -> list[dict[str, Any]]:
    """Return the entries, or raise `ValueError` where one is not of the form that is written."""
    if not isinstance(entries, list):
        raise ValueError(f"expected a list of snapshots, found {type(entries).__name__}")
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != _KEYS or not isinstance(entry["others"], list):
            raise ValueError(f"expected snapshots with {', '.join(sorted(_KEYS))}, found {entry!r:.80}")
        sizes = [entry[name] for name in ("users", "items") if entry[name] is not None]
        for value in [entry["epoch"], *sizes, *entry["others"]]:
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ValueError(f"expected whole numbers in a snapshot, found {value!r:.80}")
    return entries
