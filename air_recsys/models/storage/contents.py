"""The parts of a fitted state as attributes and arrays of a model file, and back."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from air_recsys.data.described.sides import Described
from air_recsys.data.doubts import doubts_about_rows
from air_recsys.data.features import Encoding, Features
from air_recsys.data.interactions import Interactions, Kinds
from air_recsys.exceptions import DataError, DataWarning
from air_recsys.graphs import SimilarityGraph
from air_recsys.models.further import NOTHING, Further
from air_recsys.models.learned import Factors, Selection, Snapshot
from air_recsys.models.ranking.calibration import RankCalibration
from air_recsys.models.spread import Spread
from air_recsys.models.state import FittedState
from air_recsys.models.storage.files import (
    LARGEST,
    Contents,
    check_attributes,
    check_scale,
    check_shapes,
    check_starts,
)
from air_recsys.models.unrated import Unrated
from air_recsys.storage.reading import checked_csr

_LITTLE = 0.1  # of the largest weight, as of weights that sum to 1
_HOLDS = "a model file holds ids that are all integers or all strings"
_NO_FEATURES: dict[str, Any] = {}
_HIDDEN = "hidden_"
_FACTORS = ("user_factors_", "item_factors_", "user_biases_", "item_biases_")


def state_to_contents(state: FittedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The attributes and the arrays of a model file that hold a fitted state."""
    factors, history = state.factors, state.history
    arrays: dict[str, np.ndarray] = {
        **interactions_to_arrays(state.data),
        **dict(zip(_FACTORS, factors.arrays(), strict=True)),
        **{f"history_{name}": history[name].to_numpy() for name in history.columns},
    }
    arrays |= item_weights_to_arrays(state.item_weights)
    if state.source_factors is not None:
        arrays["source_factors"] = state.source_factors
    if state.calibration is not None:
        arrays["calibration"] = state.calibration.to_array()
    if state.chosen.kernels is not None:
        of_sides = {f"{side}_given": each.similarity for side, each in _features_of(state.data).items()}
        arrays |= {name: each for name, each in of_sides.items() if each is not None}
    if state.equations is not None:
        arrays |= state.equations.to_arrays()
    if state.taking is not None:
        arrays |= state.taking.to_arrays()
    if state.spread is not None:
        arrays |= {f"{_HIDDEN}{name}": array for name, array in state.spread._asdict().items()}
    reads_times = state.drift is not None or state.source_factors is not None
    if reads_times and state.data.timestamps is not None:
        arrays["timestamps"] = state.data.timestamps
    others = {f"transform_{number}_": graph for number, graph in enumerate(state.transform_graphs)}
    for name, graph in {"user_graph_": state.user_graph, "item_graph_": state.item_graph, **others}.items():
        if graph is not None:
            arrays |= graph_to_arrays(name, graph)
    attributes = {
        "global_mean_": factors.mean,
        "rating_scale": list(state.rating_scale),
        "history_": list(history.columns),
        "transform_graphs": [len(graph) for graph in state.transform_graphs],
        "chosen": state.chosen.to_json(),
        "features": {side: each.encoding.to_json() for side, each in _features_of(state.data).items()},
    }
    later: dict[str, Any] = {"n_new_items": state.n_new_items, "residual_strength": state.residual_strength}
    later["described"] = {}
    for side, each in _features_of(state.data).items():
        if each.described is not None:
            names, own = each.described.to_contents(side)
            later["described"][side], arrays = [names, each.described.line, each.n_later], arrays | own
    later["further"] = [] if state.further == NOTHING else state.further.to_json()
    if (kinds := state.data.kinds) is not None:
        later["kinds"] = {"target": kinds.target, "names": list(kinds.beside), "worths": dict(kinds.worths)}
    later["unrated"] = list(state.unrated) if any(state.unrated) else []
    return attributes | {name: value for name, value in later.items() if value}, arrays


def state_from_contents(contents: Contents) -> FittedState:
    """The state that `state_to_contents` was given, but for the equations of rows."""
    attributes, arrays = check_attributes(contents.attributes), contents.arrays
    data = interactions_from_arrays(arrays, attributes["features"])
    for side, (names, line, n_later) in attributes.get("described", {}).items():
        features = _features_of(data)[side]
        described = Described.from_contents(side, names, arrays, len(features.values))._replace(line=str(line))
        n_later = min(max(int(n_later), 0), len(features.values))
        setattr(data, f"{side}_features", replace(features, described=described, n_later=n_later))
    data.kinds = _kinds_from(data, attributes.get("kinds"), arrays)
    users, items, user_biases, item_biases = (arrays[name] for name in _FACTORS)
    factors = Factors(users, items, user_biases, item_biases, float(attributes["global_mean_"]))
    check_shapes(data, factors)
    chosen, sides = Selection.from_json(attributes["chosen"]), _features_of(data).values()
    if chosen.kernels is not None and (
        chosen.kernels.widths is None or [each.similarity is not None for each in sides] != [True, True]
    ):
        raise ValueError("expected the similarities of users and items that are kernels, found none")
    return FittedState(
        data,
        factors,
        graph_from_arrays("user_graph_", "user", data.user_ids, arrays),
        graph_from_arrays("item_graph_", "item", data.item_ids, arrays),
        [
            SimilarityGraph(_adjacency(f"transform_{number}_", size, arrays), range(size))
            for number, size in enumerate(attributes["transform_graphs"])
        ],
        pd.DataFrame({name: arrays[f"history_{name}"] for name in attributes["history_"]}),
        scale=check_scale(attributes["rating_scale"]),
        chosen=chosen,
        item_weights=item_weights_from(data.n_items, arrays),
        source_factors=_source_factors(items.shape, arrays),
        n_new_items=min(max(int(attributes.get("n_new_items", 0)), 0), data.n_items),
        spread=_spread(arrays),
        calibration=RankCalibration.of_array(arrays["calibration"]) if "calibration" in arrays else None,
        residual_strength=_strength(attributes),
        further=Further.from_json(attributes.get("further", [])),
        unrated=Unrated.of_sides(attributes.get("unrated", (None, None))),
    )


def _strength(attributes: Mapping[str, Any]) -> float:
    strength = float(attributes.get("residual_strength", 0.0))
    if not 0 <= strength <= LARGEST:
        raise ValueError(f"expected a residual_strength from 0 on, found {strength}")
    return strength


def interactions_to_arrays(data: Interactions) -> dict[str, np.ndarray]:
    """Interactions as arrays of a model file; raise `DataError` for ids that it cannot hold."""
    arrays = {
        "user_index": data.user_index,
        "item_index": data.item_index,
        "ratings": data.ratings,
        **_ids_to_arrays("user_ids", data.user_ids),
        **_ids_to_arrays("item_ids", data.item_ids),
    }
    known = {f"{side}_features": features.values for side, features in _features_of(data).items()}
    for side, each in _features_of(data).items():
        known |= {f"{side}_places": each.places} if each.places.size else {}
        known |= {} if each.graph is None else matrix_to_arrays(f"{side}_similarity_", each.graph)
    for number, each in enumerate(data.kinds.beside.values() if data.kinds is not None else ()):
        parts = {"user_index": each.user_index, "item_index": each.item_index, "weights": each.weights}
        parts["timestamps"] = each.timestamps
        known |= {f"kind_{number}_{name}": values for name, values in parts.items() if values is not None}
    for name, values in (("weights", data.weights), ("relations", data.relations)):
        known |= {} if values is None else {name: values}
    return arrays | known


def _kinds_from(data: Interactions, told: Mapping[str, Any] | None, arrays: Mapping[str, np.ndarray]) -> Kinds | None:
    """The events of other kinds of a file, which tells their names and worths."""
    if told is None:
        return None
    beside = {}
    for number, name in enumerate(told["names"]):
        start = f"kind_{number}_"
        pairs = arrays[f"{start}user_index"], arrays[f"{start}item_index"]
        more: dict[str, Any] = {part: arrays.get(f"{start}{part}") for part in ("weights", "timestamps")}
        ones = np.ones(pairs[0].size, np.float32)
        beside[str(name)] = Interactions(*pairs, ones, data.users, data.items, empty=True, copy=False, **more)
    worths = {str(name): float(worth) for name, worth in told["worths"].items()}
    if not np.isfinite(list(worths.values())).all():
        raise ValueError("expected finite worths of kinds, found others")
    return Kinds(str(told["target"]), beside, worths)


def _features_of(data: Interactions) -> dict[str, Features]:
    sides = {"user": data.user_features, "item": data.item_features}
    return {side: features for side, features in sides.items() if features is not None}


def interactions_from_arrays(
    arrays: Mapping[str, np.ndarray], encodings: Mapping[str, Any] = _NO_FEATURES
) -> Interactions:
    """The interactions that `interactions_to_arrays` was given, with the encodings of features by side as JSON."""
    data = Interactions(
        arrays["user_index"],
        arrays["item_index"],
        arrays["ratings"],
        _ids_from_arrays("user_ids", arrays),
        _ids_from_arrays("item_ids", arrays),
        timestamps=arrays.get("timestamps"),
        weights=arrays.get("weights"),
        relations=arrays.get("relations"),
        allow_negative=True,
        copy=False,
    )
    for side, size in (("user", data.n_users), ("item", data.n_items)):
        if side in encodings:
            places = arrays.get(f"{side}_places", np.empty((size, 0), np.float32))
            name = f"{side}_similarity_"
            graph = _adjacency(name, size, arrays) if f"{name}data" in arrays else None
            given = arrays.get(f"{side}_given")
            if given is not None and not np.isfinite(given).all():
                raise ValueError(f"expected finite similarities of {side}s, found others")
            known = arrays[f"{side}_features"]
            features = Features(Encoding.from_json(encodings[side]), known, places, graph, given)
            if len(features.values) != size:
                raise ValueError(f"expected features of {size} {side}s, found those of {len(features.values)}")
            setattr(data, f"{side}_features", features)
    return data


def graph_to_arrays(name: str, graph: SimilarityGraph) -> dict[str, np.ndarray]:
    """A graph as arrays of a model file, all of a name that begins with `name`."""
    return matrix_to_arrays(name, graph.to_scipy())


def matrix_to_arrays(name: str, matrix: sp.csr_array) -> dict[str, np.ndarray]:
    """A sparse matrix as arrays of a model file, all of a name that begins with `name`."""
    return {f"{name}data": matrix.data, f"{name}indices": matrix.indices, f"{name}indptr": matrix.indptr}


def graph_from_arrays(
    name: str, kind: str, ids: np.ndarray, arrays: Mapping[str, np.ndarray]
) -> SimilarityGraph | None:
    """The graph that `graph_to_arrays` was given, None where there is none of that name."""
    if f"{name}data" not in arrays:
        return None
    return SimilarityGraph.taking(_adjacency(name, ids.size, arrays), ids, kind)


def check_kept(data: Interactions, stacklevel: int) -> None:
    """Raise `DataError` for ratings that no model can hold, and warn of ids that no file can, or that tell nothing."""
    largest = float(np.abs(data.ratings).max(initial=0))
    if largest > LARGEST:
        raise DataError(f"expected ratings of at most {LARGEST:g}, found {largest:g}: divide all by a number")
    if 0 < largest < 1 / LARGEST:
        raise DataError(f"expected a rating of at least {1 / LARGEST:g}, found {largest:g}: multiply all by a number")
    if data.weights is not None and data.weights.max(initial=0) < _LITTLE and data.n_ratings:
        warnings.warn(
            f"the largest weight of a rating is {data.weights.max():.2g}, beside a prior that counts as ratings of "
            "weight 1 do: multiply the weights, for a mean of 1",
            DataWarning,
            stacklevel=stacklevel,
        )
    for doubt in doubts_about_rows(data.users, data.items, data.n_ratings):
        warnings.warn(doubt, DataWarning, stacklevel=stacklevel)
    for index in (data.users, data.items):
        if kind := _other_type(index.ids):
            warnings.warn(
                f"{_HOLDS}, found {kind} among the {index.kind} ids: save will refuse the model; give them as text",
                DataWarning,
                stacklevel=stacklevel,
            )


def _other_type(ids: np.ndarray) -> str | None:
    """The type of an id that a model file cannot hold; None where it can hold all."""
    if ids.dtype != object:
        return None
    return next((type(each).__name__ for each in ids.tolist() if not isinstance(each, str)), None)


def _ids_to_arrays(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    if ids.dtype != object:
        return {name: ids}
    if kind := _other_type(ids):
        raise DataError(f"{_HOLDS}, found a {kind} in {name}; give others as text")
    try:
        encoded = [value.encode() for value in ids]
    except UnicodeEncodeError as error:
        raise DataError(f"expected ids that UTF-8 can hold, found {error.object!r} in {name}") from None
    starts = np.cumsum([0, *map(len, encoded)])
    return {f"{name}_text": np.frombuffer(b"".join(encoded), dtype=np.uint8), f"{name}_starts": starts}


def _ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> Iterable[Any]:
    if name in arrays:
        return arrays[name]
    text = arrays[f"{name}_text"].tobytes()
    starts = check_starts(arrays[f"{name}_starts"], len(text))
    return [text[low:high].decode() for low, high in itertools.pairwise(starts)]


def _adjacency(name: str, size: int, arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    data, indices, indptr = (arrays[f"{name}{array}"] for array in ("data", "indices", "indptr"))
    return checked_csr(data, indices, indptr, (size, size))


def item_weights_to_arrays(weights: sp.csr_array | np.ndarray | None) -> dict[str, np.ndarray]:
    """The weights of a regression of the items, as arrays of a model file."""
    if weights is None:
        return {}
    return {"item_weights": weights} if isinstance(weights, np.ndarray) else matrix_to_arrays("item_weights_", weights)


def item_weights_from(size: int, arrays: Mapping[str, np.ndarray]) -> sp.csr_array | np.ndarray | None:
    """The weights that `item_weights_to_arrays` was given, of so many items."""
    if "item_weights_data" in arrays:
        return _adjacency("item_weights_", size, arrays)
    dense = arrays.get("item_weights")
    if dense is not None and dense.shape != (size, size):
        raise ValueError(f"expected weights of {size} x {size} items, found shape {dense.shape}")
    return dense


def _source_factors(shape: tuple[int, ...], arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    sources = arrays.get("source_factors")
    if sources is not None and sources.shape != shape:
        raise ValueError(f"expected source factors of shape {shape}, found {sources.shape}")
    return sources


def _spread(arrays: Mapping[str, np.ndarray]) -> Spread | None:
    if f"{_HIDDEN}ratings" not in arrays:
        return None
    found = Spread(*(arrays[f"{_HIDDEN}{name}"] for name in Spread._fields))
    found.check()
    return found


_KEYS = {"epoch", "users", "items", "others"}


def snapshots_to_contents(
    snapshots: Mapping[int, Snapshot], data: Interactions
) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """The entries of a model file that say which snapshots there are, and their arrays.

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
    """The snapshots that `snapshots_to_contents` was given.

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
                graph("node", np.arange(arrays[f"{_prefix(epoch, str(number))}indptr"].size - 1), size, str(number))
                for number, size in enumerate(entry["others"])
            ],
        )
    return found


def _prefix(epoch: int, name: str) -> str:
    return f"snapshot_{epoch}_{name}_"


def _narrow(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays of a graph with places of four bytes where these suffice: 24 bytes an edge instead of 32."""
    small = all(array.max(initial=0) < 2**31 for array in arrays.values() if array.dtype.kind == "i")
    return {
        name: array.astype(np.int32) if small and array.dtype.kind == "i" else array for name, array in arrays.items()
    }


def _checked(entries: Any) -> list[dict[str, Any]]:
    """The entries, or raise `ValueError` where one is not of the form that is written."""
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
